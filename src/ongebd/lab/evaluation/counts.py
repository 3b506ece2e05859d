"""True positives, positives and detections, the scores made of them, and the luck in these.

The bootstrap draws videos. All sums are drawn with the same videos, so differences between two systems, or
between a system and its floor, are paired.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ongebd.data.files import FloatArray

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Counts of V videos at T tolerances, against the annotator chosen there.

    Attributes:
        tp: True positives, shape (V, T).
        positives: The chosen annotator's boundaries, shape (V, T).
        detections: Admissible detections, shape (V, T), the same in each column.
        annotator: The chosen annotator, shape (V, T); 0 without a detection to choose by.
    """

    tp: IntArray
    positives: IntArray
    detections: IntArray
    annotator: IntArray

    def totals(self) -> Scores:
        """Scores of the sums over all videos, arrays of shape (T,)."""
        return Scores.of(self.tp.sum(axis=0), self.positives.sum(axis=0), self.detections.sum(axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Totals, and precision, recall and F1 of the totals; all arrays of one shape, mostly (T,).

    Attributes:
        tp: True positives.
        positives: Boundaries of the chosen annotators.
        detections: Admissible detections.
        precision: tp / detections, 0 without detections.
        recall: tp / positives, 1 without positives.
        f1: Their harmonic mean, 0 if both are 0.
    """

    tp: FloatArray
    positives: FloatArray
    detections: FloatArray
    precision: FloatArray
    recall: FloatArray
    f1: FloatArray

    @classmethod
    def of(
        cls,
        tp: npt.NDArray[np.generic],
        positives: npt.NDArray[np.generic],
        detections: npt.NDArray[np.generic],
    ) -> Scores:
        """Scores of totals, by the official conventions of `precision_recall_f1`."""
        hit, real, found = (np.asarray(part, dtype=np.float64) for part in (tp, positives, detections))
        return cls(hit, real, found, *precision_recall_f1(hit, real, found))


def precision_recall_f1(
    tp: FloatArray, positives: FloatArray, detections: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Precision, recall and F1 in the official script's order of operations, so that ties fall the same way.

    >>> f1 = precision_recall_f1(np.array([2.0, 0.0]), np.array([4.0, 0.0]), np.array([2.0, 3.0]))[2]
    >>> f1.round(3).tolist()
    [0.667, 0.0]
    """
    recall = np.divide(tp, positives, out=np.ones_like(tp), where=positives != 0)
    precision = np.divide(tp, detections, out=np.zeros_like(tp), where=detections != 0)
    total = recall + precision
    f1 = np.divide(2 * recall * precision, total, out=np.zeros_like(tp), where=total != 0)
    return precision, recall, f1


_CHUNK = 2_000_000  # elements of the table of weights


class Interval(NamedTuple):
    """A 95 % interval: the percentiles 2.5 and 97.5 of the bootstrap samples."""

    low: float
    high: float

    @classmethod
    def of(cls, samples: FloatArray) -> Interval | None:
        """The interval of samples, shape (B,); None without samples, or if one isn't finite."""
        if not len(samples) or not np.isfinite(samples).all():
            return None
        low, high = np.percentile(samples, [2.5, 97.5])
        return cls(float(low), float(high))


def resampled_sums(values: FloatArray, resamples: int, seed: int) -> FloatArray:
    """Sums over videos drawn with replacement; the same seed draws the same videos.

    Args:
        values: One row per video, shape (V, K).
        resamples: The number of draws, B.
        seed: Of the draws.

    Returns:
        Shape (B, K); (0, K) for fewer than two videos, because one video can't vary.
    """
    videos = len(values)
    sums = [np.zeros((0, values.shape[1]))]
    rng = np.random.default_rng(seed)
    step = max(1, _CHUNK // max(1, videos))
    for start in range(0, resamples if videos > 1 else 0, step):
        draws = rng.integers(0, videos, (min(step, resamples - start), videos))
        weights = np.array([np.bincount(row, minlength=videos) for row in draws], dtype=np.float64)
        sums.append(weights @ values)
    return np.concatenate(sums)


def resampled_scores(
    players: Mapping[str, Counts], resamples: int, seed: int, extra: FloatArray
) -> tuple[dict[str, Scores], FloatArray]:
    """Scores of several players on the same draws of videos.

    Args:
        players: Counts by name, arrays of shape (V, T); T may differ between players.
        resamples: The number of draws, B.
        seed: Of the draws.
        extra: Another value per video to sum, shape (V,).

    Returns:
        Scores by name, arrays of shape (B, T); and the sums of `extra`, shape (B,).
    """
    blocks = [part for each in players.values() for part in (each.tp, each.positives, each.detections)]
    table = np.concatenate([*blocks, extra[:, None]], axis=1).astype(np.float64)
    sums = resampled_sums(table, resamples, seed)
    ends = np.cumsum([block.shape[1] for block in blocks])
    parts = iter(np.split(sums, ends, axis=1))
    return {name: Scores.of(next(parts), next(parts), next(parts)) for name in players}, sums[:, -1]
