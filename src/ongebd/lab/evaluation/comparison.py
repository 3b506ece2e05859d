"""Which videos are scored, with which detections, and how late these come.

The official score ignores lateness. A detection's delay is the time at which it was *decided* minus the time
of the annotated boundary it is matched with, so it includes both the wait for a decision and the error of the
time. It is negative when a system decides before the moment that the annotator marked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from ongebd.data.files import FloatArray
from ongebd.data.label_set import LabelSet, VideoLabels
from ongebd.data.prediction_set import PredictionSet, Unit, VideoPrediction
from ongebd.errors import ConfigError, LabelError, a_number
from ongebd.lab.evaluation.counts import Counts, Scores
from ongebd.lab.evaluation.matching import count_matches, greedy_match

Missing = Literal["count", "skip"]

_NOTHING = np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """V videos to score, in the labels' order, all times in one unit.

    Attributes:
        ids: Their ids.
        annotators: Each video's boundaries, one array per annotator.
        kinds: Each video's kinds of boundary by annotator, or nothing.
        lengths: What a relative tolerance is a fraction of, shape (V,).
        limits: The last admissible time, shape (V,).
        detections: Each video's admissible detections, in the given order.
        decided: When they were known; None if that is unknown for any.
        found: Whether the video has a prediction at all, shape (V,).
        labelled: Labelled videos before any filter.
        filtered: Videos left out because their annotators agree too little.
        skipped: Videos left out because they have no prediction ("skip").
        out_of_range: Detections before 0 or after the end, which the rule drops.
        unknown: Predictions for videos that are not labelled.
    """

    ids: tuple[str, ...]
    annotators: list[tuple[FloatArray, ...]]
    kinds: list[tuple[tuple[str, ...], ...]]
    lengths: FloatArray
    limits: FloatArray
    detections: list[FloatArray]
    decided: list[FloatArray] | None
    found: npt.NDArray[np.bool_]
    labelled: int
    filtered: int
    skipped: int
    out_of_range: int
    unknown: int

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def missing(self) -> int:
        """Scored videos without a prediction: all their boundaries count as missed."""
        return int((~self.found).sum())

    @property
    def empty(self) -> int:
        """Videos with a prediction that has no admissible detection."""
        return sum(
            bool(found) and not len(times) for found, times in zip(self.found, self.detections, strict=True)
        )

    def with_detections(
        self, detections: Sequence[FloatArray], decided: Sequence[FloatArray] | None = None
    ) -> Comparison:
        """The same videos with other detections (of a floor, say), all of them admissible."""
        return replace(
            self,
            detections=list(detections),
            decided=None if decided is None else list(decided),
            found=np.ones(len(self), dtype=np.bool_),
        )

    def count(self, tolerances: FloatArray, allowed_delay: FloatArray | None = None) -> Counts:
        """The official counts at tolerances (V, T); see `count_matches`."""
        return count_matches(
            self.annotators, self.detections, tolerances, decided=self.decided, allowed_delay=allowed_delay
        )

    def relative_tolerances(self, thresholds: Sequence[float]) -> FloatArray:
        """Thresholds times lengths, shape (V, T)."""
        return np.array(thresholds, dtype=np.float64)[None, :] * self.lengths[:, None]

    def absolute_tolerances(self, seconds: Sequence[float]) -> FloatArray:
        """The same tolerances for each video, shape (V, T)."""
        return np.repeat(np.array(seconds, dtype=np.float64)[None, :], len(self), axis=0)


def compare(
    labels: LabelSet,
    predictions: PredictionSet,
    *,
    min_consistency: float | None = 0.3,
    missing: Missing = "count",
    unit: Unit = "seconds",
) -> Comparison:
    """The videos to score, with their admissible detections. Ids are matched exactly.

    In seconds a detection is admissible from 0 to `video_duration`, and a relative tolerance is a fraction
    of that. In frames both use frame numbers, as in the official notebooks: from 0 to the last frame, and
    the length is one more.

    Args:
        labels: The labels.
        predictions: The predictions, in `unit`.
        min_consistency: Leave out videos whose `f1_consis_avg` is lower; None for no filter. Videos without
            that value are kept.
        missing: "count": a video without a prediction counts the first annotator's boundaries as missed;
            "skip": it is left out, as in one public variant of the official script.
        unit: Of the scoring.

    Raises:
        LabelError: The units differ, labels lack frame numbers, or no video is left to score.
        ConfigError: `min_consistency` is not a number of at least 0.
    """
    check_min_consistency(min_consistency)
    if missing not in ("count", "skip"):
        raise LabelError(f"missing must be 'count' or 'skip', not {missing!r}")
    if predictions.unit != unit:
        raise LabelError(f"the predictions are in {predictions.unit}, not in {unit}; convert them first")
    exact = {name: name for name in predictions.videos if name in labels.videos}
    name = labels.source or "the labels"
    agreeing = [video for video in labels.videos.values() if _annotators_agree(video, min_consistency)]
    if not agreeing:
        raise LabelError(
            f"{name}: no video has f1_consis_avg of {min_consistency} or more; lower --min-consistency"
        )
    scored = [video for video in agreeing if missing == "count" or video.id in predictions.videos]
    if not scored or (predictions.videos and not exact):
        raise LabelError(
            f"{predictions.source or 'the predictions'}: none of its {len(predictions.videos)} ids is among"
            f" the {len(agreeing)} to score in {name}; check the ids (see --id-pattern)"
        )
    limits = _last_frames(scored, name) if unit == "frames" else np.array([v.duration for v in scored], float)
    rows = [predictions.videos.get(video.id, VideoPrediction(_NOTHING, _NOTHING)) for video in scored]
    masks = [(row.times >= 0) & (row.times <= limit) for row, limit in zip(rows, limits, strict=True)]
    decided = None
    if predictions.has_decisions:
        decided = [
            _NOTHING if row.decided is None else row.decided[mask]
            for row, mask in zip(rows, masks, strict=True)
        ]
    return Comparison(
        ids=tuple(video.id for video in scored),
        annotators=[video.frame_boundaries if unit == "frames" else video.boundaries for video in scored],
        kinds=[video.kinds for video in scored],
        lengths=limits + 1 if unit == "frames" else limits,
        limits=limits,
        detections=[row.times[mask] for row, mask in zip(rows, masks, strict=True)],
        decided=decided,
        found=np.array([video.id in predictions.videos for video in scored], dtype=np.bool_),
        labelled=len(labels),
        filtered=len(labels) - len(agreeing),
        skipped=len(agreeing) - len(scored),
        out_of_range=int(sum((~mask).sum() for mask in masks)),
        unknown=len(predictions.videos) - len(exact),
    )


def check_min_consistency(value: float | None) -> None:
    """Raise a ConfigError for what is not a finite number of at least 0, or None."""
    if value is not None and not (0 <= a_number("min_consistency", value) < math.inf):
        raise ConfigError(f"min_consistency must be at least 0 and finite, not {value}")


def _annotators_agree(video: VideoLabels, least: float | None) -> bool:
    return least is None or video.consistency is None or not video.consistency < least


def _last_frames(videos: list[VideoLabels], name: str) -> FloatArray:
    last = []
    for video in videos:
        if video.last_frame is None or not video.frame_boundaries:
            raise LabelError(
                f"{name}: video {video.id!r} has no frame numbers (num_frames, fps); score in seconds"
            )
        last.append(video.last_frame)
    return np.array(last, dtype=np.float64)


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
