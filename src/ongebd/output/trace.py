"""What a picture needs of every frame, in memory that does not grow with the video."""

from __future__ import annotations

import heapq
from array import array
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ongebd.types import Boundary, Decision, ImageU8

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Curves:
    """One value for each point that is drawn.

    Attributes:
        time: Seconds.
        error: Prediction error; the largest of the frames that the point stands for.
        threshold: The threshold that this error met.
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
        """Keep the frame with the largest error of every `size` ones, so that no peak is lost."""
        if size <= 1 or not len(self):
            return self
        starts = np.arange(0, len(self), size)
        padded = np.full(len(starts) * size, -np.inf)
        padded[: len(self)] = self.error
        strongest = starts + padded.reshape(-1, size).argmax(axis=1)
        return Curves(
            time=self.time[strongest],
            error=self.error[strongest],
            threshold=self.threshold[strongest],
            mean=self.mean[strongest],
            ready=self.ready[strongest],
            positive=np.logical_or.reduceat(self.positive, starts),
        )


class Trace:
    """Collects decisions; where they are more than `limit`, a point stands for 2, 4, 8… frames.

    Args:
        limit: The largest number of points. Must be even.
    """

    def __init__(self, limit: int = 1 << 18) -> None:
        self._limit = limit
        self._stride = 1  # frames a point
        self._clear()

    def _clear(self) -> None:
        self._filled = self._stride  # frames in the last point; full, so that the next frame opens one
        self._time = array("d")
        self._values = (array("f"), array("f"), array("f"))  # error, threshold, mean
        self._flags = (array("b"), array("b"))  # ready, positive

    def __len__(self) -> int:
        return len(self._time)

    def add(self, decision: Decision) -> None:
        """Take the next frame's decision."""
        if self._filled == self._stride:
            if len(self) == self._limit:
                self._halve()
            self._append(decision)
            self._filled = 1
            return
        self._filled += 1
        positive = self._flags[1][-1] | bool(decision.is_boundary)
        if decision.error > self._values[0][-1]:
            for column in (self._time, *self._values, *self._flags):
                column.pop()
            self._append(decision)
        self._flags[1][-1] = positive

    def _append(self, decision: Decision) -> None:
        self._time.append(decision.time)
        self._values[0].append(decision.error)
        self._values[1].append(decision.threshold)
        self._values[2].append(decision.mean)
        self._flags[0].append(bool(decision.ready))
        self._flags[1].append(bool(decision.is_boundary))

    def _halve(self) -> None:
        half = self.curves().pooled(2)
        self._stride *= 2
        self._clear()
        self._time.frombytes(half.time.tobytes())
        for values, new in zip(self._values, (half.error, half.threshold, half.mean), strict=True):
            values.frombytes(new.astype(np.float32).tobytes())
        for flags, mask in zip(self._flags, (half.ready, half.positive), strict=True):
            flags.frombytes(mask.astype(np.int8).tobytes())

    def curves(self) -> Curves:
        """Return a copy of what was collected."""
        error, threshold, mean = (np.array(values, dtype=np.float64) for values in self._values)
        ready, positive = (np.array(flags, dtype=np.bool_) for flags in self._flags)
        return Curves(np.array(self._time, dtype=np.float64), error, threshold, mean, ready, positive)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A boundary and a small picture of the frame at its onset."""

    boundary: Boundary
    picture: ImageU8


class Album:
    """Keeps the pictures of the strongest boundaries.

    Args:
        size: The largest number of pictures.
    """

    def __init__(self, size: int = 9) -> None:
        self._size = size
        self._onsets: dict[float, ImageU8] = {}  # pictures whose boundary is not decided yet
        self._best: list[tuple[float, int, Snapshot]] = []  # a heap, the weakest first
        self._seen = 0

    def onset(self, time: float, picture: ImageU8) -> None:
        """Take the picture of an onset at `time` seconds."""
        self._onsets[time] = picture
        if len(self._onsets) > 3:  # runs that an epoch broke off never become boundaries
            del self._onsets[next(iter(self._onsets))]

    def boundary(self, boundary: Boundary) -> None:
        """Match a boundary with the picture of its onset."""
        picture = self._onsets.pop(boundary.onset, None)
        if picture is None:
            return
        self._seen += 1
        heapq.heappush(self._best, (boundary.score, -self._seen, Snapshot(boundary, picture)))
        if len(self._best) > self._size:
            heapq.heappop(self._best)

    def snapshots(self) -> list[Snapshot]:
        """Return the pictures kept, in the order of their boundaries' times."""
        return sorted((snapshot for _, _, snapshot in self._best), key=lambda s: s.boundary.time)
