"""The figures that every report shows side by side for the system, the floors and the annotators."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ongebd.data.numbers import FloatArray
from ongebd.lab.evaluation.comparison import Comparison
from ongebd.lab.evaluation.counts import Counts
from ongebd.lab.evaluation.relative_distance import THRESHOLDS

ABSOLUTE = (0.1, 0.25, 0.5, 1.0)
"""Absolute tolerances, seconds: the same for a short and a long video, so that a clock cannot win."""

FIGURES = ("average", "relative 0.05", *(f"absolute {seconds}" for seconds in ABSOLUTE))
"""The figures that floors are chosen by and skill is given for."""

RELATIVE_PART = slice(0, len(THRESHOLDS))
ABSOLUTE_PART = slice(len(THRESHOLDS), len(THRESHOLDS) + len(ABSOLUTE))


def all_tolerances(comparison: Comparison) -> FloatArray:
    """The official thresholds, then the absolute tolerances, (V, 14); for a comparison in seconds."""
    return np.concatenate(
        [comparison.relative_tolerances(THRESHOLDS), comparison.absolute_tolerances(ABSOLUTE)], axis=1
    )


def count_all(comparison: Comparison) -> Counts:
    """Counts at the official thresholds and the absolute tolerances, arrays of shape (V, 14)."""
    return comparison.count(all_tolerances(comparison))


def figure_values(f1: npt.NDArray[np.float64]) -> dict[str, FloatArray]:
    """The figures from F1 at all tolerances.

    Args:
        f1: Shape (…, 14): one set of scores, or one for each bootstrap sample.

    Returns:
        By name, arrays of shape (…).
    """
    values = {"average": f1[..., RELATIVE_PART].mean(axis=-1), "relative 0.05": f1[..., 0]}
    for place, seconds in enumerate(ABSOLUTE):
        values[f"absolute {seconds}"] = f1[..., len(THRESHOLDS) + place]
    return values
