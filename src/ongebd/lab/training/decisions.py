"""From errors to boundaries, by the parts that run in the stream, at many thresholds at once.

`BoundaryDiscriminator` and `BoundaryRuns` are the stream's own; a test holds the boundaries against those of
`OnlineDetector` fed the same features. The discriminator's z does not depend on τ, so it is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ongebd.data.labelled import BoolArray, LabelledVideo
from ongebd.data.numbers import FloatArray
from ongebd.data.prediction_set import PredictionSet, VideoPrediction
from ongebd.data.windows import stretches
from ongebd.detector.config import StreamConfig
from ongebd.types import Boundary


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """One video's frames, ready to be decided at any threshold.

    Attributes:
        video: The video.
        score: What is compared with the threshold: z of the discriminator, or the error itself, (T,).
        testable: Frames that may be positive: the discriminator was ready, and the error above its floor.
    """

    video: LabelledVideo
    score: FloatArray
    testable: BoolArray


def judge(
    videos: Sequence[LabelledVideo], errors: Sequence[FloatArray], config: StreamConfig, *, obd: bool = True
) -> list[Judged]:
    """Score every frame.

    Args:
        videos: The videos.
        errors: ε of their frames, NaN where there is none.
        config: Settings of the stream, every one filled in; its τ does not matter here.
        obd: By the discriminator; otherwise the error is the score.
    """
    discriminator = config.discriminator()
    floor = discriminator.min_error if obd else -np.inf
    out = []
    for video, error in zip(videos, errors, strict=True):
        score, testable = np.zeros(len(video)), np.zeros(len(video), np.bool_)
        known = ~np.isnan(error)
        if not obd:
            score[known], testable = error[known], known
            out.append(Judged(video, score, testable))
            continue
        for first, end in stretches(video.epochs):
            discriminator.reset()
            for frame in range(first + 1, end):
                discriminator.update(error[frame])
                score[frame] = discriminator.z
                testable[frame] = discriminator.ready and error[frame] > floor
        out.append(Judged(video, score, testable))
    return out


def boundaries_at(judged: Judged, threshold: float, config: StreamConfig) -> list[Boundary]:
    """The boundaries of one video at a threshold of its scores: τ, or an error."""
    runs = config.runs()
    positive = judged.testable & (judged.score > threshold)
    times, found = judged.video.times, []
    for first, end in stretches(judged.video.epochs):
        runs.reset()
        for frame in range(first + 1, end):
            step = runs.update(float(times[frame]), bool(positive[frame]), float(judged.score[frame]))
            if step.boundary is not None:
                found.append(step.boundary)
        last = runs.flush()
        if last is not None:
            found.append(last)
    return found


def predictions_at(judged: Sequence[Judged], threshold: float, config: StreamConfig) -> PredictionSet:
    """The predictions for all videos, scored at their centres."""
    videos = {}
    for each in judged:
        found = boundaries_at(each, threshold, config)
        videos[each.video.id] = VideoPrediction(
            np.array([boundary.time for boundary in found], dtype=np.float64),
            np.array([boundary.decided for boundary in found], dtype=np.float64),
            np.array([boundary.onset for boundary in found], dtype=np.float64),
        )
    return PredictionSet(videos, source="validation", kind="values")
