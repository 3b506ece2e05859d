"""Heads decide which frames are positive by their scores; runs of positive frames make boundaries."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import NamedTuple, Protocol, Self

from ongebd.errors import ConfigError
from ongebd.types import Boundary


class Head(Protocol):
    """Takes a score at a time and says whether it is a boundary's; `BoundaryDiscriminator` is one.

    Attributes:
        is_boundary: Whether the last score was a boundary's.
        z: How far it stood out, in the head's own measure.
        mean: Of the scores that it was compared with; 0 where a head has none.
        std: Likewise their standard deviation.
        threshold: The score above which it would have been a boundary's; for a head without such a value, the
            score itself.
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
    """A fixed threshold: a boundary wherever the score lies above it. It remembers nothing.

    >>> head = ThresholdHead(0.5)
    >>> [head.update(score).is_boundary for score in (0.2, 0.5, 0.7)]
    [False, False, True]

    Args:
        threshold: Any number.

    Raises:
        ConfigError: It is none.
    """

    def __init__(self, threshold: float) -> None:
        if not isfinite(threshold):
            raise ConfigError(f"threshold must be a number, not {threshold}")
        self.threshold = float(threshold)
        self.mean = self.std = 0.0
        self.reset()

    def reset(self) -> None:
        """Forget the last score."""
        self.is_boundary = self.ready = False
        self.z = 0.0

    def update(self, score: float, /) -> Self:
        """Take the next score; `z` is the score itself."""
        self.z = float(score)
        self.is_boundary = self.z > self.threshold
        self.ready = True
        return self


class HysteresisHead:
    """A threshold that holds on: positive above it, and from then on until the score is well below it.

    So a score that trembles about the threshold makes one boundary. All it remembers is whether the last
    frame was positive.

    >>> head = HysteresisHead(0.4, rearm=0.5)
    >>> [head.update(score).is_boundary for score in (0.3, 0.5, 0.3, 0.19, 0.3)]
    [False, True, True, False, False]

    Args:
        threshold: A frame is positive where its score is above; above 0.
        rearm: The part of the threshold under which the score must fall to be negative again, in (0, 1].

    Raises:
        ConfigError: One is out of its range.
    """

    def __init__(self, threshold: float, rearm: float) -> None:
        if not (isfinite(threshold) and threshold > 0):
            raise ConfigError(f"threshold must be a number above 0, not {threshold}")
        if not 0 < rearm <= 1:
            raise ConfigError(f"rearm must be a number above 0 and at most 1, not {rearm}")
        self.threshold = float(threshold)
        self.rearm = float(rearm)
        self.mean = self.std = 0.0
        self.reset()

    def reset(self) -> None:
        """Forget the last score."""
        self.is_boundary = self.ready = False
        self.z = 0.0

    def update(self, score: float, /) -> Self:
        """Take the next score; `z` is the score itself."""
        self.z = float(score)
        if self.is_boundary:
            self.is_boundary = not self.z < self.rearm * self.threshold
        else:
            self.is_boundary = self.z > self.threshold
        self.ready = True
        return self


OBD, THRESHOLD, HYSTERESIS = "obd", "threshold", "hysteresis"
HEADS = (OBD, THRESHOLD, HYSTERESIS)
"""The names of all heads."""


def make_head(
    name: str, discriminator: Callable[[], Head], threshold: float | None, rearm: float | None = None
) -> Head:
    """A new head.

    Args:
        name: One of `HEADS`.
        discriminator: Makes the paper's.
        threshold: Of the two with a fixed one.
        rearm: Of the one with hysteresis.

    Raises:
        ConfigError: There is no such head, or a setting is missing or out of range.
    """
    if name == OBD:
        return discriminator()
    if name in (THRESHOLD, HYSTERESIS):
        if threshold is None:
            raise ConfigError(f"head {name} needs a value: set threshold")
        if name == THRESHOLD:
            return ThresholdHead(threshold)
        if rearm is None:
            raise ConfigError(f"head {name} needs a value: set rearm")
        return HysteresisHead(threshold, rearm)
    raise ConfigError(f"unknown head {name!r}; there are {', '.join(HEADS)}")


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
        if not min_gap >= 0:
            raise ConfigError(f"min_gap must be at least 0 seconds, not {min_gap}")
        if not max_run >= 0:
            raise ConfigError(f"max_run must be at least 0 seconds, not {max_run}")
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
