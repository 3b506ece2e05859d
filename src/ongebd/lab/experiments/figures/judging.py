"""Which of a method's boundaries an annotator marked too, by the official rule, in one video."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ongebd.data.files import FloatArray
from ongebd.data.label_set import VideoLabels
from ongebd.errors import ConfigError, a_number
from ongebd.lab.evaluation.matching import count_matches, greedy_match

RELATIVE = 0.05
"""The default tolerance, as a share of the video's length: the paper's strictest relative distance."""


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Boundaries compared with the annotator that they match best.

    Attributes:
        times: Boundaries within the labelled length, seconds, (D,).
        right: Which of them match a boundary of the annotator, (D,).
        missed: The annotator's boundaries without a match, seconds.
    """

    times: FloatArray
    right: npt.NDArray[np.bool_]
    missed: FloatArray

    def between(self, start: float, end: float) -> Judged:
        """Those in a part of the video; they are still judged in the whole."""
        shown = (self.times >= start) & (self.times <= end)
        missed = self.missed[(self.missed >= start) & (self.missed <= end)]
        return Judged(self.times[shown], self.right[shown], missed)

    def __str__(self) -> str:
        right = int(self.right.sum())
        return f"{right} right, {len(self.times) - right} false, {len(self.missed)} missed"


def judge(times: FloatArray, labels: VideoLabels, tolerance: float) -> Judged:
    """Match boundaries with the annotator of highest F1, the first on ties: the official rule.

    Args:
        times: Boundaries, seconds, in the order in which they were decided.
        labels: The video's.
        tolerance: Seconds.
    """
    times = times[(times >= 0) & (times <= labels.duration)]
    counts = count_matches([labels.boundaries], [times], np.array([[tolerance]]))
    marks = labels.boundaries[int(counts.annotator[0, 0])]
    pairs = greedy_match(marks, times, tolerance)
    right = np.zeros(len(times), np.bool_)
    right[[detection for _, detection in pairs]] = True
    return Judged(times, right, np.delete(marks, [mark for mark, _ in pairs]))


def tolerance_of(labels: VideoLabels, tolerance: float | None) -> float:
    """A tolerance in seconds; None means `RELATIVE` of the video's length.

    Raises:
        ConfigError: It isn't above 0.
    """
    if tolerance is None:
        return RELATIVE * labels.duration
    if not 0 < a_number("tolerance", tolerance) < np.inf:
        raise ConfigError(f"tolerance is {tolerance} s; it must be above 0")
    return tolerance
