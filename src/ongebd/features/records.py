"""How a store lies on the disk: its header, one line of the index, and the layout of one video's bytes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from sys import float_info
from typing import Any, Self

from ongebd.errors import StoreError

FORMAT = 1
"""Of the folder's layout; a store of another format is refused."""

_ALIGNMENT = 64  # bytes: numbers lie as the processor likes them


@dataclass(frozen=True, slots=True)
class StoreHeader:
    """What all features of a store have in common. Stores whose headers differ are never mixed.

    Attributes:
        backbone: Name and weights of the backbone, as its `identity`.
        dim: Numbers in a feature, D.
        fps: Frames a second that the videos were sampled to.
        sampling: How frames were chosen and brought to the backbone's size, in words.
        format: Of the folder's layout.
    """

    backbone: str
    dim: int
    fps: float
    sampling: str = ""
    format: int = FORMAT

    def difference(self, other: StoreHeader) -> str | None:
        """What `other` has otherwise, in words; None where nothing."""
        differing = [
            f"{field.name} {getattr(self, field.name)!r}, not {getattr(other, field.name)!r}"
            for field in fields(self)
            if getattr(self, field.name) != getattr(other, field.name)
        ]
        return "; ".join(differing) or None

    def to_json(self) -> str:
        """One JSON object over several lines, for people too."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str, path: Path) -> Self:
        """Read what `to_json` wrote.

        Raises:
            StoreError: It is no such header, or of another format.
        """
        try:
            value = json.loads(text)
            if value["format"] != FORMAT:
                raise StoreError(
                    f"{path}: a feature store of format {value['format']}, and this version reads {FORMAT}"
                )
            return cls(str(value["backbone"]), int(value["dim"]), float(value["fps"]), str(value["sampling"]))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise StoreError(f"{path}: damaged, or not the header of a feature store") from None


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the index: where a video's bytes lie.

    They lie in one piece: features (T, D) float16, times (T,) float64, epochs (T,) int32, each beginning at
    a multiple of 64 bytes, little-endian.

    Attributes:
        id: The video's.
        shard: Number of the file that holds it.
        offset: Its first byte in there.
        frames: T.
        duration: Seconds.
        source: Where the features came from, without credentials.
    """

    id: str
    shard: int
    offset: int
    frames: int
    duration: float
    source: str

    def to_line(self) -> bytes:
        """One line of JSON, its end included."""
        return json.dumps(asdict(self), ensure_ascii=True).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """Read what `to_line` wrote.

        Raises:
            ValueError: It is no such line.
        """
        try:
            value: Any = json.loads(line)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if not isinstance(value, dict) or set(value) != {field.name for field in fields(cls)}:
            raise ValueError("no record of a video")
        record = cls(**value)
        if not (
            all(type(text) is str for text in (record.id, record.source))
            and all(
                type(count) is int and count >= 0 for count in (record.shard, record.offset, record.frames)
            )
            and type(record.duration) in (int, float)
            and abs(record.duration) <= float_info.max  # neither NaN nor a whole number too long for a float
        ):
            raise ValueError("a field of a record is of another kind")
        return record

    def layout(self, dim: int) -> Layout:
        """Where its three arrays lie."""
        return Layout.at(self.offset, self.frames, dim)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the arrays of one video lie in a shard: the first byte of each, and the end of the last."""

    features: int
    times: int
    epochs: int
    end: int

    @classmethod
    def at(cls, offset: int, frames: int, dim: int) -> Self:
        """The layout of T = `frames` features of D = `dim` numbers that begin at a byte."""
        features = aligned(offset)
        times = aligned(features + frames * dim * 2)
        epochs = aligned(times + frames * 8)
        return cls(features, times, epochs, epochs + frames * 4)


def aligned(offset: int) -> int:
    """The first multiple of 64 at or after a byte.

    >>> [aligned(offset) for offset in (0, 1, 64, 65)]
    [0, 64, 64, 128]
    """
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
