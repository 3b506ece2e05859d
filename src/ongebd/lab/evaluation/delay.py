"""How late a system reports what it found: delay, F1 within an allowed delay, false alarms per hour.

The official score ignores lateness. A detection's delay is the time at which it was *decided* minus the time
of the annotated boundary it is matched with, so it includes both the wait for a decision and the error of the
time. It is negative when a system decides before the moment that the annotator marked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ongebd.data.numbers import FloatArray
from ongebd.lab.evaluation.comparison import Comparison
from ongebd.lab.evaluation.counts import Counts, IntArray, Scores
from ongebd.lab.evaluation.matching import greedy_match

DELAY_TOLERANCE = 0.5
"""Seconds: the absolute tolerance at which detections are matched before their delay is measured."""

ALLOWED_DELAYS = (0.0, 0.1, 0.25, 0.5, 1.0)
"""Seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Delays:
    """The delays of all matched detections.

    Attributes:
        seconds: decided − matched boundary, shape (M,).
        video: The video of each, shape (M,).
        tolerance: Of the matching, in seconds.
    """

    seconds: FloatArray
    video: IntArray
    tolerance: float

    def percentile(self, percent: float) -> float | None:
        """A percentile of the delays, in seconds; None if nothing was matched."""
        return float(np.percentile(self.seconds, percent)) if len(self.seconds) else None


def measure_delays(comparison: Comparison, tolerance: float = DELAY_TOLERANCE) -> Delays | None:
    """The delay of each matched detection, against the annotator that the rule chooses at the tolerance.

    None if the predictions don't contain the times of their decisions.
    """
    if comparison.decided is None:
        return None
    chosen = comparison.count(comparison.absolute_tolerances([tolerance])).annotator[:, 0]
    delays, owner = [], []
    for video, annotator in enumerate(chosen):
        marks, known = comparison.annotators[video][annotator], comparison.decided[video]
        for mark, detection in greedy_match(marks, comparison.detections[video], tolerance):
            delays.append(float(known[detection] - marks[mark]))
            owner.append(video)
    return Delays(np.array(delays, dtype=np.float64), np.array(owner, dtype=np.int64), tolerance)


def count_within_delay(comparison: Comparison, tolerance: float = DELAY_TOLERANCE) -> Counts | None:
    """Counts at each of `ALLOWED_DELAYS` and then without a limit, arrays of shape (V, 6).

    Detections are matched at the absolute tolerance; a match that was decided too late doesn't count. None
    if the predictions don't contain the times of their decisions.
    """
    if comparison.decided is None:
        return None
    allowed = np.array([*ALLOWED_DELAYS, np.inf])
    return comparison.count(comparison.absolute_tolerances([tolerance] * len(allowed)), allowed)


def watched_hours(comparison: Comparison) -> FloatArray:
    """Hours of each video that the system saw, shape (V,); 0 if it made no prediction."""
    return comparison.limits / 3600 * comparison.found


def false_alarms_per_hour(scores: Scores, hours: FloatArray | float) -> FloatArray:
    """Detections that match no boundary per hour watched, in the scores' shape; NaN for no hours."""
    alarms = scores.detections - scores.tp
    return np.divide(alarms, hours, out=np.full_like(alarms, np.nan), where=np.asarray(hours) > 0)
