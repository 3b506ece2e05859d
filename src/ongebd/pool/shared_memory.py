"""Frames from one process to another: a ring of slots for each stream, in memory that both share.

One process writes a ring and one reads it, so no lock is needed: the writer fills a slot and then counts it
in `head`; the reader counts it in `tail` when nobody needs it any more. This relies on stores becoming
visible in order, as they do on x86-64.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from ongebd.detector.due import in_seconds
from ongebd.errors import FeatureError, OngebdError
from ongebd.pool.runtime.base import Window
from ongebd.types import ImageU8

FRAME, FLUSH, EPOCH, CLOSE = range(4)
"""What a slot holds: a frame, or a request as of `PoolStream`'s functions of that name."""
WhenNoSlot = Literal["block", "drop-newest"]
_COUNTERS = 8  # of a ring: one cache line
_CACHE_LINE = 64
_PAGE = 4096
_PAUSE = 0.0005


@dataclass(frozen=True, slots=True)
class Layout:
    """How the memory is divided.

    Attributes:
        rings: How many streams.
        slots: Frames of each that may be under way.
        shape: Height and width of every frame, in pixels.
        window: The part of each frame that is shared.
    """

    rings: int
    slots: int
    shape: tuple[int, int]
    window: Window

    @property
    def picture_shape(self) -> tuple[int, int, int]:
        """Of the shared part: (height, width, 3)."""
        top, bottom, left, right = self.window
        return bottom - top, right - left, 3

    @property
    def slot_bytes(self) -> int:
        """From one picture to the next: whole cache lines."""
        height, width, colours = self.picture_shape
        return _rounded_up(height * width * colours, _CACHE_LINE)

    @property
    def header_bytes(self) -> int:
        """Of everything before the pictures, in whole pages."""
        return _rounded_up(8 * self.rings * (_COUNTERS + 3 * self.slots), _PAGE)

    @property
    def bytes(self) -> int:
        """Of all the memory."""
        return self.header_bytes + self.rings * self.slots * self.slot_bytes


class SharedMemory:
    """The memory, mapped into this process.

    Attributes:
        head, tail, dropped, pid, closed: Counters of each ring, (rings,), int64: slots filled and slots freed
            so far, frames that found no slot, the producer's process (0: none), and whether the stream ended.
        kinds: FRAME, FLUSH, EPOCH or CLOSE, (rings, slots), int64.
        times: Seconds of each frame, (rings, slots), float64.
        since: When each slot was filled, on the machine's monotonic clock.
        pixels: The memory of all pictures, (bytes,), uint8.
        pictures: (rings, slots, height, width, 3), uint8; the part of each frame that is shared.
    """

    def __init__(self, path: Path, layout: Layout) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), layout.bytes)
        grid = layout.rings, layout.slots
        numbers = np.frombuffer(self._map, np.int64, layout.rings * (_COUNTERS + 3 * layout.slots))
        counters, slots = np.split(numbers, [layout.rings * _COUNTERS])
        self.head, self.tail, self.dropped, self.pid, self.closed = counters.reshape(-1, _COUNTERS).T[:5]
        times, since, self.kinds = slots.reshape(3, *grid)
        self.times: npt.NDArray[np.float64] = times.view(np.float64)
        self.since: npt.NDArray[np.float64] = since.view(np.float64)
        self.pixels: npt.NDArray[np.uint8] = np.frombuffer(self._map, np.uint8, offset=layout.header_bytes)
        shape = (*grid, *layout.picture_shape)
        row = 3 * layout.picture_shape[1]
        strides = layout.slots * layout.slot_bytes, layout.slot_bytes, row, 3, 1
        self.pictures: ImageU8 = as_strided(self.pixels, shape, strides)


def make_shared_file(layout: Layout) -> Path:
    """A file of the right size, all zeros, in memory if there is room.

    Raises:
        OngebdError: There is no room.
    """
    needed = layout.bytes
    for folder in (Path("/dev/shm"), Path(tempfile.gettempdir())):
        if folder.is_dir() and shutil.disk_usage(folder).free > needed * 1.05:
            number, name = tempfile.mkstemp(prefix="ongebd-frames-", dir=folder)
            with os.fdopen(number, "wb") as file:
                file.truncate(needed)
            return Path(name)
    raise OngebdError(
        f"no room for {needed / 2**20:.0f} MiB of shared memory; use fewer slots, smaller frames or more"
        " /dev/shm"
    )


@dataclass(frozen=True, slots=True)
class Handle:
    """One stream of a shared input, for another process: send it there, and `open` it."""

    path: str
    layout: Layout
    ring: int
    when_full: WhenNoSlot

    def open(self) -> Producer:
        """Begin to give frames; one process at a time.

        Raises:
            OngebdError: The pool or the stream is closed.
        """
        try:
            return Producer(_mapped(self.path, self.layout), self)
        except FileNotFoundError:
            raise OngebdError("the pool's shared input is closed") from None


class Producer:
    """Gives the frames of one stream from another process; made by `Handle.open`. A context manager.

    Its functions are those of `PoolStream`. What a process gave before it died is decided; then the stream
    starts fresh, for the next process that opens its handle.
    """

    def __init__(self, shared: SharedMemory, handle: Handle) -> None:
        self._shared = shared
        self._ring = ring = handle.ring
        self._layout = handle.layout
        self._when_full = handle.when_full
        if shared.closed[ring]:
            raise OngebdError("the stream is closed; add another")
        shared.pid[ring] = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shared.pid[self._ring] = 0

    @property
    def dropped(self) -> int:
        """Frames of this stream that found no slot."""
        return int(self._shared.dropped[self._ring])

    def submit(self, frame: ImageU8, time: float, *, timeout: float | None = None) -> bool:
        """Give the next frame, which is copied.

        Args:
            frame: Upright, RGB, uint8, of the shared input's shape.
            time: When it is shown, in seconds.
            timeout: Seconds to wait for a slot at most, if the input blocks.

        Returns:
            Whether it was taken; False if it was dropped.

        Raises:
            FeatureError: It has another shape or type.
            ConfigError: The time is not a number.
            OngebdError: The pool or the stream is closed.
        """
        frame, wanted = np.asarray(frame), (*self._layout.shape, 3)
        if frame.shape != wanted or frame.dtype != np.uint8:
            raise FeatureError(f"the frame is {frame.dtype} of shape {frame.shape}, wanted uint8 of {wanted}")
        seconds = in_seconds(time)
        if not self._wait_for_slot(timeout if self._when_full == "block" else 0.0):
            self._shared.dropped[self._ring] += 1
            return False
        slot = int(self._shared.head[self._ring]) % self._layout.slots
        top, bottom, left, right = self._layout.window
        self._shared.pictures[self._ring, slot] = frame[top:bottom, left:right]
        self._fill(FRAME, seconds)
        return True

    def flush(self) -> None:
        """Ask for decisions held back and the open boundary, after all frames so far."""
        self._request(FLUSH)

    def new_epoch(self) -> None:
        """Start fresh with the next frame."""
        self._request(EPOCH)

    def close(self) -> None:
        """End the stream; this process may then exit."""
        self._request(CLOSE)
        self._shared.pid[self._ring] = 0

    def _request(self, kind: int) -> None:
        self._wait_for_slot(None)
        self._fill(kind, 0.0)

    def _fill(self, kind: int, seconds: float) -> None:
        shared, head = self._shared, int(self._shared.head[self._ring])
        at = self._ring, head % self._layout.slots
        shared.times[at] = seconds
        shared.since[at] = time.monotonic()
        shared.kinds[at] = kind
        shared.head[self._ring] = head + 1

    def _wait_for_slot(self, timeout: float | None) -> bool:
        shared, ring = self._shared, self._ring
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            if shared.closed[ring]:
                raise OngebdError("the pool or the stream is closed")
            if shared.head[ring] - shared.tail[ring] < self._layout.slots:
                return True
            if until is not None and time.monotonic() >= until:
                return False
            time.sleep(_PAUSE)


@lru_cache(maxsize=16)
def _mapped(path: str, layout: Layout) -> SharedMemory:
    """One mapping serves all streams of a shared input in a process."""
    return SharedMemory(Path(path), layout)


def _rounded_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit
