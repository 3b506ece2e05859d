"""Features of many videos in one folder: a few large files, read without copying, and an index.

    STORE/store.json        what the features are: backbone, size, rate (`StoreHeader`)
    STORE/index.jsonl       a line for each video, written when its features are safe on disk (`Record`)
    STORE/shard-00000.bin   the features, times and epochs of video after video, until the file is large

Eighteen thousand videos make some twenty files, so training reads them at the speed of the disk, or of
memory once they are cached. However a writer dies, the store is whole up to the last video in its index.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt

from ongebd.common.settings import differences
from ongebd.common.text import public_name
from ongebd.common.writing import write_whole
from ongebd.errors import StoreError, os_errors
from ongebd.features.records import Index, Record, StoreHeader, aligned, lock_file, sync_folder, write_at

Features16 = npt.NDArray[np.float16]
"""Features of one video as the store holds them, shape (T, D)."""

SHARD_BYTES = 1 << 30
"""A shard of this size gets no more videos."""

_HEADER, _INDEX = "store.json", "index.jsonl"
_HALF, _DOUBLE, _INT = np.dtype("<f2"), np.dtype("<f8"), np.dtype("<i4")


@dataclass(frozen=True, slots=True, eq=False)
class StoredVideo:
    """One video's features. The arrays are read-only views into the file; nothing is read until it is used.

    Attributes:
        id: The video's.
        features: float16, shape (T, D).
        times: Seconds of each frame since the first one of the source, float64, shape (T,).
        epochs: How often the source's clock or format had broken before each frame, int32, shape (T,).
        duration: Seconds from the first frame to the end of the last.
        source: Where the features came from, without credentials.
    """

    id: str
    features: Features16 = field(repr=False)
    times: npt.NDArray[np.float64] = field(repr=False)
    epochs: npt.NDArray[np.int32] = field(repr=False)
    duration: float
    source: str

    def __len__(self) -> int:
        return len(self.times)


class FeatureStore:
    """The features of many videos, by id. Use `create` or `open`.

    Any number of processes can read, also while one writes. A store can be sent to another process (pickled),
    which opens the folder there. Only one thread may write.

    Attributes:
        path: The folder.
        header: What all its features have in common.
        backbone: The backbone's identity, weights included.
        dim: Numbers in a feature, D.
        fps: Frames a second that the videos were sampled to.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "features"
    >>> with FeatureStore.create(folder, backbone="net@1", dim=3, fps=24) as store:
    ...     store.add("clip", np.ones((2, 3)), [0, 1 / 24], [0, 0], 2 / 24, "clip.mp4")
    >>> video = FeatureStore.open(folder)["clip"]
    >>> video.features.shape, video.times[1].round(3).item(), video.duration
    ((2, 3), 0.042, 0.08333333333333333)
    """

    def __init__(self, path: Path, header: StoreHeader) -> None:
        self.path = path
        self.header = header
        if not (path / _INDEX).exists() and self._shard(0).exists():
            raise self._error(f"{_INDEX} is missing; restore it from a copy, or begin a new store")
        self.backbone, self.dim, self.fps = header.backbone, header.dim, header.fps
        self._index = Index(path / _INDEX)
        self._maps: dict[int, mmap.mmap] = {}
        self._lock: BinaryIO | None = None

    @classmethod
    def create(
        cls, path: Path | str, *, backbone: str, dim: int, fps: float, sampling: str = ""
    ) -> FeatureStore:
        """Make a new, empty store in a folder that is empty or doesn't exist; see `StoreHeader`.

        Raises:
            StoreError: The folder isn't empty, or can't be written.
        """
        path = Path(path)
        if dim < 1 or not (isfinite(fps) and fps > 0):
            raise StoreError(f"{path}: a store needs dim and fps above 0, not {dim} and {fps}")
        header = StoreHeader(backbone, dim, float(fps), sampling)
        with os_errors(f"{path}: can't make a store", error=StoreError):
            path.mkdir(parents=True, exist_ok=True)
            # A killed process may have left a part of the header.
            if any(not entry.match(f".{_HEADER}.*.part") for entry in path.iterdir()):
                raise StoreError(f"{path}: isn't empty; open the store in it, or name an empty folder")
            with write_whole(path / _HEADER) as part:
                write_at(part, 0, header.to_json().encode())
            sync_folder(path)
        return cls(path, header)

    @classmethod
    def open(cls, path: Path | str) -> FeatureStore:
        """Open an existing store, to read it or to add to it.

        Raises:
            StoreError: The folder isn't a store, or its index is damaged.
        """
        path = Path(path)
        try:
            text = (path / _HEADER).read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            raise StoreError(f"{path}: not a feature store; make one with: ongebd extract … --out") from None
        except (OSError, ValueError) as problem:
            raise StoreError(f"{path}: can't read: {problem}") from None
        return cls(path, StoreHeader.from_json(text, path / _HEADER))

    @classmethod
    def open_or_create(
        cls, path: Path | str, *, backbone: str, dim: int, fps: float, sampling: str = ""
    ) -> FeatureStore:
        """Open the store of exactly these features, or make it.

        Raises:
            StoreError: It holds other features, or as for `create` and `open`.
        """
        path = Path(path)
        if not (path / _HEADER).exists():
            return cls.create(path, backbone=backbone, dim=dim, fps=fps, sampling=sampling)
        store = cls.open(path)
        if found := differences(store.header, StoreHeader(backbone, dim, float(fps), sampling)):
            raise store._error(f"holds other features ({found}); name another folder with --out")
        return store

    def __repr__(self) -> str:
        return f"<FeatureStore {self.path}: {len(self)} videos, {self.backbone}, {self.fps:g} fps>"

    def __len__(self) -> int:
        return len(self._index.records)

    def __contains__(self, video_id: object) -> bool:
        return video_id in self._index.records

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids())

    def ids(self) -> list[str]:
        """The ids of all videos, in the order in which they were added."""
        return list(self._index.records)

    def __getitem__(self, video_id: str) -> StoredVideo:
        record = self._index.records.get(video_id)
        if record is None:
            raise self._error(f"has no video {video_id!r} among its {len(self)}")
        features, times, epochs, end = record.layout(self.dim)
        count = record.frames
        mapped: Any = self._mapped(record, end) if count else b""
        return StoredVideo(
            record.id,
            np.ndarray((count, self.dim), _HALF, mapped, features if count else 0),
            np.ndarray((count,), _DOUBLE, mapped, times if count else 0),
            np.ndarray((count,), _INT, mapped, epochs if count else 0),
            record.duration,
            record.source,
        )

    def add(
        self,
        video_id: str,
        features: npt.ArrayLike,
        times: npt.ArrayLike,
        epochs: npt.ArrayLike,
        duration: float,
        source: str,
    ) -> None:
        """Add a video; when this returns, it is on the disk. See `StoredVideo` for the arguments.

        Raises:
            StoreError: The arrays don't fit, times decrease, the store has the id already, another process
                writes to it, or the disk is full. The store is then as before.
        """
        raw = np.asarray(features)
        with np.errstate(over="ignore"):
            half = np.ascontiguousarray(raw, _HALF)
        stamps, breaks = np.asarray(times, _DOUBLE), np.asarray(epochs, _INT)
        backwards = np.flatnonzero(np.diff(stamps.ravel()) < 0)
        wrong = None
        if not video_id:
            wrong = "has an empty id"
        elif raw.ndim != 2 or raw.shape[1] != self.dim:
            wrong = f"has features of shape {raw.shape}, wanted (T, {self.dim})"
        elif not np.isfinite(half).all():
            wrong = "has features with NaN, or too large for float16"
        elif stamps.shape != half.shape[:1] or breaks.shape != half.shape[:1]:
            wrong = f"has {len(half)} features, times of shape {stamps.shape}, epochs of shape {breaks.shape}"
        elif not (isfinite(duration) and np.isfinite(stamps).all()):
            wrong = "has a time or a duration that isn't a finite number"
        elif len(backwards):
            place = int(backwards[0]) + 1
            wrong = (
                f"has times that decrease, {stamps[place]:g} after {stamps[place - 1]:g} s at frame {place}"
            )
        if wrong is not None:
            raise self._error(f"{video_id!r} {wrong}")
        self.lock()
        if video_id in self:
            raise self._error(f"has {video_id!r} already")
        shard, offset = self._end()
        record = Record(video_id, shard, offset, len(half), float(duration), public_name(source))
        self._write(record, half, stamps, breaks)

    def lock(self) -> None:
        """Become the only writer, until `close`; `add` does this by itself.

        Raises:
            StoreError: Another process writes to the store, or its files aren't writable.
        """
        if self._lock is not None:
            return
        with os_errors(f"{self.path}: can't write", error=StoreError):
            self._lock = lock_file(self.path / "lock")
            if self._lock is None:
                raise self._error("another process is writing to it; wait for it, or name another folder")
            (self.path / _INDEX).touch()
        self._index.read()

    def close(self) -> None:
        """Let another process write. Reading still works."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return FeatureStore.open, (self.path,)

    def _error(self, text: str) -> StoreError:
        return StoreError(f"{self.path}: {text}")

    def _end(self) -> tuple[int, int]:
        """The shard and the byte at which the next video begins."""
        if not self._index.records:
            return 0, 0
        last = next(reversed(self._index.records.values()))
        end = aligned(last.layout(self.dim)[-1])
        return (last.shard, end) if end < SHARD_BYTES else (last.shard + 1, 0)

    def _write(self, record: Record, *arrays: npt.NDArray[Any]) -> None:
        *starts, end = record.layout(self.dim)
        data = bytearray(end - record.offset)
        for array, start in zip(arrays, starts, strict=True):
            raw = array.tobytes()
            data[start - record.offset : start - record.offset + len(raw)] = raw
        safe = f"the {len(self)} videos before it are safe"
        with os_errors(f"{self.path}: can't write {record.id!r}", safe, StoreError):
            write_at(self._shard(record.shard), record.offset, data)
            if record.offset == 0:  # a new file
                sync_folder(self.path)
            self._index.append(record)

    def _shard(self, number: int) -> Path:
        return self.path / f"shard-{number:05d}.bin"

    def _mapped(self, record: Record, end: int) -> mmap.mmap:
        """The shard in memory, at least up to `end`."""
        mapped = self._maps.get(record.shard)
        if mapped is None or len(mapped) < end:
            path = self._shard(record.shard)
            try:
                with path.open("rb") as file:
                    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except (OSError, ValueError) as problem:  # ValueError: the file is empty
                reason = getattr(problem, "strerror", None) or problem
                raise StoreError(f"{path}: can't read: {reason}; copy the store again") from None
            if len(mapped) < end:
                raise StoreError(
                    f"{path}: is shorter than its index says (at {record.id!r}); copy the store again"
                )
            self._maps[record.shard] = mapped
        return mapped
