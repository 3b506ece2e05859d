"""The figures that tables have in their columns, from what was counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ongebd.data.label_set import LabelSet
from ongebd.data.labels import min_consistency_of
from ongebd.data.numbers import FloatArray
from ongebd.data.prediction_set import PredictionSet
from ongebd.lab.evaluation.comparison import Comparison, compare
from ongebd.lab.evaluation.counts import Counts, Scores
from ongebd.lab.evaluation.delay import ALLOWED_DELAYS, count_within_delay
from ongebd.lab.evaluation.figures import ABSOLUTE, RELATIVE_PART, count_all
from ongebd.lab.evaluation.floors import clock_times
from ongebd.lab.evaluation.relative_distance import THRESHOLDS

_PLAIN = len(THRESHOLDS) + len(ABSOLUTE)
SCORES = (
    "average",
    *(f"relative {share:g}" for share in THRESHOLDS),
    *(f"absolute {seconds:g}" for seconds in ABSOLUTE),
    *(f"within {delay:g} s" for delay in ALLOWED_DELAYS),
    *("precision 0.05", "recall 0.05", "f1 0.05"),
)
"""Columns that are scores; more is better in all of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """One set of detections, counted.

    Attributes:
        counts: (V, 20): at the ten relative and four absolute tolerances, then within each allowed delay and
            without a limit (zeros where it is not known when a boundary was decided).
        ids: The videos'.
    """

    counts: Counts
    ids: tuple[str, ...]


def comparison_of(labels: LabelSet, predictions: PredictionSet) -> Comparison:
    """By the data set's own rule."""
    return compare(labels, predictions, min_consistency=min_consistency_of(labels.dataset))


def counted(comparison: Comparison) -> Counted:
    """Count everything that a column may want."""
    plain, late = count_all(comparison), count_within_delay(comparison)
    if late is None:
        nothing = np.zeros((len(comparison), len(ALLOWED_DELAYS) + 1), np.int64)
        late = Counts(nothing, nothing, nothing, nothing)
    parts = (
        np.concatenate([getattr(plain, name), getattr(late, name)], axis=1)
        for name in ("tp", "positives", "detections", "annotator")
    )
    return Counted(Counts(*parts), comparison.ids)


def value_of(column: str, scores: Scores) -> FloatArray:
    """A column's figure.

    Args:
        column: Of `SCORES`.
        scores: Arrays (…, 20), columns as in `Counted`.

    Returns:
        (…).
    """
    what, _, number = column.partition(" ")
    if column == "average":
        return np.asarray(scores.f1[..., RELATIVE_PART].mean(axis=-1))
    if what == "within":
        place = _PLAIN + [f"{delay:g} s" for delay in ALLOWED_DELAYS].index(number)
        return np.asarray(scores.f1[..., place])
    if what == "absolute":
        return np.asarray(scores.f1[..., len(THRESHOLDS) + [f"{s:g}" for s in ABSOLUTE].index(number)])
    part = {"precision": scores.precision, "recall": scores.recall}.get(what, scores.f1)
    return np.asarray(part[..., [f"{share:g}" for share in THRESHOLDS].index(number)])


def clocked(comparison: Comparison, period: float) -> Counted:
    """What a clock would score; it decides at the time that it tells."""
    times = [clock_times(limit, period) for limit in comparison.limits]
    return counted(comparison.with_detections(times, times))
