"""A whole evaluation: scores, floors, annotator ceiling, skill, delay and false alarms, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Annotated

import numpy as np

from ongebd import __version__
from ongebd.common.settings import Range, check_fields
from ongebd.data.files import FloatArray
from ongebd.data.files import videos as count_of
from ongebd.data.id_matching import IdMatch, hint, match_ids
from ongebd.data.label_set import LabelSet
from ongebd.data.labels import min_consistency_of
from ongebd.data.prediction_set import PredictionSet
from ongebd.errors import ConfigError, LabelError, shown
from ongebd.lab.evaluation.comparison import (
    Missing,
    check_min_consistency,
    compare,
    count_within_delay,
    measure_delays,
    watched_hours,
)
from ongebd.lab.evaluation.counts import Interval, Scores, resampled_scores
from ongebd.lab.evaluation.floors import (
    Ceiling,
    Floor,
    clock_floor,
    clock_times,
    each_annotator,
    most_consistent_annotator,
    random_floor,
    uniform_floor,
)
from ongebd.lab.evaluation.relative_distance import (
    FIGURES,
    THRESHOLDS,
    count_all,
    figure_values,
    relative_distance,
)
from ongebd.lab.evaluation.report_values import (
    Values,
    absolute_values,
    by_name,
    curve_values,
    delay_values,
    kind_values,
    labels_values,
    predictions_values,
    relative_values,
    videos_values,
    within_delay_values,
)

Figures = dict[str, FloatArray]
"""Values of `FIGURES`: scalars, or (B,) of the draws."""

Progress = Callable[[str], None]
"""Called with the name of each of the `STEPS` when it is done."""

STEPS = ("scores", "floors", "annotator ceiling", "bootstrap")
"""Of each system."""


@dataclass(frozen=True, slots=True)
class EvaluationConfig:
    """How an evaluation is run.

    Attributes:
        min_consistency: See `relative_distance`; "own" for the data set's own rule.
        missing: See `relative_distance`.
        resamples: Bootstrap samples; 0 for no intervals.
        seed: Of the bootstrap and the random floor.
    """

    min_consistency: float | str | None = "own"
    missing: Missing = "count"
    resamples: Annotated[int, Range(least=0, most=100_000)] = 1000
    seed: Annotated[int, Range(least=0)] = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if not isinstance(self.min_consistency, str):
            check_min_consistency(self.min_consistency)
        elif self.min_consistency != "own":
            raise ConfigError(
                f"min_consistency must be a number, None or 'own', not {shown(self.min_consistency)}"
            )


def evaluate(
    labels: LabelSet,
    predictions: PredictionSet,
    other: PredictionSet | None = None,
    *,
    config: EvaluationConfig | None = None,
    id_pattern: str | None = None,
    progress: Progress = lambda _: None,
) -> Values:
    """Evaluate a system's predictions, at the moment to score (`PredictionSet.at`).

    With `other`, two systems are compared on the same videos; with missing="skip" on those that both
    predicted. `id_pattern`: see `ongebd.data.id_matching`.

    Returns:
        The content of `report.json`. The first system's figures are at the top level, such as
        `relative["0.05"]["f1"]`, `absolute["0.25"]["f1"]`, and `…["f1_interval"]`, its 95 % interval. With a
        second system, `other` holds the same for it, and `difference` the first minus the second. What is
        unknown is None, with the reason in `why_none`.

    Raises:
        LabelError: Predictions can't be scored on these labels.
    """
    config = config or EvaluationConfig()
    least = config.min_consistency
    min_consistency = min_consistency_of(labels.dataset) if isinstance(least, str) else least
    given = [each.of_instances(labels, id_pattern) for each in (predictions, other) if each is not None]
    matches = [match_ids(each.videos, labels.videos, id_pattern) for each in given]
    for each, match in zip(given, matches, strict=True):
        if not match.label_of:
            some = ", ".join(map(repr, islice(match.unknown, 3)))
            raise LabelError(
                f"{each.source or 'the predictions'}: none of its {len(each.videos)} ids is in"
                f" {labels.source or 'the labels'} ({some}{', …' if len(match.unknown) > 3 else ''});"
                f" check the ids (see --id-pattern){hint(labels)}"
            )
    renamed = [each.renamed(match.label_of) for each, match in zip(given, matches, strict=True)]
    if other is not None and config.missing == "skip":
        renamed = _in_common(*renamed)
    systems = [
        _evaluate_system(labels, each, match, config, min_consistency, progress)
        for each, match in zip(renamed, matches, strict=True)
    ]
    report = {
        "ongebd": __version__,
        "labels": labels_values(labels),
        "settings": asdict(config) | {"min_consistency": min_consistency},
        **systems[0][0],
    }
    if len(systems) == 2:
        report["other"] = systems[1][0]
        report["difference"] = _differences(*(figures for _, *figures in systems))
    return report


def _evaluate_system(
    labels: LabelSet,
    predictions: PredictionSet,
    match: IdMatch,
    config: EvaluationConfig,
    min_consistency: float | None,
    progress: Progress,
) -> tuple[Values, Figures, Figures]:
    """Evaluate predictions that have the labels' ids: values, figures, and the figures of each draw."""
    predictions = replace(predictions, notes=(*predictions.notes, *doubts(labels, predictions)))
    comparison = compare(
        labels, predictions.in_seconds(labels), min_consistency=min_consistency, missing=config.missing
    )
    counts, hours = count_all(comparison), watched_hours(comparison)
    progress(STEPS[0])
    within = count_within_delay(comparison)
    clock = clock_floor(comparison)
    floors = (clock, uniform_floor(comparison), random_floor(comparison, config.seed))
    progress(STEPS[1])
    ceilings = each_annotator(comparison), most_consistent_annotator(comparison, labels)
    humans = tuple(ceiling for ceiling in ceilings if ceiling is not None)
    progress(STEPS[2])

    players = {"system": counts}
    if within is not None:
        players["within delay"] = within
    if humans:
        players["human"] = humans[0].counts
    for figure in FIGURES:
        floor = best_floor(floors, figure)
        players[_floor_key(floor, figure)] = floor.figures[figure].counts
    samples, hour_samples = resampled_scores(players, config.resamples, config.seed, hours)
    progress(STEPS[3])

    scores, drawn, watched = counts.totals(), samples["system"], float(hours.sum())
    moment = "onset was known" if predictions.moment == "onset" else "boundary was decided"
    unmeasured = f"the predictions don't say when each {moment}"
    delay, in_delay = {"n": 0, "median": None, "p95": None, "why_none": unmeasured}, {"why_none": unmeasured}
    if within is not None:
        delay = delay_values(measure_delays(comparison))
        ticks = [clock_times(length, clock.figures["absolute 0.5"].period) for length in comparison.limits]
        clock_within = count_within_delay(comparison.with_detections(ticks, decided=ticks))
        in_delay = within_delay_values(within, samples["within delay"], clock_within)
    values = {
        "scored": predictions.moment,
        "n": len(comparison),
        "predictions": predictions_values(predictions, match),
        "videos": videos_values(comparison) | {"hours_watched": watched},
        "relative": relative_values(scores, drawn),
        "relative_in_frames": _in_frames(labels, predictions, config, min_consistency),
        "absolute": absolute_values(scores, drawn, watched, hour_samples),
        "by_kind": kind_values(comparison, counts),
        "floors": {
            floor.name: {
                "figures": {name: {"f1": f.f1, "detail": f.detail} for name, f in floor.figures.items()},
                "curve": curve_values(floor.curve),
            }
            for floor in floors
        },
        "human": {
            human.name: {
                "n": human.n,
                "figures": {name: float(value) for name, value in figure_values(human.f1).items()},
                "curve": curve_values(human.f1),
            }
            for human in humans
        },
        "skill": {figure: _skill(figure, scores, floors, humans, samples) for figure in FIGURES},
        "delay": delay,
        "f1_within_delay": in_delay,
    }
    return values, figure_values(scores.f1), figure_values(drawn.f1)


def doubts(labels: LabelSet, predictions: PredictionSet) -> list[str]:
    """What hints at predictions that don't fit the labels, one line each. Ids must be the labels' ids."""
    notes = []
    pairs = [(video, labels.videos[name]) for name, video in predictions.videos.items()]
    times = sum(len(video.times) for video, _ in pairs)
    late = sum(int((video.times > label.duration + 1).sum()) for video, label in pairs)
    if predictions.unit == "seconds" and late > times / 2:
        notes.append(f"{late} of {times} times are after the video's end: frame numbers? (see --unit frames)")
    lengths = [
        f"{label.id!r} {video.duration:.1f} s, not {label.duration:.1f} s"
        for video, label in pairs
        if video.complete and video.duration is not None and abs(video.duration - label.duration) > 1
    ]
    if lengths:
        notes.append(
            f"{count_of(len(lengths))} of another length than in the labels, so maybe cut differently:"
            f" {'; '.join(lengths[:3])}{'; …' if len(lengths) > 3 else ''}"
        )
    return notes


def best_floor(floors: tuple[Floor, ...], figure: str) -> Floor:
    """The floor that scores highest by a figure, the first on ties."""
    return max(floors, key=lambda floor: floor.figures[figure].f1)


def _floor_key(floor: Floor, figure: str) -> str:
    """A floor's name among the bootstrap's players; figures with the same counts share it."""
    return f"{floor.name}, {floor.figures[figure].detail}"


def _skill(
    figure: str,
    scores: Scores,
    floors: tuple[Floor, ...],
    humans: tuple[Ceiling, ...],
    samples: Mapping[str, Scores],
) -> Values:
    """How far a system stands between the best floor (0) and the annotators (1), by one figure."""
    floor = best_floor(floors, figure)
    low, high = floor.figures[figure].f1, float(figure_values(humans[0].f1)[figure]) if humans else None
    value = interval = why = None
    if high is None:
        why = "no video has two annotators to compare"
    elif not high > low:
        why = "the annotators don't score above the best floor, so skill means nothing here"
    else:
        names = ("system", "human", _floor_key(floor, figure))
        own, human, blind = (figure_values(samples[name].f1)[figure] for name in names)
        span = human - blind
        interval = Interval.of((own - blind) / span) if len(span) and (span > 0).all() else None
        value = (float(figure_values(scores.f1)[figure]) - low) / (high - low)
    return {
        "value": value,
        "interval": interval,
        "best_floor": floor.name,
        "floor_f1": low,
        "human_f1": high,
        "why_none": why,
    }


def _in_frames(
    labels: LabelSet, predictions: PredictionSet, config: EvaluationConfig, min_consistency: float | None
) -> Values | None:
    """The score by the official notebooks' rule in frames, for TAPOS and predictions in frames; else None."""
    if labels.dataset != "tapos" and predictions.unit != "frames":
        return None
    if any(video.last_frame is None or video.fps is None for video in labels.videos.values()):
        return None
    frames = predictions.in_frames(labels)
    score = relative_distance(labels, frames, THRESHOLDS, min_consistency, config.missing, "frames")
    return {"f1": by_name(THRESHOLDS, score.f1), "average": score.average}


def _in_common(first: PredictionSet, second: PredictionSet) -> list[PredictionSet]:
    shared = set(first.videos) & set(second.videos)
    if not shared:
        raise LabelError("the two systems share no video, so --missing skip leaves nothing to compare")
    return [
        replace(each, videos={name: video for name, video in each.videos.items() if name in shared})
        for each in (first, second)
    ]


def _differences(first: Sequence[Figures], second: Sequence[Figures]) -> Values:
    """By figure, from the figures of two systems and of their draws, which are paired."""
    result = {}
    for figure in FIGURES:
        f1, drawn = (own[figure] - other[figure] for own, other in zip(first, second, strict=True))
        better = float(np.mean(drawn > 0)) if len(drawn) else None
        interval = Interval.of(drawn)
        result[figure] = {"f1": float(f1), "interval": interval, "share_of_draws_above_0": better}
    return result
