"""A store on disk: its header, its index, its failures, and writes that survive a kill or a full disk."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from sys import float_info
from typing import BinaryIO, Self

from ongebd.common.text import public_name
from ongebd.common.writing import write_whole
from ongebd.errors import StoreError, os_errors

if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: BinaryIO) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _try_lock(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_file(path: Path) -> BinaryIO | None:
    """Lock a file, which is created if needed; None if another has the lock.

    Closing the file, or the end of the process, gives the lock back. (filelock would take 0.1 s to import.)
    """
    file = path.open("ab", buffering=0)
    try:
        _try_lock(file)
    except OSError:
        file.close()
        return None
    return file


def write_at(path: Path, offset: int, data: bytes | bytearray) -> None:
    """Write bytes to the disk at `offset`, in place of all that follows. On an error the file ends there."""
    with path.open("r+b" if path.exists() else "x+b", buffering=0) as file:
        file.truncate(offset)
        try:
            file.seek(offset)
            left = memoryview(data)
            while left:
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(offset)
            raise


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


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


@dataclass(frozen=True, slots=True)
class Failure:
    """One video that couldn't be extracted, its source without credentials, and why, in one line."""

    id: str
    source: str
    reason: str

    @classmethod
    def of(cls, video_id: str, source: str, problem: object) -> Self:
        """The failure of a video, with the problem as one line without credentials."""
        return cls(video_id, public_name(source), public_name(" ".join(str(problem).split())))


class Failures:
    """The file `failures.jsonl` of a store: a line for each video that failed and hasn't been done since."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "failures.jsonl"

    def read(self) -> list[Failure]:
        """All failures in the file; a line that wasn't written whole is ignored."""
        if not self._path.exists():
            return []
        found = []
        for line in self._path.read_bytes().split(b"\n")[:-1]:  # the last one has no end
            with suppress(ValueError, TypeError, RecursionError):
                found.append(Failure(**json.loads(line)))
        return found

    def keep(self, wanted: Callable[[Failure], bool]) -> None:
        """Forget all other failures."""
        before = self.read()
        left = [failure for failure in before if wanted(failure)]
        if len(left) < len(before):
            with os_errors(self._path, error=StoreError), write_whole(self._path) as part:
                write_at(part, 0, b"".join(map(_line, left)))

    def add(self, failure: Failure) -> None:
        """Write one more after the last whole line, over what a killed process left of another."""
        with os_errors(self._path, error=StoreError):
            lines = self._path.read_bytes() if self._path.exists() else b""
            write_at(self._path, lines.rfind(b"\n") + 1, _line(failure))


def _line(failure: Failure) -> bytes:
    return json.dumps(asdict(failure), ensure_ascii=True).encode() + b"\n"
