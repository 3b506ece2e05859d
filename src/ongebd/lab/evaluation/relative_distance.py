"""Relative distance, "Rel.Dis": the official score of generic event boundary detection, to the last digit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ongebd.data.label_set import LabelSet
from ongebd.data.labels import as_label_set
from ongebd.data.numbers import FloatArray
from ongebd.data.prediction_set import PredictionSet, Unit, as_prediction_set
from ongebd.errors import ConfigError
from ongebd.lab.evaluation.comparison import Comparison, Missing, compare
from ongebd.lab.evaluation.counts import Counts, Scores

THRESHOLDS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
"""The official thresholds, written out: 3 · 0.05 is not 0.15, and ties must fall as they do there."""


@dataclass(frozen=True, slots=True, eq=False)
class RelativeDistance:
    """The score of a set of videos at each of T thresholds.

    Attributes:
        thresholds: Fractions of a video's length, shape (T,).
        tp: True positives, shape (T,); likewise `positives` and `detections`.
        positives: Boundaries of the chosen annotators.
        detections: Admissible detections.
        precision: tp / detections, 0 where there is none.
        recall: tp / positives, 1 where there is none.
        f1: Their harmonic mean.
        counts: The same for each video, arrays of shape (V, T).
        comparison: The videos, and how many were found, missing and filtered.
    """

    thresholds: FloatArray
    tp: FloatArray
    positives: FloatArray
    detections: FloatArray
    precision: FloatArray
    recall: FloatArray
    f1: FloatArray
    counts: Counts
    comparison: Comparison

    @property
    def average(self) -> float:
        """The mean of F1 over the thresholds, the papers' "Avg"."""
        return float(self.f1.mean())

    @property
    def n(self) -> int:
        """How many videos were scored."""
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
    tolerance of threshold · length; the annotator with the highest F1 is chosen anew at each threshold; true
    positives, positives and detections are summed over the videos, and precision, recall and F1 are those of
    the sums.

    Args:
        labels: A label set, or a plain dict in the official schema.
        predictions: A prediction set with the labels' ids, or a plain dict `{id: [times]}`; the order of the
            times and repeated ones are kept, as the rule has it.
        thresholds: Fractions of a video's length.
        min_consistency: None for no filter. TAPOS has none: its single annotators agree with themselves, at
            1.
        missing: What a video without a prediction does: "count" its boundaries as missed, or "skip" it.
        unit: What the predictions are in. In "frames" labels are compared as frame numbers, and a length is
            in frames, as in the official notebooks; for TAPOS that is end − start + 1 of the instance.

    Raises:
        LabelError: Where labels or predictions cannot be scored.
        ConfigError: Where there is no threshold, or one is negative or not finite.

    Examples:
        >>> video = {"video_duration": 10.0, "substages_timestamps": [[2.0, 6.0], [4.0]]}
        >>> score = relative_distance({"a": video}, {"a": [2.4, 6.6]}, thresholds=[0.05, 0.1])
        >>> score.tp.tolist(), score.f1.tolist(), score.average
        ([1.0, 2.0], [0.5, 1.0], 0.75)
    """
    levels = np.array(thresholds, dtype=np.float64)
    if levels.ndim != 1 or not len(levels) or not np.isfinite(levels).all() or (levels < 0).any():
        raise ConfigError(f"thresholds are {thresholds}; give fractions of a video's length, 0 or above")
    comparison = compare(
        as_label_set(labels),
        as_prediction_set(predictions, unit),
        min_consistency=min_consistency,
        missing=missing,
        unit=unit,
    )
    counts = comparison.count(comparison.relative_tolerances(thresholds))
    totals: Scores = counts.totals()
    return RelativeDistance(
        levels,
        totals.tp,
        totals.positives,
        totals.detections,
        totals.precision,
        totals.recall,
        totals.f1,
        counts,
        comparison,
    )
