"""Relative distance, "Rel.Dis": the official score of generic event boundary detection, to the last digit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from ongebd.data.files import FloatArray
from ongebd.data.label_set import LabelSet
from ongebd.data.labels import as_label_set
from ongebd.data.prediction_set import PredictionSet, Unit, as_prediction_set
from ongebd.errors import ConfigError
from ongebd.lab.evaluation.comparison import Comparison, Missing, compare
from ongebd.lab.evaluation.counts import Counts, Scores

THRESHOLDS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
"""The official thresholds, written out: 3 · 0.05 is not 0.15, and ties must fall the same way."""


@dataclass(frozen=True, slots=True, eq=False)
class RelativeDistance(Scores):
    """The score of a set of videos at each of T thresholds.

    Attributes:
        thresholds: Fractions of a video's length, shape (T,).
        counts: Counts of each video, arrays of shape (V, T).
        comparison: The videos, and how many were found, missing and filtered.
    """

    thresholds: FloatArray
    counts: Counts
    comparison: Comparison

    @property
    def average(self) -> float:
        """The mean of F1 over the thresholds, the papers' "Avg"."""
        return float(self.f1.mean())

    @property
    def n(self) -> int:
        """The number of scored videos."""
        return len(self.comparison)


def relative_distance(
    labels: LabelSet | Mapping[str, Mapping[str, object]],
    predictions: PredictionSet | Mapping[str, Sequence[float] | FloatArray],
    thresholds: Sequence[float] = THRESHOLDS,
    min_consistency: float | None = 0.3,
    missing: Missing = "count",
    unit: Unit = "seconds",
) -> RelativeDistance:
    """Score predictions by the official rule of Kinetics-GEBD and TAPOS.

    Videos with `f1_consis_avg` below `min_consistency` are left out. In each other video the admissible
    detections are matched with each annotator's boundaries, greedily (`ongebd.lab.evaluation.matching`), at a
    tolerance of threshold · length. The annotator with the highest F1 is chosen at each threshold. True
    positives, positives and detections are summed over the videos, and precision, recall and F1 are those of
    the sums.

    Args:
        labels: A label set, or a plain dict in the official schema.
        predictions: A prediction set with the labels' ids, or a plain dict `{id: [times]}`. The order of the
            times and repeated times matter to the rule.
        thresholds: Fractions of a video's length.
        min_consistency: None for no filter. TAPOS needs none: its single annotators agree with themselves.
        missing: Whether a video without a prediction counts its boundaries as missed, or is skipped.
        unit: Of the predictions. In "frames" labels are compared as frame numbers, and a length is in
            frames, as in the official notebooks; for TAPOS that is end − start + 1 of the instance.

    Raises:
        LabelError: Labels or predictions can't be scored.
        ConfigError: `thresholds` is empty, or one is negative or not finite.

    Examples:
        >>> video = {"video_duration": 10.0, "substages_timestamps": [[2.0, 6.0], [4.0]]}
        >>> score = relative_distance({"a": video}, {"a": [2.4, 6.6]}, thresholds=[0.05, 0.1])
        >>> score.tp.tolist(), score.f1.tolist(), score.average
        ([1.0, 2.0], [0.5, 1.0], 0.75)
    """
    levels = np.array(thresholds, dtype=np.float64)
    if levels.ndim != 1 or not len(levels) or not np.isfinite(levels).all() or (levels < 0).any():
        raise ConfigError(f"thresholds must be fractions of a video's length, 0 or above, not {thresholds}")
    comparison = compare(
        as_label_set(labels),
        as_prediction_set(predictions, unit),
        min_consistency=min_consistency,
        missing=missing,
        unit=unit,
    )
    counts = comparison.count(comparison.relative_tolerances(thresholds))
    totals = counts.totals()
    scores = {field.name: getattr(totals, field.name) for field in fields(totals)}
    return RelativeDistance(**scores, thresholds=levels, counts=counts, comparison=comparison)


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
