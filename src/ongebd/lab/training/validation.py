"""How good an anticipator is: its errors through the discriminator, and its best threshold.

Decisions are made by the stream's own discriminator and runs. The discriminator's z does not depend on τ, so
it is computed once for all thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ongebd.data.files import FloatArray
from ongebd.data.label_set import LabelSet
from ongebd.data.labelled import BoolArray, LabelledVideo
from ongebd.data.labels import min_consistency_of
from ongebd.data.prediction_set import PredictionSet, VideoPrediction
from ongebd.data.windows import stretches
from ongebd.detector.config import StreamConfig
from ongebd.detector.judge import BoundaryRuns
from ongebd.errors import ConfigError
from ongebd.lab.evaluation.comparison import compare
from ongebd.lab.evaluation.relative_distance import FIGURES, count_all, figure_values
from ongebd.types import Boundary

TAUS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 16.0, 20.0)
"""Values of τ to try."""

PAPER_TAU = 1.5

_QUANTILES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.995)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """One video's frames, ready to be decided at any threshold.

    Attributes:
        video: The video.
        score: Compared with the threshold: the discriminator's z, or the error itself, (T,).
        testable: Frames that may be positive: the discriminator was ready, the error above its floor.
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
        errors: ε of their frames, NaN for frames without an error.
        config: Settings of the stream, all filled in; its τ doesn't matter here.
        obd: By the discriminator; otherwise the error is the score.
    """
    if not obd:
        known = [~np.isnan(error) for error in errors]
        scores = [np.where(there, error, 0.0) for there, error in zip(known, errors, strict=True)]
        return [Judged(*parts) for parts in zip(videos, scores, known, strict=True)]
    discriminator = config.discriminator()
    out = []
    for video, error in zip(videos, errors, strict=True):
        score, testable = np.zeros(len(video)), np.zeros(len(video), np.bool_)
        for first, end in stretches(video.epochs):
            discriminator.reset()
            for frame in range(first + 1, end):
                discriminator.update(error[frame])
                score[frame] = discriminator.z
                testable[frame] = discriminator.ready and error[frame] > discriminator.min_error
        out.append(Judged(video, score, testable))
    return out


def boundaries_at(judged: Judged, threshold: float, config: StreamConfig) -> list[Boundary]:
    """The boundaries of one video at a threshold of its scores: τ, or an error."""
    runs = BoundaryRuns([threshold], config.min_gap or 0.0, config.max_run or 0.0)
    times, found = judged.video.times, list[Boundary]()
    for first, end in stretches(judged.video.epochs):
        runs.reset()
        for frame in range(first + 1, end):
            able = bool(judged.testable[frame])
            found += runs.update(float(times[frame]), float(judged.score[frame]), able).boundaries
        if (last := runs.flush()) is not None:
            found.append(last)
    return found


def predictions_at(judged: Sequence[Judged], threshold: float, config: StreamConfig) -> PredictionSet:
    """The predictions for all videos, scored at their centres."""
    videos = {}
    for each in judged:
        found = boundaries_at(each, threshold, config)
        table = np.array([(b.time, b.decided, b.onset) for b in found], dtype=np.float64).reshape(-1, 3)
        videos[each.video.id] = VideoPrediction(*table.T.copy())
    return PredictionSet(videos, source="validation", kind="values")


@dataclass(frozen=True, slots=True, eq=False)
class Validated:
    """One anticipator on the validation videos.

    Attributes:
        name: "cea", "window-mean", "persistence" or "classifier".
        threshold: The given τ, or the best threshold.
        figures: F1 by each of `FIGURES` at it.
        best_threshold: The best τ, or fixed threshold on the error. It was chosen on these videos, so the
            figures at it flatter all anticipators equally.
        best_figures: F1 by each of `FIGURES` at that one.
        at_paper_tau: The same at τ = 1.5; None without the discriminator.
        by_threshold: The figure that chooses, at each threshold tried.
        mean_boundary: The mean error of frames that are boundaries; NaN without any.
        mean_elsewhere: That of the others.
        predictions: At `threshold`.
    """

    name: str
    threshold: float
    figures: dict[str, float]
    best_threshold: float
    best_figures: dict[str, float]
    at_paper_tau: dict[str, float] | None
    by_threshold: dict[float, float]
    mean_boundary: float
    mean_elsewhere: float
    predictions: PredictionSet


def validate(
    name: str,
    videos: Sequence[LabelledVideo],
    errors: Sequence[FloatArray],
    labels: LabelSet,
    config: StreamConfig,
    *,
    select_by: str,
    obd: bool = True,
    tau: float | None = None,
) -> Validated:
    """Find an anticipator's best threshold by one of `FIGURES`, and its figures there and at a given τ.

    Args:
        name: Of the anticipator.
        videos: The validation videos.
        errors: ε of their frames.
        labels: Of these videos at least.
        config: Settings of the stream; its τ doesn't matter.
        select_by: The figure.
        obd: Through the discriminator; otherwise by a fixed threshold on the error.
        tau: τ, if it is given and not chosen; for the discriminator.

    Raises:
        ConfigError: The figure is unknown.
    """
    if select_by not in FIGURES:
        raise ConfigError(f"select_by must be one of {', '.join(FIGURES)}, not {select_by!r}")
    own = labels.restrict([video.id for video in videos], "the validation videos")
    judged = judge(videos, errors, config, obd=obd)
    everything, targets = np.concatenate(list(errors)), np.concatenate([video.targets for video in videos])
    kinds = [everything[~np.isnan(everything) & frames] for frames in (targets, ~targets)]
    means = [float(kind.mean()) if len(kind) else float("nan") for kind in kinds]
    predictions = {
        threshold: predictions_at(judged, threshold, config)
        for threshold in (sorted({*TAUS, tau or PAPER_TAU}) if obd else _error_thresholds(everything))
    }
    values = {threshold: figures(own, found) for threshold, found in predictions.items()}
    by_threshold = {threshold: each[select_by] for threshold, each in values.items()}
    highest = max(by_threshold.values())
    equal = [threshold for threshold, value in by_threshold.items() if value == highest]
    best = equal[len(equal) // 2]  # the middle of the equally good ones is the most robust
    threshold = tau if obd and tau is not None else best
    return Validated(
        name=name,
        threshold=threshold,
        figures=values[threshold],
        best_threshold=best,
        best_figures=values[best],
        at_paper_tau=values[PAPER_TAU] if obd else None,
        by_threshold=by_threshold,
        mean_boundary=means[0],
        mean_elsewhere=means[1],
        predictions=predictions[threshold],
    )


def figures(labels: LabelSet, predictions: PredictionSet) -> dict[str, float]:
    """F1 by each of `FIGURES`, by the data set's own rule."""
    comparison = compare(labels, predictions, min_consistency=min_consistency_of(labels.dataset))
    values = figure_values(count_all(comparison).totals().f1)
    return {name: float(values[name]) for name in FIGURES}


def _error_thresholds(errors: FloatArray) -> list[float]:
    """0.5, where the loss turns, and quantiles of the errors."""
    known = errors[~np.isnan(errors)]
    if (known > 0).mean() < 0.5:  # of a system that scores the candidates alone
        known = known[known > 0]
        return sorted({0.0, *np.quantile(known, np.arange(20) / 20).tolist()}) if len(known) else [0.5]
    return sorted({0.5, *np.quantile(known, _QUANTILES).tolist()})
