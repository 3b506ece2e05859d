"""A boundary every few seconds, whatever the video shows: the floor that "Rel.Dis" rewards most."""

from __future__ import annotations

from math import floor, isfinite

from ongebd.errors import ConfigError
from ongebd.types import Feature

PERIOD = 1.5
"""Seconds: the period that scores best on the Kinetics-GEBD validation labels by the paper's rule."""


class Clock:
    """A scorer (`ongebd.detector.detector.Scorer`): 1 with the frame that ends a period, else 0.

    >>> import numpy as np
    >>> clock, nothing = Clock(period=1.0), np.zeros(1, np.float32)
    >>> [clock.update(nothing, 5 + n / 2) for n in range(5)]
    [None, 0.0, 1.0, 0.0, 1.0]

    Args:
        period: Seconds.
    """

    name: str = "clock"
    latency: int = 0
    state_bytes: int = 16
    """Two numbers."""

    def __init__(self, period: float = PERIOD) -> None:
        if not (isfinite(period) and period > 0):
            raise ConfigError(f"the clock's period must be a number of seconds above 0, not {period}")
        self.period = float(period)
        self.reset()

    def reset(self) -> None:
        """Start the clock with the next frame."""
        self._start: float | None = None
        self._periods = 0

    def update(self, feature: Feature, time: float) -> float | None:
        """Whether a period ended with this frame; None for the first frame. Its feature does not matter."""
        del feature
        if self._start is None:
            self._start = time
            return None
        # A frame of a hundredth of a millisecond early still counts: times are rounded.
        periods = floor((time - self._start) / self.period + 1e-5)
        struck = periods > self._periods
        self._periods = periods
        return float(struck)

    def flush(self) -> list[float | None]:
        """Nothing is held back."""
        return []
