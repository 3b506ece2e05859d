"""Frames from one process to another: a ring of slots for each stream, in memory that both share.

One process writes a ring and one reads it, so no lock is needed: the writer fills a slot and then counts it
in `head`; the reader counts it in `tail` when it needs it no longer. This relies on stores becoming
visible in order, as they do on x86-64.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import shutil
import tempfile
import time
from functools import lru_cache
from math import inf, prod
from pathlib import Path
from typing import Literal, NamedTuple, Self, get_args

import numpy as np
import numpy.typing as npt

from ongebd.detector.detector import in_seconds
from ongebd.errors import FeatureError, OngebdError
from ongebd.pool.runtime import Window
from ongebd.types import ImageU8

What = Literal["frame", "epoch", "close"]
KINDS: tuple[What, ...] = get_args(What)
"""What a slot holds, by number: a frame, or a request as of `PoolStream`'s functions."""
_CACHE_LINE = 64
_PAGE = 4096
_PAUSE = 0.0005
_COUNTERS = 8  # of a ring: one cache line


class Layout(NamedTuple):
    """How the memory is divided: the counters of all rings, then their slots.

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
    def slot(self) -> np.dtype[np.void]:
        """A slot: what it holds, seconds of the frame, when it was filled, and the picture; whole lines."""
        top, bottom, left, right = self.window
        shape = bottom - top, right - left, 3
        first_line = [("kind", "i8"), ("time", "f8"), ("since", "f8"), ("", f"V{_CACHE_LINE - 24}")]
        return np.dtype([*first_line, ("picture", "u1", shape), ("rest", f"V{-prod(shape) % _CACHE_LINE}")])

    @property
    def header_bytes(self) -> int:
        """Of the counters, in whole pages."""
        return _PAGE * -(-self.rings * _CACHE_LINE // _PAGE)

    @property
    def bytes(self) -> int:
        """Of all the memory."""
        return self.header_bytes + self.rings * self.slots * self.slot.itemsize


class SharedMemory:
    """The memory, mapped into this process.

    Attributes:
        head, tail, pid, closed: Counters of each ring, (rings,), int64: slots filled and slots freed so far,
            the producer's process (0: none), and whether the stream ended.
        kinds: Numbers of KINDS, (rings, slots), int64.
        times: Seconds of each frame, (rings, slots), float64.
        since: `Entry.since` of each slot.
        slots: The memory of all slots, (bytes,), uint8.
        pictures: (rings, slots, height, width, 3), uint8; the part of each frame that is shared.
    """

    def __init__(self, path: Path, layout: Layout) -> None:
        with path.open("r+b") as file:
            memory = mmap.mmap(file.fileno(), layout.bytes)
        counters = np.frombuffer(memory, np.int64, layout.rings * _COUNTERS).reshape(-1, _COUNTERS)
        self.head, self.tail, self.pid, self.closed = counters.T[:4]
        self.slots: npt.NDArray[np.uint8] = np.frombuffer(memory, np.uint8, offset=layout.header_bytes)
        slots = self.slots.view(layout.slot).reshape(layout.rings, layout.slots)
        self.kinds, self.times, self.since = slots["kind"], slots["time"], slots["since"]
        self.pictures: ImageU8 = slots["picture"]


def make_shared_file(layout: Layout) -> Path:
    """A file of the right size, all zeros, in memory if there is room.

    Raises:
        OngebdError: Neither folder has room.
    """
    needed = layout.bytes
    for folder in (Path("/dev/shm"), Path(tempfile.gettempdir())):
        if folder.is_dir() and shutil.disk_usage(folder).free > needed * 1.05:
            number, name = tempfile.mkstemp(prefix="ongebd-frames-", dir=folder)
            with os.fdopen(number, "wb") as file:
                file.truncate(needed)
            return Path(name)
    raise OngebdError(f"no room for {needed / 2**20:.0f} MiB of shared memory; use fewer slots or frames")


class Handle(NamedTuple):
    """One stream of a shared input, for another process: send it there, and `open` it."""

    path: str
    layout: Layout
    ring: int

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

    Its functions are as of `PoolStream`. What a process gave before it died is decided; then the stream
    starts fresh, for the next process that opens its handle.

    Attributes:
        shape: Height and width of all frames, in pixels.
    """

    def __init__(self, shared: SharedMemory, handle: Handle) -> None:
        self._shared, self._layout, self._ring = shared, handle.layout, handle.ring
        self.shape = handle.layout.shape
        if shared.closed[self._ring]:
            raise OngebdError("the stream is closed; add another")
        shared.pid[self._ring] = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._shared.pid[self._ring] = 0

    def submit(self, frame: ImageU8, time: float, *, timeout: float | None = None) -> bool:
        """Give the next frame, which is copied.

        Args:
            frame: Upright, RGB, uint8, of the shared input's shape.
            time: When it is shown, in seconds.
            timeout: Seconds to wait for a slot at most; 0 drops a frame that finds none.

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
        top, bottom, left, right = self._layout.window
        return self._put("frame", frame[top:bottom, left:right], in_seconds(time), timeout)

    def check(self) -> None:
        """Raise an OngebdError if nothing is taken any more."""
        parent = multiprocessing.parent_process()
        if self._shared.closed[self._ring] or (parent is not None and not parent.is_alive()):
            raise OngebdError("the pool or the stream is closed")

    def new_epoch(self) -> None:
        """Start fresh with the next frame."""
        self._put("epoch")

    def close(self) -> None:
        """End the stream; this process may then exit."""
        self._put("close")
        self._shared.pid[self._ring] = 0

    def _put(
        self, what: What, picture: ImageU8 | None = None, seconds: float = 0.0, timeout: float | None = None
    ) -> bool:
        """Wait for a slot, and fill it; whether one was free in time."""
        shared, ring = self._shared, self._ring
        until = inf if timeout is None else time.monotonic() + timeout
        while True:
            self.check()
            head = int(shared.head[ring])
            if head - shared.tail[ring] < self._layout.slots:
                break
            if time.monotonic() >= until:
                return False
            time.sleep(_PAUSE)
        at = ring, head % self._layout.slots
        if picture is not None:
            shared.pictures[at] = picture
        shared.times[at], shared.kinds[at] = seconds, KINDS.index(what)
        shared.since[at] = time.monotonic() if what == "frame" else -inf
        shared.head[ring] = head + 1
        return True


@lru_cache(maxsize=16)
def _mapped(path: str, layout: Layout) -> SharedMemory:
    """One mapping serves all streams of a shared input in a process."""
    return SharedMemory(Path(path), layout)
