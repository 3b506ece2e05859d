"""What a stream's last hour looked like, in bounded memory: its points, its boundaries, their pictures."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from math import ceil

import numpy as np

from ongebd.watch.records import Found, Onset, Point

HOUR = 3600.0
_MOST_EVENTS = 20_000
# A point without its stream, in the order of its fields.
_ROW = np.dtype(
    [
        ("epoch", np.int64),
        *((name, np.float64) for name in ("time", "wall", "error", "mean", "std", "threshold", "z")),
        ("positive", np.bool_),
        ("ready", np.bool_),
    ]
)


class History:
    """The points of a stream's last hour, 66 bytes each, in a ring that is filled from its beginning.

    Args:
        stream: Its key.
        rate: Points a second at most.
    """

    def __init__(self, stream: str, rate: float) -> None:
        self._stream = stream
        self._rows = np.zeros(ceil(HOUR * rate) + 1, _ROW)
        self._next = 0  # where the next point goes
        self._count = 0
        self._lock = threading.Lock()

    def add(self, point: Point) -> None:
        """Take one point; the oldest leaves where there is no room."""
        row = (
            *(point.epoch, point.time, point.wall, point.error, point.mean, point.std),
            *(point.threshold, point.z, point.positive, point.ready),
        )
        with self._lock:
            self._rows[self._next] = row
            self._next = (self._next + 1) % len(self._rows)
            self._count = min(self._count + 1, len(self._rows))

    def since(self, wall: float) -> list[Point]:
        """The points from a moment on (Unix seconds), oldest first."""
        with self._lock:
            order = np.arange(self._next - self._count, self._next) % len(self._rows)
            kept = self._rows[order]
        return [Point(self._stream, *row) for row in kept[kept["wall"] >= wall].tolist()]


class Events:
    """The boundaries of a stream's last hour."""

    def __init__(self) -> None:
        self._events: deque[Onset | Found] = deque(maxlen=_MOST_EVENTS)
        self._lock = threading.Lock()

    def add(self, event: Onset | Found) -> None:
        """Take one; those older than an hour leave."""
        with self._lock:
            self._events.append(event)
            while self._events[0].wall < event.wall - HOUR:
                self._events.popleft()

    def since(self, wall: float) -> list[Onset | Found]:
        """Those from a moment on (Unix seconds), oldest first."""
        with self._lock:
            return [event for event in self._events if event.wall >= wall]


class Pictures:
    """The newest boundaries' pictures, by number.

    Args:
        most_bytes: Of all together; the oldest go.
    """

    def __init__(self, most_bytes: int = 16 * 1024 * 1024) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._pictures: OrderedDict[int, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, number: int, picture: bytes) -> None:
        """Keep one."""
        with self._lock:
            self._pictures[number] = picture
            self._bytes += len(picture)
            while self._bytes > self._most and len(self._pictures) > 1:
                self._bytes -= len(self._pictures.popitem(last=False)[1])

    def get(self, number: int) -> bytes | None:
        """One, as long as it is kept."""
        with self._lock:
            return self._pictures.get(number)
