"""Joins neighbouring positive frames into boundaries, with an onset and a centre."""

from __future__ import annotations

from typing import NamedTuple

from ongebd.errors import ConfigError
from ongebd.types import Boundary

_OUTSHINES = 2.0


class RunStep(NamedTuple):
    """What one frame did: began a run, ended one, or neither."""

    onset: bool
    boundary: Boundary | None


class BoundaryRuns:
    """Turns a positive or negative verdict on each frame into boundaries.

    A run begins with a positive frame (the *onset*, known at once) and goes on while frames stay positive. It
    ends with the first negative frame, which decides the boundary: its *centre* lies midway between the first
    and the last positive frame, as in the paper. A run that lasts `max_run` seconds is ended there, and its
    remaining positive frames are passed over.

    With a `max_run` of 0 the onset itself decides the boundary, and is its centre. Then none begins within
    the gap, for the score of an onset does not tell how far the whole run will stand out; a run that is still
    on when the gap ends begins there.

    Args:
        min_gap: Seconds after a run's last positive frame in which a new one begins only if it stands out
            twice as far (so that a cut right after a small change is not lost). The paper has none.
        max_run: Seconds after which a run is ended by force; 0: at its first frame.

    Raises:
        ConfigError: min_gap is negative, or max_run is.

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
        self._latest = 0.0  # the last frame seen
        self._last_positive: float | None = None
        self._score = 0.0
        self._passing_over = False

    def update(self, time: float, positive: bool, z: float, now: float | None = None) -> RunStep:
        """Take one frame's verdict; times in seconds, never decreasing.

        Args:
            time: Of the frame.
            positive: The verdict.
            z: How far it stands out.
            now: When the verdict became known; None: at the frame.
        """
        self._latest = time
        if not positive:
            self._passing_over = False
            return RunStep(False, self._end(time))
        if self._onset is None:
            if self._passing_over or self._too_soon(time):
                if self.max_run == 0:
                    return RunStep(False, None)
                if z < _OUTSHINES * self._score:
                    self._passing_over = True
                    return RunStep(False, None)
            self._onset, self._score = time, z
            self._known = time if now is None else now
            began = True
        else:
            self._score = max(self._score, z)
            began = False
        self._last_positive = time
        if time - self._onset >= self.max_run:
            self._passing_over = True
            return RunStep(began, self._end(time))
        return RunStep(began, None)

    def flush(self) -> Boundary | None:
        """End an open run: no more frames come. The last frame seen decides it."""
        return self._end(self._latest)

    def _too_soon(self, time: float) -> bool:
        return self._last_positive is not None and time - self._last_positive < self.min_gap

    def _end(self, decided: float) -> Boundary | None:
        if self._onset is None or self._last_positive is None:
            return None
        centre = (self._onset + self._last_positive) / 2
        boundary = Boundary(centre, self._onset, decided, self._score, self._known)
        self._onset = None
        return boundary
