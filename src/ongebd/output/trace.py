"""The score curve of a run, in memory that does not grow with the video."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields

import numpy as np
import numpy.typing as npt

from ongebd.types import Decision

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_POINT = np.dtype(
    [("time", "f8"), ("error", "f4"), ("threshold", "f4"), ("mean", "f4"), ("ready", "?"), ("positive", "?")]
)


@dataclass(frozen=True, slots=True)
class Curves:
    """One value per drawn point.

    Attributes:
        time: Seconds.
        error: Prediction error; the largest of the frames that the point represents.
        threshold: The threshold that this error was compared with.
        mean: Mean of the errors before it.
        ready: Whether the detector could decide.
        positive: Whether one of the point's frames was positive.
    """

    time: Floats
    error: Floats
    threshold: Floats
    mean: Floats
    ready: Flags
    positive: Flags

    def __len__(self) -> int:
        return len(self.time)

    def pooled(self, size: int) -> Curves:
        """Keep the frame with the largest error of every `size` frames, so that no peak is lost."""
        if size <= 1 or not len(self):
            return self
        starts = np.arange(0, len(self), size)
        padded = np.full(len(starts) * size, -np.inf)
        padded[: len(self)] = self.error
        strongest = starts + padded.reshape(-1, size).argmax(axis=1)
        values = {field.name: getattr(self, field.name)[strongest] for field in fields(self)}
        return Curves(**values | {"positive": np.logical_or.reduceat(self.positive, starts)})


class Trace:
    """Collects decisions; beyond `limit` points, each point represents 2, 4, 8… frames.

    Args:
        limit: The largest number of points, an even number.
    """

    def __init__(self, limit: int = 1 << 18) -> None:
        self._points = np.zeros(limit, _POINT)
        self._size = 0  # points in use
        self._stride = 1  # frames per point
        self._filled = 1  # frames in the last point

    def __len__(self) -> int:
        return self._size

    def add(self, decision: Decision) -> None:
        """Add the next frame's decision."""
        positive = decision.is_boundary
        if not self._size or self._filled == self._stride:
            if self._size == len(self._points):
                self._halve()
            self._size += 1
            self._filled = 1
        else:
            self._filled += 1
            last = self._points[self._size - 1]
            positive = positive or bool(last["positive"])
            if decision.error <= float(last["error"]):
                last["positive"] = positive
                return
        self._points[self._size - 1] = (
            decision.time,
            decision.error,
            decision.threshold,
            decision.mean,
            decision.ready,
            positive,
        )

    def _halve(self) -> None:
        half = self.curves().pooled(2)
        self._size = len(half)
        for name, values in zip(_POINT.names or (), astuple(half), strict=True):
            self._points[name][: self._size] = values
        self._stride *= 2

    def curves(self) -> Curves:
        """Return a copy of what was collected."""
        used = self._points[: self._size]
        error, threshold, mean = (used[name].astype(np.float64) for name in ("error", "threshold", "mean"))
        return Curves(
            used["time"].copy(), error, threshold, mean, used["ready"].copy(), used["positive"].copy()
        )
