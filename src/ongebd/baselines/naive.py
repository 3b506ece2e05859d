"""Baselines that learn nothing: two anticipators, and a clock."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, isfinite
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ongebd.errors import ConfigError
from ongebd.types import Feature


@dataclass(frozen=True, slots=True)
class Persistence:
    """Nothing changes: f̂_t = f_{t−1}.

    >>> Persistence().anticipate(np.float32([[1, 0], [0, 1]]))
    array([0., 1.], dtype=float32)
    """

    name: ClassVar[str] = "persistence"
    window: ClassVar[int] = 1

    def anticipate(self, past: npt.NDArray[np.float32]) -> Feature:
        """The last feature; past is (n, D), the result (D,)."""
        last: Feature = past[-1]
        return last


@dataclass(frozen=True, slots=True)
class WindowMean:
    """The recent past goes on: f̂_t is the mean of the last L features, each scaled to norm one.

    At the start of a stream it is the mean of those that there are.

    >>> WindowMean(window=2).anticipate(np.float32([[3, 0], [0, 1]]))
    array([0.5, 0.5], dtype=float32)
    """

    window: int = 8
    name: ClassVar[str] = "window-mean"

    def anticipate(self, past: npt.NDArray[np.float32]) -> Feature:
        """The mean direction of the past; past is (n, D), the result (D,)."""
        exact = past.astype(np.float64)  # squares in float32 overflow from 1e19 on, and vanish under 1e-23
        mean = (exact / np.linalg.norm(exact, axis=1, keepdims=True)).mean(axis=0)
        return np.asarray(mean, np.float32)


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
