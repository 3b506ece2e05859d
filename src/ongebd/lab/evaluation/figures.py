"""The figures that every report shows for the system, the floors and the annotators."""

from __future__ import annotations

import numpy as np

from ongebd.data.numbers import FloatArray
from ongebd.lab.evaluation.comparison import Comparison
from ongebd.lab.evaluation.counts import Counts
from ongebd.lab.evaluation.relative_distance import THRESHOLDS

ABSOLUTE = (0.1, 0.25, 0.5, 1.0)
"""Absolute tolerances, seconds: the same for a short and a long video, so that a clock can't win."""

FIGURES = ("average", "relative 0.05", *(f"absolute {seconds}" for seconds in ABSOLUTE))
"""The figures that have floors and skill."""

RELATIVE_PART = slice(0, len(THRESHOLDS))
ABSOLUTE_PART = slice(len(THRESHOLDS), len(THRESHOLDS) + len(ABSOLUTE))


def count_all(comparison: Comparison) -> Counts:
    """Counts at the official thresholds, then the absolute tolerances, (V, 14); times are in seconds."""
    relative, absolute = comparison.relative_tolerances(THRESHOLDS), comparison.absolute_tolerances(ABSOLUTE)
    return comparison.count(np.concatenate([relative, absolute], axis=1))


def figure_values(f1: FloatArray) -> dict[str, FloatArray]:
    """The figures by name, shape (…), from F1 at all tolerances, shape (…, 14)."""
    absolute = np.moveaxis(f1[..., ABSOLUTE_PART], -1, 0)
    values = (f1[..., RELATIVE_PART].mean(axis=-1), f1[..., 0], *absolute)
    return dict(zip(FIGURES, values, strict=True))
