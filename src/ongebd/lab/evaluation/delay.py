"""How late a system says what it found: delay, F1 within an allowed delay, false alarms per hour.

A boundary that is found three seconds after it happened is of little use to who watches a stream, and the
official score does not tell. The delay of a detection is the time at which it was *decided* less the time of
the annotated boundary that it is matched with, so it holds both the wait for a decision and the error of the
time itself. It can be negative: a system may speak before the moment that the annotator marked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ongebd.data.numbers import FloatArray
from ongebd.lab.evaluation.comparison import Comparison
from ongebd.lab.evaluation.counts import Counts, IntArray, Scores
from ongebd.lab.evaluation.matching import greedy_match

DELAY_TOLERANCE = 0.5
"""Seconds: detections are matched with boundaries at this absolute tolerance before their delay is taken."""

ALLOWED_DELAYS = (0.0, 0.1, 0.25, 0.5, 1.0)
"""Seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Delays:
    """The delays of all matched detections.

    Attributes:
        seconds: decided − matched boundary, shape (M,).
        video: The video of each, shape (M,).
        tolerance: At which they were matched, seconds.
    """

    seconds: FloatArray
    video: IntArray
    tolerance: float

    def percentile(self, percent: float) -> float | None:
        """A percentile of the delays, seconds; None where nothing was matched."""
        return float(np.percentile(self.seconds, percent)) if len(self.seconds) else None


def measure_delays(comparison: Comparison, tolerance: float = DELAY_TOLERANCE) -> Delays | None:
    """The delay of each matched detection, against the annotator whom the rule chooses at the tolerance.

    Returns:
        None where the predictions do not say when they were decided.
    """
    if comparison.decided is None:
        return None
    chosen = comparison.count(comparison.absolute_tolerances([tolerance])).annotator[:, 0]
    delays: list[float] = []
    owner: list[int] = []
    for video, annotator in enumerate(chosen):
        marks, known = comparison.annotators[video][annotator], comparison.decided[video]
        for mark, detection in greedy_match(marks, comparison.detections[video], tolerance):
            delays.append(float(known[detection] - marks[mark]))
            owner.append(video)
    return Delays(np.array(delays, dtype=np.float64), np.array(owner, dtype=np.int64), tolerance)


def count_within_delay(comparison: Comparison, tolerance: float = DELAY_TOLERANCE) -> Counts | None:
    """Counts at each of `ALLOWED_DELAYS` and then without a limit, arrays of shape (V, 6).

    Matching is that of the absolute tolerance; a match that was decided too late does not count.

    Returns:
        None where the predictions do not say when they were decided.
    """
    if comparison.decided is None:
        return None
    allowed = np.array([*ALLOWED_DELAYS, np.inf])
    return comparison.count(comparison.absolute_tolerances([tolerance] * len(allowed)), allowed)


def watched_hours(comparison: Comparison) -> FloatArray:
    """Hours of each video that the system saw, shape (V,): 0 where it made no prediction."""
    return comparison.limits / 3600 * comparison.found


def false_alarms_per_hour(scores: Scores, hours: FloatArray | float) -> FloatArray:
    """Detections that match no boundary, an hour watched, in the scores' shape; NaN where none was."""
    alarms = scores.detections - scores.tp
    return np.divide(alarms, hours, out=np.full_like(alarms, np.nan), where=np.asarray(hours) > 0)
