"""Anticipators that need no training: the floor that a trained one must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

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
