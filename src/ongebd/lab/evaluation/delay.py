"""How late a system reports what it found: delay, F1 within an allowed delay, false alarms per hour.

The official score ignores lateness. A detection's delay is the time at which it was *decided* minus the time
of the annotated boundary it is matched with, so it includes both the wait for a decision and the error of the
time. It is negative when a system decides before the moment that the annotator marked.
"""

from __future__ import annotations

import numpy as np

from ongebd.data.numbers import FloatArray
from ongebd.lab.evaluation.comparison import Comparison
from ongebd.lab.evaluation.counts import Counts, Scores
from ongebd.lab.evaluation.matching import greedy_match

DELAY_TOLERANCE = 0.5
"""Seconds: the absolute tolerance at which detections are matched before their delay is measured."""

ALLOWED_DELAYS = (0.0, 0.1, 0.25, 0.5, 1.0)
"""Seconds."""


def measure_delays(comparison: Comparison, tolerance: float = DELAY_TOLERANCE) -> FloatArray | None:
    """The delay of each matched detection in seconds, shape (M,), at the absolute tolerance.

    Detections are matched with the annotator that the rule chooses. None if the predictions don't contain the
    times of their decisions.
    """
    if comparison.decided is None:
        return None
    chosen = comparison.count(comparison.absolute_tolerances([tolerance])).annotator[:, 0]
    delays = []
    for video, annotator in enumerate(chosen):
        marks, known = comparison.annotators[video][annotator], comparison.decided[video]
        for mark, detection in greedy_match(marks, comparison.detections[video], tolerance):
            delays.append(float(known[detection] - marks[mark]))
    return np.array(delays, dtype=np.float64)


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
