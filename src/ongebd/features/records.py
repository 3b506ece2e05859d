"""How a store is laid out on disk: its header, its index, and the arrays of one video."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from sys import float_info
from typing import Self

from ongebd.errors import StoreError
from ongebd.features.disk import write_at

FORMAT = 1
"""Of the folder's layout; a store of another format is refused."""

_ALIGNMENT = 64  # bytes, as the processor likes numbers aligned


@dataclass(frozen=True, slots=True)
class StoreHeader:
    """What all features of a store have in common. Stores with different headers are never mixed.

    Attributes:
        backbone: The backbone's `identity`.
        dim: Numbers in a feature, D.
        fps: Frames a second that the videos were sampled to.
        sampling: How frames were chosen and resized, in words.
        format: Of the folder's layout.
    """

    backbone: str
    dim: int
    fps: float
    sampling: str = ""
    format: int = FORMAT

    def to_json(self) -> str:
        """One JSON object over several lines."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str, path: Path) -> Self:
        """Read the content of `store.json`; `path` is for messages."""
        try:
            value = json.loads(text)
            if value["format"] != FORMAT:
                raise StoreError(f"{path}: has format {value['format']}, but this version reads {FORMAT}")
            return cls(str(value["backbone"]), int(value["dim"]), float(value["fps"]), str(value["sampling"]))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise StoreError(f"{path}: damaged, or not the header of a feature store") from None


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the index: where a video's arrays are, from byte `offset` of a shard on.

    They follow each other: features (T, D) float16, times (T,) float64, epochs (T,) int32, T being `frames`,
    each beginning at a multiple of 64 bytes, little-endian.
    """

    id: str
    shard: int
    offset: int
    frames: int
    duration: float
    source: str

    def to_line(self) -> bytes:
        """One line of JSON, with its end."""
        return json.dumps(asdict(self), ensure_ascii=True).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """Read a line; ValueError or TypeError if it isn't a whole record, or a field has another type."""
        record = cls(**json.loads(line))
        if not (
            all(type(text) is str for text in (record.id, record.source))
            and all(type(n) is int and n >= 0 for n in (record.shard, record.offset, record.frames))
            and type(record.duration) in (int, float)
            and abs(record.duration) <= float_info.max  # neither NaN nor too long an integer
        ):
            raise ValueError("a field of a record has another type")
        return record

    def layout(self, dim: int) -> tuple[int, int, int, int]:
        """The first byte of each of its arrays of D = `dim` features, and the end of the last."""
        features = aligned(self.offset)
        times = aligned(features + self.frames * dim * 2)
        epochs = aligned(times + self.frames * 8)
        return features, times, epochs, epochs + self.frames * 4


def aligned(offset: int) -> int:
    """The first multiple of 64 at or after a byte.

    >>> [aligned(offset) for offset in (0, 1, 64, 65)]
    [0, 64, 64, 128]
    """
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


class Index:
    """The records of a store, in the order in which they were added: a file with a JSON line for each.

    A line that wasn't written whole (the process was killed, the disk was full) is ignored, and the next one
    overwrites it. A broken line with others after it has another cause, and is refused with a StoreError.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.read()

    def read(self) -> None:
        """Read the file."""
        data = self._path.read_bytes() if self._path.exists() else b""
        self._size = data.rfind(b"\n") + 1  # bytes of the whole lines
        self.records: dict[str, Record] = {}
        for number, line in enumerate(data[: self._size].splitlines(), start=1):
            try:
                record = Record.from_line(line)
            except (ValueError, TypeError, RecursionError):
                raise StoreError(
                    f"{self._path}, line {number}: damaged; restore the file from a copy, or delete this and"
                    " all later lines and extract those videos again"
                ) from None
            if record.id in self.records:
                raise StoreError(f"{self._path}, line {number}: {record.id!r} occurs twice")
            self.records[record.id] = record

    def append(self, record: Record) -> None:
        """Write a line after the last whole one to the disk; after an OSError the file is as before."""
        line = record.to_line()
        write_at(self._path, self._size, line)
        self._size += len(line)
        self.records[record.id] = record
