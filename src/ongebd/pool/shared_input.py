"""Takes frames of other processes into a pool: one thread watches all rings of the shared memory."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from ongebd.errors import ConfigError
from ongebd.pool.queue import Entry, Request, WaitingFrame, WaitingRequest
from ongebd.pool.runtime import Runtime
from ongebd.pool.scheduler import Scheduler
from ongebd.pool.shared_memory import (
    CLOSE,
    EPOCH,
    FLUSH,
    FRAME,
    Handle,
    Layout,
    SharedMemory,
    WhenNoSlot,
    make_shared_file,
)
from ongebd.pool.stream import PoolStream

_PAUSE = 0.0005
_CHECK_PRODUCERS_EVERY = 0.5
_REQUESTS: dict[int, Request] = {FLUSH: "flush", EPOCH: "epoch", CLOSE: "close"}


class SharedInput:
    """Takes the frames of some streams from other processes; see `StreamPool.shared_input`.

    It is a context manager:

        streams = [pool.add(max_pending=4) for _ in cameras]
        with pool.shared_input(streams, shape=(256, 455)) as shared:
            for handle, camera in zip(shared.handles, cameras):
                Process(target=watch, args=(handle, camera)).start()   # there: handle.open().submit(…)

    A frame stays in its slot until its decision is known; the pool reads it from there. When a process dies,
    its streams start fresh, and `lost` counts it.

    Attributes:
        handles: One for each stream, to send to the process that gives its frames.
        lost: How many times a process died while it gave frames, counted for each of its streams.
    """

    def __init__(
        self,
        streams: Sequence[PoolStream],
        layout: Layout,
        when_full: WhenNoSlot,
        runtime: Runtime,
        scheduler: Scheduler,
    ) -> None:
        if when_full not in ("block", "drop-newest"):
            raise ConfigError(f"when_full must be block or drop-newest for a shared input, not {when_full!r}")
        for stream in streams:
            if stream.max_pending < layout.slots:
                raise ConfigError(
                    f"stream {stream.name!r} lets {stream.max_pending} frames wait, fewer than the"
                    f" {layout.slots} slots; add it with max_pending={layout.slots}"
                )
        self._path = make_shared_file(layout)
        self._shared = shared = SharedMemory(self._path, layout)
        self._streams = list(streams)
        self._slots = layout.slots
        self._scheduler = scheduler
        pinned = runtime.pin(shared.slots)
        # The same arrays serve all frames that a slot will hold.
        self._given = [
            [runtime.accept_window(picture, *layout.shape, pinned) for picture in ring]
            for ring in shared.pictures
        ]
        self._release = [partial(_free_slot, shared.tail, ring) for ring in range(layout.rings)]
        self._seen = np.zeros(layout.rings, np.int64)
        self.lost = 0
        self.handles = [Handle(str(self._path), layout, ring, when_full) for ring in range(layout.rings)]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="ongebd-pool-input", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    @property
    def dropped(self) -> list[int]:
        """Of each stream, how many frames found no slot."""
        return [int(count) for count in self._shared.dropped]

    def close(self) -> None:
        """Take what was given so far, and no more; a second call does nothing. The streams stay open."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._thread.join()
        self._shared.closed[:] = 1
        with suppress(FileNotFoundError):
            self._path.unlink()

    def _watch(self) -> None:
        next_check = time.monotonic() + _CHECK_PRODUCERS_EVERY
        try:
            while True:
                last = self._stop.is_set()  # read before the rings are, so that nothing is left in them
                found = self._take()
                if time.monotonic() > next_check:
                    self._check_producers()
                    next_check = time.monotonic() + _CHECK_PRODUCERS_EVERY
                if last:
                    return
                if not found:
                    time.sleep(_PAUSE)
        except (ConfigError, RuntimeError):  # the pool is closed or has stopped, which its user sees there
            self._shared.closed[:] = 1

    def _take(self) -> bool:
        """Queue what is new in the rings; whether anything was."""
        heads = self._shared.head.copy()
        (rings,) = np.nonzero(heads != self._seen)
        if not len(rings):
            return False
        entries: list[tuple[PoolStream, Entry]] = []
        for ring, head, seen in zip(
            rings.tolist(), heads[rings].tolist(), self._seen[rings].tolist(), strict=True
        ):
            stream = self._streams[ring]
            entries += [(stream, self._entry(ring, number % self._slots)) for number in range(seen, head)]
        self._seen[rings] = heads[rings]
        self._scheduler.push_all(entries)
        return True

    def _entry(self, ring: int, slot: int) -> Entry:
        shared, release = self._shared, self._release[ring]
        kind = int(shared.kinds[ring, slot])
        if kind == FRAME:
            time, since = float(shared.times[ring, slot]), float(shared.since[ring, slot])
            return WaitingFrame(self._given[ring][slot], time, since, release)
        if kind == CLOSE:
            shared.closed[ring] = 1
        return WaitingRequest(_REQUESTS[kind], release=release)

    def _check_producers(self) -> None:
        """Start the streams of dead processes fresh, as soon as a slot is free for that request."""
        shared = self._shared
        for ring in np.flatnonzero(shared.pid).tolist():
            head = int(shared.head[ring])
            if _alive(int(shared.pid[ring])) or head - shared.tail[ring] >= self._slots:
                continue
            shared.kinds[ring, head % self._slots] = EPOCH
            shared.head[ring] = head + 1
            shared.pid[ring] = 0
            self.lost += 1


def _free_slot(tail: npt.NDArray[np.int64], ring: int) -> None:
    tail[ring] += 1


def _alive(pid: int) -> bool:
    """Whether a process runs; one that is dead but not yet reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return True
    return state not in ("Z", "X")
