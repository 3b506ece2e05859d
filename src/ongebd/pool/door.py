"""Where frames of other processes come into a pool: one thread looks at all rings at once."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ongebd.errors import ConfigError
from ongebd.pool.ring import (
    CLOSE,
    CLOSED,
    DROPPED,
    EPOCH,
    FLUSH,
    FRAME,
    HEAD,
    PID,
    TAIL,
    Handle,
    Layout,
    Shared,
    WhenNoSlot,
    make_shared,
)
from ongebd.pool.stream import PoolStream
from ongebd.pool.turns import Ended, Ending, Entry, Waiting
from ongebd.types import ImageU8

_PAUSE = 0.0005
_LOOK_AFTER_PRODUCERS = 0.5
_ENDS: dict[int, Ended] = {FLUSH: "flush", EPOCH: "epoch", CLOSE: "close"}


class Door:
    """Takes the frames of some streams from other processes; made by `StreamPool.door`. A context manager.

        with pool.door([pool.add(max_pending=4) for _ in cameras], shape=(256, 455)) as door:
            for handle, camera in zip(door.handles, cameras):
                Process(target=watch, args=(handle, camera)).start()   # there: handle.open().submit(…)

    A frame lies in a slot until its decision is there; the pool reads it where it lies. When a process dies,
    its streams begin anew, and `lost` counts it.

    Attributes:
        handles: One for each stream, to be sent to the process that gives its frames.
    """

    def __init__(
        self,
        streams: Sequence[PoolStream],
        layout: Layout,
        when_full: WhenNoSlot,
        pin: Callable[[npt.NDArray[np.uint8]], Any],
        accept: Callable[[ImageU8, Any], Any],
        push: Callable[[list[tuple[PoolStream, Entry]]], None],
    ) -> None:
        if when_full not in ("block", "drop-newest"):
            raise ConfigError(f"when_full must be block or drop-newest for a door, not {when_full!r}")
        for stream in streams:
            if stream.line.room < layout.slots:
                raise ConfigError(
                    f"stream {stream.name!r} lets {stream.line.room} frames wait, fewer than the door's"
                    f" {layout.slots} slots: add it with max_pending={layout.slots}"
                )
        self._path = make_shared(layout)
        self._shared = Shared(self._path, layout)
        self._streams = list(streams)
        self._slots = layout.slots
        self._push = push
        # What the runtime keeps of a picture in a slot, once and for all.
        pinned = pin(self._shared.pixels)
        self._given = [[accept(picture, pinned) for picture in ring] for ring in self._shared.pictures]
        self._seen = np.zeros(layout.rings, np.int64)
        self._lost = 0
        self.handles = [Handle(str(self._path), layout, ring, when_full) for ring in range(layout.rings)]
        self._freed = [_Freed(self._shared, ring) for ring in range(layout.rings)]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="ongebd-pool-door", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def lost(self) -> int:
        """How many times a process died while it gave frames, counted for each of its streams."""
        return self._lost

    @property
    def dropped(self) -> list[int]:
        """Of each stream, how many frames found no slot."""
        return [int(count) for count in self._shared.counters[:, DROPPED]]

    def close(self) -> None:
        """Take what was given so far, and no more; a second time does nothing. The streams stay open."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._thread.join()
        self._shared.counters[:, CLOSED] = 1
        with suppress(FileNotFoundError):
            self._path.unlink()

    def _watch(self) -> None:
        look = time.monotonic() + _LOOK_AFTER_PRODUCERS
        try:
            while True:
                last = self._stop.is_set()  # seen before the rings are, so that nothing is left in them
                came = self._take()
                if time.monotonic() > look:
                    self._look_after_producers()
                    look = time.monotonic() + _LOOK_AFTER_PRODUCERS
                if last:
                    return
                if not came:
                    time.sleep(_PAUSE)
        except (ConfigError, RuntimeError):  # the pool was closed, or has stopped: whoever uses it is told
            self._shared.counters[:, CLOSED] = 1

    def _take(self) -> bool:
        """Hand over what is new in the rings; whether anything was."""
        heads = self._shared.counters[:, HEAD].copy()
        rings = np.flatnonzero(heads != self._seen)
        if not len(rings):
            return False
        entries: list[tuple[PoolStream, Entry]] = []
        for ring, head, seen in zip(
            rings.tolist(), heads[rings].tolist(), self._seen[rings].tolist(), strict=True
        ):
            stream = self._streams[ring]
            entries += [(stream, self._entry(ring, number % self._slots)) for number in range(seen, head)]
        self._seen[rings] = heads[rings]
        self._push(entries)
        return True

    def _entry(self, ring: int, slot: int) -> Entry:
        shared = self._shared
        kind = int(shared.kinds[ring, slot])
        if kind == FRAME:
            seconds, since = float(shared.times[ring, slot]), float(shared.since[ring, slot])
            return Waiting(self._given[ring][slot], seconds, since, self._freed[ring])
        if kind == CLOSE:
            shared.counters[ring, CLOSED] = 1
        return Ending(_ENDS[kind], freed=self._freed[ring])

    def _look_after_producers(self) -> None:
        """In the place of a process that died: say that its streams begin anew, once there is a slot."""
        for ring in np.flatnonzero(self._shared.counters[:, PID]).tolist():
            counters = self._shared.counters[ring]
            head = int(counters[HEAD])
            if _alive(int(counters[PID])) or head - counters[TAIL] >= self._slots:
                continue
            self._shared.kinds[ring, head % self._slots] = EPOCH
            counters[HEAD] = head + 1
            counters[PID] = 0
            self._lost += 1


class _Freed:
    """Counts a slot of a ring as free again."""

    def __init__(self, shared: Shared, ring: int) -> None:
        self._counters = shared.counters[ring]

    def __call__(self) -> None:
        self._counters[TAIL] += 1


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
