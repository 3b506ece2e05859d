"""Takes frames of other processes into a pool: one thread watches all rings of the shared memory."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Self

import numpy as np

from ongebd.errors import ConfigError
from ongebd.pool.queue import Entry
from ongebd.pool.scheduler import Scheduler
from ongebd.pool.shared_memory import KINDS, Handle, Layout, SharedMemory, make_shared_file
from ongebd.pool.stream import PoolStream

_PAUSE = 0.0005
_CHECK_PRODUCERS_EVERY = 0.5


class SharedInput:
    """Takes the frames of some streams from other processes; see `StreamPool.shared_input`.

    It is a context manager:

        streams = [pool.add() for _ in cameras]
        with pool.shared_input(streams, shape=(256, 455)) as shared:
            for handle, camera in zip(shared.handles, cameras):
                Process(target=watch, args=(handle, camera)).start()   # there: handle.open().submit(…)

    A frame stays in its slot until its decision is known; the pool reads it from there. When a process dies,
    its streams start fresh.

    Attributes:
        handles: One for each stream, to send to the process that gives its frames.
    """

    def __init__(
        self, pool: Scheduler, streams: Sequence[PoolStream], shape: tuple[int, int], slots: int
    ) -> None:
        if min(len(streams), slots, *shape) < 1:
            found = f"{len(streams)} streams with {slots} slots of shape {shape}"
            raise ConfigError(f"a shared input needs streams, slots and frames with pixels, not {found}")
        height, width = shape
        layout = Layout(len(streams), slots, (height, width), pool.runtime.window(height, width))
        self._pool, self._streams, self._slots = pool, list(streams), slots
        self._path = make_shared_file(layout)
        self._shared = shared = SharedMemory(self._path, layout)
        # The same arrays serve all frames that a slot will hold.
        self._given = pool.runtime.accept_windows(height, width, shared.pictures, shared.slots)
        self._seen = shared.head.copy()
        self.handles = [Handle(str(self._path), layout, ring) for ring in range(layout.rings)]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="ongebd-pool-input", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    def close(self) -> None:
        """Take what was given so far, and no more; a second call does nothing. The streams stay open."""
        self._stop.set()
        self._thread.join()
        self._shared.closed[:] = 1
        self._path.unlink(missing_ok=True)

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
        heads, seen = self._shared.head.copy(), self._seen
        batch = [
            (self._streams[ring], self._entry(ring, number % self._slots))
            for ring in np.flatnonzero(heads != seen).tolist()
            for number in range(seen[ring], heads[ring])
        ]
        self._seen = heads
        if batch:
            self._pool.push_all(batch)
        return bool(batch)

    def _entry(self, ring: int, slot: int) -> Entry:
        shared, at = self._shared, (ring, slot)
        what = KINDS[shared.kinds[at]]
        if what == "close":
            shared.closed[ring] = 1
        time, since = float(shared.times[at]), float(shared.since[at])
        return Entry(what, self._given[ring][slot], time, since, release=partial(self._free_slot, ring))

    def _free_slot(self, ring: int) -> None:
        self._shared.tail[ring] += 1

    def _check_producers(self) -> None:
        """Start the streams of dead processes fresh, as soon as a slot is free for that request."""
        self._pool.wait(0)  # raises what it stopped for
        shared = self._shared
        for ring in np.flatnonzero(shared.pid).tolist():
            head = int(shared.head[ring])
            if _alive(int(shared.pid[ring])) or head - shared.tail[ring] >= self._slots:
                continue
            at = ring, head % self._slots
            shared.kinds[at], shared.since[at] = KINDS.index("epoch"), -inf
            shared.head[ring] = head + 1
            shared.pid[ring] = 0


def _alive(pid: int) -> bool:
    """Whether a process runs; one that is dead but not yet reaped does not."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return False
    except OSError:  # another user's process, or a system without /proc
        return True
    return state not in ("Z", "X")
