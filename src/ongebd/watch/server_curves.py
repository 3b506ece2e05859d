"""An hour of a stream's curve in bounded memory: every point of the last minute, then bins of min and max."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ongebd.watch.records import Point

FINE_SECONDS = 65.0
BIN_WIDTHS = (0.5, 3.0)
"""Seconds of a bin, for a view of ten minutes and for one of an hour."""
BINS = 1210
_MOST_FINE = 4096
_SCALE = 10_000
POSITIVE, READY, FIRST = 1, 2, 4
"""Flags of a point or bin: fired; mean and threshold mean something; first of its epoch."""


@dataclass(slots=True)
class Bin:
    """The points of a span of wall time: their errors, and the newest of what changes slowly."""

    number: int
    count: int
    total: float
    low: float
    high: float
    mean: float
    threshold: float
    flags: int


class BinnedCurve:
    """Min/max decimation: the newest `count` bins of `width` seconds. No peak is lost, whatever the view."""

    def __init__(self, width: float, count: int = BINS) -> None:
        self.width = width
        self.bins: deque[Bin] = deque(maxlen=count)

    def add(self, point: Point, flags: int) -> None:
        """Take one point; a clock that was set back by more than a few bins begins the curve anew."""
        number = math.floor(point.wall / self.width)
        newest = self.bins[-1] if self.bins else None
        if newest is not None and number < newest.number - 4:
            self.bins.clear()
            newest = None
        if newest is None or number > newest.number:
            error = point.error
            self.bins.append(Bin(number, 1, error, error, error, point.mean, point.threshold, flags))
            return
        newest.count, newest.total = newest.count + 1, newest.total + point.error
        newest.low, newest.high = min(newest.low, point.error), max(newest.high, point.error)
        newest.mean, newest.threshold = point.mean, point.threshold
        newest.flags = (newest.flags & ~READY) | flags

    def packed(self) -> dict[str, Any]:
        """The bins as columns.

        Returns:
            `w` width in seconds, `n` numbers (the first, then steps), `c` how many points, `e`, `l` and `u`
            average, smallest and largest error, the rest as in `pack_points`.
        """
        bins = list(self.bins)
        return {
            "w": self.width,
            "n": _steps([one.number for one in bins]),
            "c": [one.count for one in bins],
            "e": [_scaled(one.total / one.count) for one in bins],
            "l": [_scaled(one.low) for one in bins],
            "u": [_scaled(one.high) for one in bins],
            "m": [_scaled(one.mean) for one in bins],
            "h": [_scaled(one.threshold) for one in bins],
            "f": [one.flags for one in bins],
        }


class Curve:
    """What the page shows of one stream's past, kept up to date point by point."""

    def __init__(self) -> None:
        self._fine: deque[tuple[Point, int]] = deque(maxlen=_MOST_FINE)
        self._binned = [BinnedCurve(width) for width in BIN_WIDTHS]
        self._epoch: int | None = None

    def add(self, point: Point) -> int:
        """Take one point; returns its flags."""
        flags = (
            POSITIVE * point.positive + READY * point.ready + FIRST * (self._epoch not in (None, point.epoch))
        )
        self._epoch = point.epoch
        self._fine.append((point, flags))
        while point.wall - self._fine[0][0].wall > FINE_SECONDS:
            self._fine.popleft()
        for binned in self._binned:
            binned.add(point, flags)
        return flags

    def packed(self) -> dict[str, Any]:
        """All of it, for a page that loads."""
        return {"fine": pack_points(self._fine), "bins": [binned.packed() for binned in self._binned]}


def pack_points(points: Iterable[tuple[Point, int]]) -> dict[str, Any]:
    """Points as columns of small whole numbers, which are a third of the bytes of an object for each.

    Returns:
        `t` wall time in ms (the first since 1970, then steps), `e` error, `m` mean, `h` threshold, each
        times 10,000, and `f` flags.
    """
    rows = list(points)
    return {
        "t": _steps([round(point.wall * 1000) for point, _ in rows]),
        "e": [_scaled(point.error) for point, _ in rows],
        "m": [_scaled(point.mean) for point, _ in rows],
        "h": [_scaled(point.threshold) for point, _ in rows],
        "f": [flags for _, flags in rows],
    }


def _steps(values: Sequence[int]) -> list[int]:
    return [*values[:1], *(after - before for before, after in pairwise(values))]


def _scaled(value: float) -> int | None:
    return round(value * _SCALE) if math.isfinite(value) else None
