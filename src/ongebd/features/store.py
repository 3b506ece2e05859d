"""Features of many videos in one folder: a few large files, read without copying, and an index.

    STORE/store.json        what the features are: backbone, size, rate (`StoreHeader`)
    STORE/index.jsonl       a line for each video, written when its features are safe on the disk (`Record`)
    STORE/shard-00000.bin   the features, times and epochs of video after video, until the file is large

Eighteen thousand videos are some twenty files, so that training reads them at the speed of the disk, or of
memory once they have been read. A store that a writer left in the middle, however it died, is whole up to the
last video in its index.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt

from ongebd.common.text import public_name
from ongebd.errors import StoreError
from ongebd.features.index import Index, write_at
from ongebd.features.locking import lock_file, sync_folder
from ongebd.features.records import Layout, Record, StoreHeader, aligned

Features16 = npt.NDArray[np.float16]
"""Features of one video as they are stored, shape (T, D)."""

SHARD_BYTES = 1 << 30
"""A shard that has reached this size gets no more videos."""

_INDEX = "index.jsonl"
_UNFINISHED = "store.json.new"
_HALF, _DOUBLE, _INT = np.dtype("<f2"), np.dtype("<f8"), np.dtype("<i4")


@dataclass(frozen=True, slots=True, eq=False)
class StoredVideo:
    """One video's features. The arrays are read-only views into the file: nothing is read until it is used.

    Attributes:
        id: The video's.
        features: float16, shape (T, D).
        times: Seconds of each frame since the first one of the source, float64, shape (T,).
        epochs: How often the source's clock or format had broken before each frame, int32, shape (T,).
        duration: Seconds from the first frame to the end of the last.
        source: Where the features came from, without credentials.
    """

    id: str
    features: Features16
    times: npt.NDArray[np.float64]
    epochs: npt.NDArray[np.int32]
    duration: float
    source: str

    def __len__(self) -> int:
        return len(self.times)


class FeatureStore:
    """The features of many videos, by id. Made by `create` or `open`.

    Any number of processes may read, also while one writes; `refresh` shows what was added since. A store can
    be handed to another process (pickled): it opens the folder there. Not to be written from two threads at
    once.

    Attributes:
        path: The folder.
        header: What all its features have in common.

    Examples:
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
            raise StoreError(f"{path}: its {_INDEX} is gone; restore it from a copy, or begin a new store")
        self._index = Index(path / _INDEX)
        self._maps: dict[int, mmap.mmap] = {}
        self._lock: BinaryIO | None = None

    @classmethod
    def create(
        cls, path: Path | str, *, backbone: str, dim: int, fps: float, sampling: str = ""
    ) -> FeatureStore:
        """Make a new, empty store.

        Args:
            path: A folder that is empty or not there.
            backbone: The backbone's identity, weights included.
            dim: Numbers in a feature, D.
            fps: Frames a second that the videos are sampled to.
            sampling: How frames are chosen and brought to the backbone's size, in words.

        Raises:
            StoreError: Something is there already, or it cannot be made.
        """
        path = Path(path)
        if dim < 1 or not (isfinite(fps) and fps > 0):
            raise StoreError(f"{path}: a store needs dim and fps above 0, not {dim} and {fps}")
        header = StoreHeader(backbone, dim, float(fps), sampling)
        try:
            path.mkdir(parents=True, exist_ok=True)
            if {entry.name for entry in path.iterdir()} - {_UNFINISHED}:
                raise StoreError(
                    f"{path}: there is something in it already; open it, or name an empty folder"
                )
            # Under its name only when it is whole: a folder without it is no store yet.
            write_at(path / _UNFINISHED, 0, header.to_json().encode())
            (path / _UNFINISHED).replace(path / "store.json")
            sync_folder(path)
        except OSError as problem:
            raise StoreError(f"{path}: cannot be made: {_why(problem)}") from None
        return cls(path, header)

    @classmethod
    def open(cls, path: Path | str) -> FeatureStore:
        """Open a store that is there, to read it or to add to it.

        Raises:
            StoreError: It is none, or its index is damaged.
        """
        path = Path(path)
        try:
            text = (path / "store.json").read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            raise StoreError(f"{path}: is no feature store; make one with: ongebd extract … --out") from None
        except (OSError, UnicodeDecodeError) as problem:
            raise StoreError(f"{path}: cannot be read: {problem}") from None
        return cls(path, StoreHeader.from_json(text, path / "store.json"))

    @classmethod
    def open_or_create(
        cls, path: Path | str, *, backbone: str, dim: int, fps: float, sampling: str = ""
    ) -> FeatureStore:
        """Go on with a store of exactly these features, or begin one.

        Raises:
            StoreError: There is one of other features, or as `create` and `open` say.
        """
        path = Path(path)
        if not (path / "store.json").exists():
            return cls.create(path, backbone=backbone, dim=dim, fps=fps, sampling=sampling)
        store = cls.open(path)
        store.require(StoreHeader(backbone, dim, float(fps), sampling))
        return store

    @property
    def backbone(self) -> str:
        """The backbone's identity, weights included."""
        return self.header.backbone

    @property
    def dim(self) -> int:
        """Numbers in a feature, D."""
        return self.header.dim

    @property
    def fps(self) -> float:
        """Frames a second that the videos were sampled to."""
        return self.header.fps

    def require(self, wanted: StoreHeader) -> None:
        """Make sure that these are the features wanted.

        Raises:
            StoreError: They are not; it says how they differ.
        """
        difference = self.header.difference(wanted)
        if difference is not None:
            raise StoreError(
                f"{self.path}: holds other features ({difference}), and a store is never mixed;"
                " name another folder with --out"
            )

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

    def frames(self, video_id: str) -> int:
        """T of one video, without opening its features."""
        return self._record(video_id).frames

    def __getitem__(self, video_id: str) -> StoredVideo:
        record = self._record(video_id)
        layout = record.layout(self.dim)
        frames = record.frames
        return StoredVideo(
            record.id,
            self._view(record, layout, layout.features, (frames, self.dim), _HALF),
            self._view(record, layout, layout.times, (frames,), _DOUBLE),
            self._view(record, layout, layout.epochs, (frames,), _INT),
            record.duration,
            record.source,
        )

    def refresh(self) -> None:
        """See what another process added since the store was opened."""
        self._index.refresh()

    def add(
        self,
        video_id: str,
        features: npt.ArrayLike,
        times: npt.ArrayLike,
        epochs: npt.ArrayLike,
        duration: float,
        source: str,
    ) -> None:
        """Add a video; when this returns, it is on the disk.

        Args:
            video_id: Not yet in the store.
            features: Shape (T, D); rounded to float16.
            times: Seconds, never decreasing, shape (T,).
            epochs: Shape (T,).
            duration: Seconds.
            source: Where the features came from; credentials in a URL are hidden.

        Raises:
            StoreError: The arrays do not fit, the id is there already, another process writes to the store,
                or the disk is full. The store is then as it was.
        """
        half = self._checked(video_id, features)
        stamps, breaks = np.asarray(times, _DOUBLE), np.asarray(epochs, _INT)
        if stamps.shape != half.shape[:1] or breaks.shape != half.shape[:1]:
            raise StoreError(
                f"{self.path}: {video_id!r} has {len(half)} features, times of shape {stamps.shape}"
                f" and epochs of shape {breaks.shape}"
            )
        if not (isfinite(duration) and np.isfinite(stamps).all()):
            raise StoreError(f"{self.path}: {video_id!r} has a time or a duration that is no number")
        if (np.diff(stamps) < 0).any():
            place = int(np.argmax(np.diff(stamps) < 0)) + 1
            raise StoreError(
                f"{self.path}: {video_id!r} has a time that decreases, {stamps[place]:g} s after"
                f" {stamps[place - 1]:g} s at frame {place}; give its frames in the order of their times"
            )
        self.lock()
        if video_id in self:
            raise StoreError(f"{self.path}: {video_id!r} is in it already")
        shard, offset = self._end()
        record = Record(video_id, shard, offset, len(half), float(duration), public_name(source))
        self._write(record, half, stamps, breaks)

    def lock(self) -> None:
        """Become the one writer, until `close`; `add` does this by itself.

        Raises:
            StoreError: Another process writes to the store, or it may not be written to.
        """
        if self._lock is not None:
            return
        try:
            self._lock = lock_file(self.path / "lock")
            if self._lock is not None:
                (self.path / _INDEX).touch()
        except OSError as problem:
            raise StoreError(f"{self.path}: cannot be written to: {_why(problem)}") from None
        if self._lock is None:
            raise StoreError(
                f"{self.path}: another process is writing to it; wait for it, or name another folder"
            )
        self._index.refresh()

    def close(self) -> None:
        """Let another process write. Reading goes on to work."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return FeatureStore.open, (self.path,)

    def _record(self, video_id: str) -> Record:
        try:
            return self._index.records[video_id]
        except KeyError:
            raise StoreError(f"{self.path}: there is no video {video_id!r} among its {len(self)}") from None

    def _checked(self, video_id: str, features: npt.ArrayLike) -> Features16:
        if not video_id:
            raise StoreError(f"{self.path}: a video needs an id that is not empty")
        given = np.asarray(features)
        if given.ndim != 2 or given.shape[1] != self.dim:
            raise StoreError(
                f"{self.path}: features of {video_id!r} have shape {given.shape}, wanted (T, {self.dim})"
            )
        with np.errstate(over="ignore"):
            half = np.ascontiguousarray(given, _HALF)
        if not np.isfinite(half).all():
            raise StoreError(
                f"{self.path}: features of {video_id!r} hold NaN, or numbers too large for float16"
            )
        return half

    def _end(self) -> tuple[int, int]:
        """The shard and the byte at which the next video begins."""
        if not self._index.records:
            return 0, 0
        last = next(reversed(self._index.records.values()))
        end = aligned(last.layout(self.dim).end)
        return (last.shard, end) if end < SHARD_BYTES else (last.shard + 1, 0)

    def _write(
        self, record: Record, features: Features16, times: npt.NDArray[Any], epochs: npt.NDArray[Any]
    ) -> None:
        layout = record.layout(self.dim)
        data = bytearray(layout.end - record.offset)
        for array, start in ((features, layout.features), (times, layout.times), (epochs, layout.epochs)):
            raw = np.ascontiguousarray(array).tobytes()
            data[start - record.offset : start - record.offset + len(raw)] = raw
        path = self._shard(record.shard)
        is_new = record.offset == 0
        try:
            write_at(path, record.offset, data)
            if is_new:
                sync_folder(self.path)
            self._index.append(record)
        except OSError as problem:
            raise StoreError(
                f"{self.path}: {record.id!r} could not be written: {_why(problem)};"
                f" what was there before is safe (videos: {len(self)})"
            ) from None

    def _shard(self, number: int) -> Path:
        return self.path / f"shard-{number:05d}.bin"

    def _view(
        self, record: Record, layout: Layout, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> npt.NDArray[Any]:
        if not record.frames:
            return np.empty(shape, dtype)
        return np.ndarray(shape, dtype, self._mapped(record, layout.end), offset)

    def _mapped(self, record: Record, end: int) -> mmap.mmap:
        """The shard in memory, as far as `end` at least."""
        mapped = self._maps.get(record.shard)
        if mapped is None or len(mapped) < end:
            path = self._shard(record.shard)
            try:
                with path.open("rb") as file:
                    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except (OSError, ValueError) as problem:  # ValueError: the file is empty
                raise StoreError(f"{path}: cannot be read: {_why(problem)}; copy the store again") from None
            if len(mapped) < end:
                raise StoreError(
                    f"{path}: is shorter than its index says (at {record.id!r}); copy the store again"
                )
            self._maps[record.shard] = mapped
        return mapped


def _why(problem: BaseException) -> str:
    return str(getattr(problem, "strerror", None) or problem)
