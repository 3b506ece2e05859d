"""True positives, positives and detections, and the scores made of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ongebd.data.numbers import FloatArray

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
