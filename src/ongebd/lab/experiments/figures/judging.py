"""Which of a method's boundaries an annotator marked too, by the official rule, in one video."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ongebd.data.label_set import VideoLabels
from ongebd.data.numbers import FloatArray
from ongebd.errors import ConfigError, a_number
from ongebd.lab.evaluation.matching import count_matches, greedy_match

RELATIVE = 0.05
"""Of the video's length: the paper's strictest relative distance, and the tolerance where none is given."""


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Boundaries held against the annotator whom they suit best.

    Attributes:
        times: Of the boundaries that the rule admits: those from 0 to the labelled end, seconds, shape (D,).
        right: Which of them are matched with a boundary of the annotator, shape (D,).
        missed: The annotator's boundaries that none is matched with, seconds.
        annotator: Place of the annotator in the labels.
    """

    times: FloatArray
    right: npt.NDArray[np.bool_]
    missed: FloatArray
    annotator: int

    def between(self, start: float, end: float) -> Judged:
        """Those of a part of the video, seconds; they were judged in the whole."""
        shown = (self.times >= start) & (self.times <= end)
        missed = self.missed[(self.missed >= start) & (self.missed <= end)]
        return Judged(self.times[shown], self.right[shown], missed, self.annotator)

    def in_words(self) -> str:
        """How many are right, false and missing.

        >>> Judged(np.array([1.0, 2.0]), np.array([True, False]), np.array([7.0]), 0).in_words()
        '1 right, 1 false, 1 missed'
        """
        right = int(self.right.sum())
        return f"{right} right, {len(self.times) - right} false, {len(self.missed)} missed"


def judged(times: FloatArray, labels: VideoLabels, tolerance: float) -> Judged:
    """Match boundaries with the annotator of highest F1, the first on ties: the official rule.

    Args:
        times: Boundaries, seconds, in the order in which they were decided.
        labels: The video's.
        tolerance: Seconds.
    """
    times = times[(times >= 0) & (times <= labels.duration)]
    counts = count_matches([labels.boundaries], [times], np.array([[tolerance]]))
    annotator = int(counts.annotator[0, 0])
    marks = labels.boundaries[annotator]
    pairs = greedy_match(marks, times, tolerance)
    right = np.zeros(len(times), np.bool_)
    right[[detection for _, detection in pairs]] = True
    found = {mark for mark, _ in pairs}
    missed = np.array([mark for place, mark in enumerate(marks) if place not in found], np.float64)
    return Judged(times, right, missed, annotator)


def tolerance_of(labels: VideoLabels, tolerance: float | None) -> float:
    """A tolerance in seconds; None takes `RELATIVE` of the video's length.

    Raises:
        ConfigError: It is not a number above 0.
    """
    if tolerance is None:
        return RELATIVE * labels.duration
    value = a_number("tolerance", tolerance)
    if not 0 < value < np.inf:
        raise ConfigError(f"tolerance is {value} s; it must be above 0")
    return value


def agreement(labels: VideoLabels, tolerance: float) -> tuple[FloatArray, FloatArray]:
    """How many of the annotators have a boundary nearby, at every moment.

    Args:
        labels: The video's.
        tolerance: How near, seconds.

    Returns:
        Edges in seconds, shape (S + 1,), from 0 to the labelled end; and the share of the annotators, 0 to 1,
        between two edges, shape (S,).

    Examples:
        >>> labels = VideoLabels("clip", 10.0, (np.array([4.0]), np.array([4.5])))
        >>> edges, share = agreement(labels, 1.0)
        >>> edges.tolist(), share.tolist()
        ([0.0, 3.0, 3.5, 5.0, 5.5, 10.0], [0.0, 0.5, 1.0, 0.5, 0.0])
    """
    rows = [
        np.clip([times - tolerance, times + tolerance], 0, labels.duration) for times in labels.boundaries
    ]
    edges = np.unique(np.concatenate([[0.0, labels.duration], *(row.ravel() for row in rows)]))
    middles = (edges[1:] + edges[:-1]) / 2
    near = [((row[0][:, None] < middles) & (middles < row[1][:, None])).any(axis=0) for row in rows]
    return edges, np.mean(near, axis=0)
