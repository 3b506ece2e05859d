"""The last hour of one stream, kept once and in bounded memory: points, boundaries, states, pictures."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ongebd.types import Kind
from ongebd.watch.records import Filmed, Found, Incident, Onset, Point, StateChanged

HOUR = 3600.0
FINE_SECONDS = 65.0
BIN_SECONDS = (0.5, 3.0)
"""Widths of the bins for a view of ten minutes and for one of an hour."""
BINS = 1210
POSITIVE, READY, FIRST = 1, 2, 4
"""Flags of a point or bin: it fired; mean and threshold mean something; it is the first of its epoch."""
_SCALE = 10_000
_MOST_BOUNDARIES = 2000
_MOST_STATES = 500
_MOST_PICTURE_BYTES = 16 * 1024 * 1024
_NUMBERS = ("wall", "error", "mean", "threshold")
_ROW = np.dtype([("epoch", np.int64), *((name, np.float64) for name in _NUMBERS), ("flags", np.uint8)])
Rows = npt.NDArray[Any]


@dataclass(slots=True)
class KnownBoundary:
    """What is known about one boundary.

    Attributes:
        version: Of the history, when this last changed.
        found: Its centre, once that is known; with its peak and kind, once these are.
        clip: The file of its clip, once that is written; the file may have been deleted since.
        clip_settled: Whether the clip is written, or known to be impossible.
    """

    onset: Onset
    version: int
    found: Found | None = None
    clip: Path | None = None
    clip_settled: bool = False

    def filmed(self) -> Filmed | None:
        """The record that tells of both, once the centre is known."""
        found = self.found
        return None if found is None else Filmed(found, self.clip)


class Best(NamedTuple):
    """Names the best picture of an incident."""

    number: int


class Place(NamedTuple):
    """A place in a history: how many points and how many other changes came before it."""

    points: int = 0
    version: int = 0


class News(NamedTuple):
    """What came after a place in a history, up to `place`; the rows are points."""

    place: Place
    rows: Rows
    boundaries: list[KnownBoundary]
    states: list[StateChanged]


class History:
    """The last hour of a stream. Any thread may call it.

    Args:
        rate: The most points a second.
    """

    def __init__(self, rate: float) -> None:
        self._rows = np.zeros(ceil(HOUR * rate) + 1, _ROW)  # a ring
        self._count = 0  # points so far
        self._version = 0  # changes of boundaries and states so far
        self._boundaries: dict[int, KnownBoundary] = {}
        self._states: deque[tuple[int, StateChanged]] = deque(maxlen=_MOST_STATES)
        self._incidents: dict[int, Incident] = {}  # the newest record of each
        self._pictures: OrderedDict[int | Best, bytes] = OrderedDict()
        self._picture_bytes = 0
        self._lock = threading.Lock()

    @property
    def place(self) -> Place:
        """Where it is now."""
        with self._lock:
            return Place(self._count, self._version)

    def add_point(self, point: Point) -> None:
        """Keep a point; the oldest makes room for it."""
        flags = POSITIVE * point.positive + READY * point.ready
        with self._lock:
            if self._count and point.epoch != self._rows["epoch"][(self._count - 1) % len(self._rows)]:
                flags += FIRST
            numbers = [getattr(point, name) for name in _NUMBERS]
            self._rows[self._count % len(self._rows)] = (point.epoch, *numbers, flags)
            self._count += 1

    def add_state(self, change: StateChanged) -> None:
        """Keep a change of state."""
        with self._lock:
            self._version += 1
            self._states.append((self._version, change))

    def add_onset(self, onset: Onset) -> None:
        """Keep a new boundary; the oldest makes room for it."""
        with self._lock:
            self._version += 1
            self._boundaries[onset.number] = KnownBoundary(onset, self._version)
            if len(self._boundaries) > _MOST_BOUNDARIES:
                del self._boundaries[next(iter(self._boundaries))]

    def add_centre(self, found: Found) -> Filmed | None:
        """The centre of a boundary is known, or its kind too; returns the boundary if its clip is settled."""
        with self._lock:
            known = self._changed(found.number)
            known.found = found
            return known.filmed() if known.clip_settled else None

    def settle_clip(self, number: int, path: Path | None) -> Filmed | None:
        """A boundary's clip is in a file, or will never be; returns the boundary if its centre is known."""
        with self._lock:
            if number not in self._boundaries or self._boundaries[number].clip_settled:
                return None
            known = self._changed(number)
            known.clip, known.clip_settled = path, True
            return known.filmed()

    def add_incident(self, incident: Incident, picture: bytes | None = None) -> None:
        """Keep an incident's newest record, and its best picture if that is new."""
        with self._lock:
            self._incidents[incident.number] = incident
            if len(self._incidents) > _MOST_BOUNDARIES:
                del self._incidents[next(iter(self._incidents))]
        if picture is not None:
            self.add_picture(Best(incident.number), picture)

    def incidents(self, since: float = 0.0) -> list[Incident]:
        """The newest record of each incident that started since a moment (Unix seconds), by number."""
        with self._lock:
            return [one for one in self._incidents.values() if one.wall >= since]

    def add_picture(self, of: int | Best, picture: bytes) -> None:
        """Keep the picture (JPEG) of a boundary or incident; the oldest ones make room for it."""
        with self._lock:
            self._picture_bytes += len(picture) - len(self._pictures.pop(of, b""))
            self._pictures[of] = picture
            while self._picture_bytes > _MOST_PICTURE_BYTES and len(self._pictures) > 1:
                self._picture_bytes -= len(self._pictures.popitem(last=False)[1])

    def picture(self, of: int | Best) -> bytes | None:
        """The picture of a boundary's onset, or the best one of an incident, while it is kept."""
        return self._pictures.get(of)

    def kind(self, number: int) -> Kind | None:
        """The kind of a boundary, once it is known."""
        known = self._boundaries.get(number)
        return None if known is None or known.found is None else known.found.boundary.kind

    def clip(self, number: int) -> Path | None:
        """The file of a boundary's clip, if it has one."""
        known = self._boundaries.get(number)
        return None if known is None else known.clip

    def boundaries(self, since: float = 0.0) -> list[KnownBoundary]:
        """The boundaries whose onset came since a moment (Unix seconds), by number."""
        with self._lock:
            return [one for one in self._boundaries.values() if one.onset.wall >= since]

    def news(self, after: Place) -> News:
        """Everything that came after a place."""
        with self._lock:
            return News(
                Place(self._count, self._version),
                self._between(after.points, self._count),
                [known for known in self._boundaries.values() if known.version > after.version],
                [change for version, change in self._states if version > after.version],
            )

    def until(self, place: Place, now: float) -> tuple[Rows, list[KnownBoundary], list[StateChanged]]:
        """The hour up to a place; of the states also the one in force when the hour began."""
        since = now - HOUR
        with self._lock:
            rows = self._between(0, place.points)
            states = [change for version, change in self._states if version <= place.version]
        while len(states) > 1 and states[1].wall <= since:
            del states[0]
        return rows, self.boundaries(since), states

    def _changed(self, number: int) -> KnownBoundary:
        known = self._boundaries[number]
        self._version += 1
        known.version = self._version
        return known

    def _between(self, first: int, end: int) -> Rows:
        """A copy of the points with these numbers, as far as they are kept."""
        oldest = max(first, self._count - len(self._rows), 0)
        return self._rows[np.arange(oldest, end) % len(self._rows)]


def packed_points(rows: Rows) -> dict[str, list[int]]:
    """Points as columns of small whole numbers: a third of the bytes that an object for each would need.

    Returns:
        `t` wall time in ms (the first since 1970, then steps), `e` error, `m` mean, `h` threshold, each times
        10,000, and `f` flags.
    """
    return {"t": _steps(_whole(1000 * rows["wall"])), **_levels(rows), "f": rows["flags"].tolist()}


def packed_past(rows: Rows) -> dict[str, Any]:
    """An hour's curve: every point of the last minute, and bins of the rest, which lose no peak.

    Returns:
        `fine` as in `packed_points`, and `bins`, one for each of `BIN_SECONDS`: `w` the width, `n` the bins'
        numbers (the first, then steps), `c` how many points each has, `e`, `l` and `u` their mean, smallest
        and largest error, the rest as in `packed_points`.
    """
    set_back = np.flatnonzero(np.diff(rows["wall"]) < -2.0)  # the clock: a new curve begins
    rows = rows[set_back[-1] + 1 :] if len(set_back) else rows
    newest = rows["wall"][-1] if len(rows) else 0.0
    fine = int(np.searchsorted(np.maximum.accumulate(rows["wall"]), newest - FINE_SECONDS))
    return {"fine": packed_points(rows[fine:]), "bins": [_binned(rows, width) for width in BIN_SECONDS]}


def _binned(rows: Rows, width: float) -> dict[str, Any]:
    numbers = np.maximum.accumulate(np.floor(rows["wall"] / width).astype(np.int64))
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))[-BINS:]
    if not len(starts):
        return {"w": width, **{name: [] for name in "nclumehf"}}
    rows, numbers, starts = rows[starts[0] :], numbers[starts], starts - starts[0]
    counts = np.diff(starts, append=len(rows))
    last = starts + counts - 1
    once = np.bitwise_or.reduceat(rows["flags"], starts) & (POSITIVE | FIRST)
    return {
        "w": width,
        "n": _steps(numbers),
        "c": counts.tolist(),
        "l": _whole(_SCALE * np.minimum.reduceat(rows["error"], starts)).tolist(),
        "u": _whole(_SCALE * np.maximum.reduceat(rows["error"], starts)).tolist(),
        **_levels(rows[last]),
        "e": _whole(_SCALE * np.add.reduceat(rows["error"], starts) / counts).tolist(),
        "f": (once | rows["flags"][last] & READY).tolist(),
    }


def _levels(rows: Rows) -> dict[str, list[int]]:
    columns = {"e": "error", "m": "mean", "h": "threshold"}
    return {short: _whole(_SCALE * rows[name]).tolist() for short, name in columns.items()}


def _whole(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    return np.rint(values).astype(np.int64)


def _steps(values: npt.NDArray[np.int64]) -> list[int]:
    steps: list[int] = np.diff(values, prepend=0).tolist()
    return steps
