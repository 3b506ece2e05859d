"""The last minutes of one stream, in bounded memory: points, boundaries, pictures."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ongebd.types import Kind
from ongebd.watch.records import Filmed, Found, Onset, Point

CURVE_SECONDS = 600
_MOST_BOUNDARIES = 2000
_MOST_PICTURE_BYTES = 16 * 1024 * 1024
_ROW = np.dtype([(name, np.float64) for name in ("wall", "error", "threshold")])


@dataclass(slots=True)
class KnownBoundary:
    """What is known about one boundary.

    Attributes:
        found: Its centre, once that is known; with its peak and kind, once these are.
        clip: The file of its clip, once that is written; the file may have been deleted since.
        clip_settled: Whether the clip is written, or known to be impossible.
    """

    onset: Onset
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


class History:
    """The last minutes of a stream. Any thread may call it.

    Args:
        rate: The most points a second.

    Attributes:
        most_bytes: Of its pictures; may be set at any time.
    """

    def __init__(self, rate: float) -> None:
        self._rows = np.full(ceil(CURVE_SECONDS * rate) + 1, 0, _ROW)  # a ring; `zeros` would grow later
        self.most_bytes = _MOST_PICTURE_BYTES
        self._count = 0  # points so far
        self._boundaries: dict[int, KnownBoundary] = {}
        self._pictures: OrderedDict[int | Best, bytes] = OrderedDict()
        self._picture_bytes = 0
        self._lock = threading.Lock()

    def add_point(self, point: Point) -> None:
        """Keep a point; the oldest makes room for it."""
        threshold = point.threshold if point.ready else np.nan
        with self._lock:
            self._rows[self._count % len(self._rows)] = (point.wall, point.error, threshold)
            self._count += 1

    def add_onset(self, onset: Onset) -> None:
        """Keep a new boundary; the oldest makes room for it."""
        with self._lock:
            self._boundaries[onset.number] = KnownBoundary(onset)
            if len(self._boundaries) > _MOST_BOUNDARIES:
                del self._boundaries[next(iter(self._boundaries))]

    def add_centre(self, found: Found) -> Filmed | None:
        """The centre of a boundary is known, or its kind too; returns the boundary if its clip is settled."""
        with self._lock:
            known = self._boundaries[found.number]
            known.found = found
            return known.filmed() if known.clip_settled else None

    def settle_clip(self, number: int, path: Path | None) -> Filmed | None:
        """A boundary's clip is in a file, or will never be; returns the boundary if its centre is known."""
        with self._lock:
            if number not in self._boundaries or self._boundaries[number].clip_settled:
                return None
            known = self._boundaries[number]
            known.clip, known.clip_settled = path, True
            return known.filmed()

    def add_picture(self, of: int | Best, picture: bytes) -> None:
        """Keep the picture (JPEG) of a boundary or incident; the oldest ones make room for it."""
        with self._lock:
            self._picture_bytes += len(picture) - len(self._pictures.pop(of, b""))
            self._pictures[of] = picture
            while self._picture_bytes > self.most_bytes and len(self._pictures) > 1:
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

    def curve(self, now: float) -> dict[str, Any]:
        """How much the picture changed in each of the last 600 seconds.

        Returns:
            `from`: Unix time of the first second. `change` and `limit`: the largest error and threshold of
            each second, None without frames. `marks`: when boundaries began.
        """
        first = int(now) - CURVE_SECONDS + 1
        with self._lock:
            rows = self._rows[: self._count].copy()
        seconds = np.floor(rows["wall"]).astype(np.int64) - first
        change, limit = np.full((2, CURVE_SECONDS), np.nan)
        shown = (seconds >= 0) & (seconds < CURVE_SECONDS)
        np.fmax.at(change, seconds[shown], rows["error"][shown])
        np.fmax.at(limit, seconds[shown], rows["threshold"][shown])
        marks = [round(known.onset.wall, 3) for known in self.boundaries(first)]
        return {"from": first, "change": _numbers(change), "limit": _numbers(limit), "marks": marks}


def _numbers(values: npt.NDArray[np.float64]) -> list[float | None]:
    return [None if np.isnan(value) else round(value, 4) for value in values.tolist()]
