"""Heads decide by their scores which frames are positive; runs of positive frames make boundaries."""

from __future__ import annotations

from typing import NamedTuple, Protocol, Self

from ongebd.types import Boundary

OBD, THRESHOLD, HYSTERESIS = "obd", "threshold", "hysteresis"
"""The names of the heads; `obd` is the paper's, `BoundaryDiscriminator`."""


class Head(Protocol):
    """Takes one score after the other and decides; `BoundaryDiscriminator` is one.

    Attributes:
        is_boundary: Whether the frame of the last score is positive.
        z: How far the score stands out, in the head's own measure.
        mean: Of the scores that it was compared with; 0 where a head compares with none.
        std: Their standard deviation.
        threshold: The score above which the frame is positive.
        ready: Whether the head could decide.
    """

    is_boundary: bool
    z: float
    mean: float
    std: float
    threshold: float
    ready: bool

    def update(self, score: float, /) -> Self:
        """Take the next score."""

    def reset(self) -> None:
        """Forget everything."""


class ThresholdHead:
    """A fixed threshold; with hysteresis where `rearm` is given.

    With hysteresis a frame is positive above the threshold, and so are the next ones until the score falls
    below `rearm` of it. So a score that trembles about the threshold makes one boundary.

    >>> head = ThresholdHead(0.4)
    >>> [head.update(score).is_boundary for score in (0.3, 0.5, 0.3, 0.19, 0.3)]
    [False, True, False, False, False]
    >>> head = ThresholdHead(0.4, rearm=0.5)
    >>> [head.update(score).is_boundary for score in (0.3, 0.5, 0.3, 0.19, 0.3)]
    [False, True, True, False, False]

    Args:
        threshold: A frame is positive above it.
        rearm: Share of the threshold, above 0 and at most 1.
    """

    def __init__(self, threshold: float, rearm: float | None = None) -> None:
        self.threshold = threshold
        self.rearm = rearm
        self.mean = self.std = 0.0
        self.reset()

    def reset(self) -> None:
        """Forget the last score."""
        self.is_boundary = self.ready = False
        self.z = 0.0

    def update(self, score: float, /) -> Self:
        """Take the next score; `z` is the score itself."""
        self.z = float(score)
        if self.is_boundary and self.rearm is not None:
            self.is_boundary = not self.z < self.rearm * self.threshold
        else:
            self.is_boundary = self.z > self.threshold
        self.ready = True
        return self


class RunStep(NamedTuple):
    """What one frame did: began a run, ended one, or neither."""

    onset: bool
    boundary: Boundary | None


class BoundaryRuns:
    """Joins consecutive positive frames into boundaries.

    A run begins with a positive frame, the *onset*, and goes on while frames stay positive. The first
    negative frame ends it and decides the boundary. The boundary's *centre* lies midway between the first and
    the last positive frame, as in the paper. A run that lasts `max_run` seconds ends there; its remaining
    positive frames are skipped.

    With `max_run` 0 the onset itself decides the boundary and is its centre. Then no boundary begins within
    the gap, because the score of an onset doesn't tell how far the whole run will stand out. A run that is
    still on when the gap ends begins there.

    Args:
        min_gap: Seconds after a run's last positive frame in which a new run begins only if it stands out
            twice as far, so that a cut right after a small change isn't lost. The paper has none.
        max_run: Seconds after which a run is closed; 0: at its first frame.

    >>> runs = BoundaryRuns()
    >>> for time, positive in [(0.0, False), (0.5, True), (1.0, True), (1.5, False)]:
    ...     step = runs.update(time, positive, 4.0)
    >>> step.boundary
    Boundary(time=0.75, onset=0.5, decided=1.5, score=4.0)
    """

    def __init__(self, min_gap: float = 0.0, max_run: float = 1.0) -> None:
        self.min_gap = min_gap
        self.max_run = max_run
        self.reset()

    def reset(self) -> None:
        """Forget an open run, and the last boundary."""
        self._onset: float | None = None
        self._known = 0.0  # when the onset was
        self._latest = 0.0  # when the last verdict was known
        self._last_positive = float("-inf")
        self._score = 0.0
        self._skipping = False

    def update(self, time: float, positive: bool, z: float, now: float | None = None) -> RunStep:
        """Take one frame's verdict; times in seconds, never decreasing.

        Args:
            time: Of the frame.
            positive: The verdict.
            z: How far it stands out.
            now: When the verdict became known; None: at the frame.
        """
        self._latest = time if now is None else now
        if not positive:
            self._skipping = False
            return RunStep(False, self.flush())
        began = self._onset is None
        if self._onset is None:
            if self._skipping or time - self._last_positive < self.min_gap:
                if self.max_run == 0:
                    return RunStep(False, None)
                if z < 2.0 * self._score:
                    self._skipping = True
                    return RunStep(False, None)
            self._onset, self._known, self._score = time, self._latest, z
        self._score = max(self._score, z)
        self._last_positive = time
        if time - self._onset < self.max_run:
            return RunStep(began, None)
        self._skipping = True
        return RunStep(began, self.flush())

    def flush(self) -> Boundary | None:
        """End an open run. The last frame seen decides it."""
        if self._onset is None:
            return None
        centre = (self._onset + self._last_positive) / 2
        boundary = Boundary(centre, self._onset, self._latest, self._score, self._known)
        self._onset = None
        return boundary
