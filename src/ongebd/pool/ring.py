"""Frames from one process to another: a ring of slots for each stream, in memory that both share.

One process writes a ring, and one reads it, so no lock is needed: the writer fills a slot and then counts it
in `head`; the reader counts it in `tail` when nobody needs it any more. This relies on stores being seen in
their order, as they are on x86-64.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from ongebd.detector.due import in_seconds
from ongebd.errors import ConfigError, FeatureError, OngebdError
from ongebd.pool.runtime.base import Window
from ongebd.types import ImageU8

HEAD, TAIL, DROPPED, PID, CLOSED = range(5)
FRAME, FLUSH, EPOCH, CLOSE = range(4)
"""What a slot says; all but the first are what `PoolStream`'s functions of that name do."""
WhenNoSlot = Literal["block", "drop-newest"]
_COLUMNS = 8  # counters of a ring, one cache line
_LINE = 64
_PAGE = 4096
_PAUSE = 0.0005


@dataclass(frozen=True, slots=True)
class Layout:
    """How the memory is shared out.

    Attributes:
        rings: How many streams.
        slots: Frames of each that may be under way.
        shape: Height and width of every frame, in pixels.
        window: The part of it that goes through.
    """

    rings: int
    slots: int
    shape: tuple[int, int]
    window: Window

    @property
    def kept(self) -> tuple[int, int]:
        """Height and width of that part."""
        top, bottom, left, right = self.window
        return bottom - top, right - left

    @property
    def picture_bytes(self) -> int:
        """Of a frame, RGB."""
        return self.kept[0] * self.kept[1] * 3

    @property
    def slot_bytes(self) -> int:
        """From one frame to the next: whole cache lines."""
        return -(-self.picture_bytes // _LINE) * _LINE

    @property
    def head_bytes(self) -> int:
        """Of all that is no picture, in whole pages."""
        small = 8 * self.rings * (_COLUMNS + 3 * self.slots)
        return -(-small // _PAGE) * _PAGE

    @property
    def bytes(self) -> int:
        """Of all of it."""
        return self.head_bytes + self.rings * self.slots * self.slot_bytes


class Shared:
    """The memory, mapped into this process.

    Attributes:
        counters: (rings, 8), int64; columns are HEAD, TAIL, DROPPED, PID and CLOSED.
        times: Of each slot, seconds of its frame, (rings, slots), float64.
        since: When it was filled, on the machine's monotonic clock.
        kinds: FRAME, FLUSH, EPOCH or CLOSE, int64.
        pixels: All that is pictures, (bytes,), uint8.
        pictures: (rings, slots, height, width, 3), uint8; of the part that goes through.
    """

    def __init__(self, path: Path, layout: Layout) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), layout.bytes)
        cells = layout.rings * layout.slots
        small = np.frombuffer(self._map, np.float64, layout.rings * _COLUMNS + 3 * cells)
        counters, times, since, kinds = np.split(small, np.cumsum([layout.rings * _COLUMNS, cells, cells]))
        grid = layout.rings, layout.slots
        self.counters: npt.NDArray[np.int64] = counters.view(np.int64).reshape(layout.rings, _COLUMNS)
        self.times: npt.NDArray[np.float64] = times.reshape(grid)
        self.since: npt.NDArray[np.float64] = since.reshape(grid)
        self.kinds: npt.NDArray[np.int64] = kinds.view(np.int64).reshape(grid)
        self.pixels: npt.NDArray[np.uint8] = np.frombuffer(self._map, np.uint8, offset=layout.head_bytes)
        slots = self.pixels.reshape(*grid, layout.slot_bytes)[:, :, : layout.picture_bytes]
        row = 3 * layout.kept[1]
        self.pictures: ImageU8 = as_strided(slots, (*grid, *layout.kept, 3), (*slots.strides[:2], row, 3, 1))


def make_shared(layout: Layout) -> Path:
    """A file of the right size, in memory where there is room, all zeros.

    Raises:
        OngebdError: There is no room.
    """
    needed = layout.bytes
    for folder in (Path("/dev/shm"), Path(tempfile.gettempdir())):
        if folder.is_dir() and shutil.disk_usage(folder).free > needed * 1.05:
            number, name = tempfile.mkstemp(prefix="ongebd-door-", dir=folder)
            with os.fdopen(number, "wb") as file:
                file.truncate(needed)
            return Path(name)
    raise OngebdError(
        f"no room for {needed / 2**20:.0f} MiB of shared memory: fewer slots, smaller frames or more /dev/shm"
    )


@dataclass(frozen=True, slots=True)
class Handle:
    """One stream's side of a door, for another process: send it there, and `open` it."""

    path: str
    layout: Layout
    ring: int
    when_full: WhenNoSlot

    def open(self) -> Producer:
        """Begin to give frames; one process at a time.

        Raises:
            OngebdError: The pool has gone.
        """
        try:
            return Producer(_mapped(self.path, self.layout), self)
        except FileNotFoundError:
            raise OngebdError("the pool has closed its door; nobody takes frames any more") from None


class Producer:
    """Gives the frames of one stream from another process; made by `Handle.open`. A context manager.

    It takes what `PoolStream` takes. What was given before a process died is decided; then the stream begins
    anew, for whoever opens its handle next.
    """

    def __init__(self, shared: Shared, handle: Handle) -> None:
        self._shared = shared
        self._ring = handle.ring
        self._slots = handle.layout.slots
        self._shape = (*handle.layout.shape, 3)
        self._window = handle.layout.window
        self._when_full = handle.when_full
        self._counters = shared.counters[handle.ring]
        if self._counters[CLOSED]:
            raise OngebdError("the stream is closed; add another")
        self._counters[PID] = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._counters[PID] = 0

    @property
    def dropped(self) -> int:
        """Frames of this stream that found no slot."""
        return int(self._counters[DROPPED])

    def submit(self, frame: ImageU8, time: float, *, timeout: float | None = None) -> bool:
        """Give the next frame, which is copied.

        Args:
            frame: Upright, RGB, uint8, of the door's shape.
            time: When it is shown, in seconds.
            timeout: Seconds to wait for a slot at most, where the door blocks.

        Returns:
            Whether it was taken; False where it was dropped.

        Raises:
            FeatureError: It has another shape or type.
            ConfigError: The time is no number.
            OngebdError: The pool, or the stream, is closed.
        """
        frame = np.asarray(frame)
        if frame.shape != self._shape or frame.dtype != np.uint8:
            raise FeatureError(
                f"the frame is {frame.dtype} of shape {frame.shape}; this door takes uint8 of {self._shape}"
            )
        seconds = in_seconds(time)
        if not self._wait_for_slot(timeout if self._when_full == "block" else 0.0):
            self._counters[DROPPED] += 1
            return False
        slot = int(self._counters[HEAD]) % self._slots
        top, bottom, left, right = self._window
        self._shared.pictures[self._ring, slot] = frame[top:bottom, left:right]
        self._fill(FRAME, seconds)
        return True

    def flush(self) -> None:
        """Ask for what is still held back and open, after all frames so far."""
        self._say(FLUSH)

    def new_epoch(self) -> None:
        """Begin anew with the next frame."""
        self._say(EPOCH)

    def close(self) -> None:
        """The stream is over, and this process may go."""
        self._say(CLOSE)
        self._counters[PID] = 0

    def _say(self, kind: int) -> None:
        self._wait_for_slot(None)
        self._fill(kind, 0.0)

    def _fill(self, kind: int, seconds: float) -> None:
        head = int(self._counters[HEAD])
        at = self._ring, head % self._slots
        self._shared.times[at] = seconds
        self._shared.since[at] = time.monotonic()
        self._shared.kinds[at] = kind
        self._counters[HEAD] = head + 1

    def _wait_for_slot(self, timeout: float | None) -> bool:
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            if self._counters[CLOSED]:
                raise OngebdError("the pool or the stream is closed; nobody takes frames any more")
            if self._counters[HEAD] - self._counters[TAIL] < self._slots:
                return True
            if until is not None and time.monotonic() >= until:
                return False
            time.sleep(_PAUSE)


@lru_cache(maxsize=16)
def _mapped(path: str, layout: Layout) -> Shared:
    """One mapping serves all streams of a door in a process."""
    return Shared(Path(path), layout)


def check_layout(
    rings: int, slots: int, shape: tuple[int, int], window: Callable[[int, int], Window]
) -> Layout:
    """The layout, or an error that says what is wrong; `window` tells which part of a picture matters.

    Raises:
        ConfigError: A number is below 1.
    """
    if rings < 1:
        raise ConfigError("a door needs a stream")
    if slots < 1:
        raise ConfigError(f"slots must be 1 or more, not {slots}")
    if min(shape) < 1:
        raise ConfigError(f"shape must be the height and width of all frames in pixels, not {shape}")
    height, width = int(shape[0]), int(shape[1])
    return Layout(rings, slots, (height, width), window(height, width))
