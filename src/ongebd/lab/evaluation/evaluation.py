"""A whole evaluation: scores, floors, annotator ceiling, skill, delay and false alarms, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated

import numpy as np

from ongebd.common.settings import Range, check_fields
from ongebd.data.id_matching import IdMatch, match_ids
from ongebd.data.label_set import LabelSet
from ongebd.data.labels import min_consistency_of
from ongebd.data.numbers import FloatArray
from ongebd.data.prediction_set import PredictionSet
from ongebd.errors import ConfigError, LabelError
from ongebd.lab.evaluation.bootstrap import Interval, resampled_scores
from ongebd.lab.evaluation.ceiling import Ceiling, each_annotator, most_consistent_annotator
from ongebd.lab.evaluation.comparison import Comparison, Missing, check_min_consistency, compare
from ongebd.lab.evaluation.counts import Scores
from ongebd.lab.evaluation.delay import count_within_delay, measure_delays, watched_hours
from ongebd.lab.evaluation.figures import FIGURES, count_all, figure_values
from ongebd.lab.evaluation.floors import Floor, clock_floor, clock_times, random_floor, uniform_floor
from ongebd.lab.evaluation.relative_distance import THRESHOLDS, RelativeDistance, relative_distance

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
                f"min_consistency must be a number, None or 'own', not {self.min_consistency!r}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Skill:
    """How far a system stands between the best floor (0) and the annotators (1), by one figure.

    Attributes:
        value: (F1 − floor) / (annotators − floor), or None for the reason in `why_none`.
        interval: 95 %.
        best_floor: "clock", "uniform" or "random".
        floor_f1: Its F1.
        human_f1: The F1 of each annotator in turn; None if no video has two.
        why_none: Why there is no value.
    """

    value: float | None
    interval: Interval | None
    best_floor: str
    floor_f1: float
    human_f1: float | None
    why_none: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SystemResult:
    """All results of one system on one set of labels.

    Attributes:
        predictions: What was scored.
        match: How its ids were matched.
        comparison: The scored videos, in seconds.
        scores: At the 10 thresholds and 4 absolute tolerances, (14,).
        samples: Bootstrap samples of the same, (B, 14).
        in_frames: The score by the official notebooks' rule in frames; for TAPOS and frame predictions only.
        floors: clock, uniform, random.
        clock_within_delay: F1 of the clock (best at 0.5 s) at each allowed delay and without a limit, (6,).
        humans: Annotators against the others; empty if no video has two.
        skill: By figure.
        delays: Of each match, in seconds; None without times of decisions, like `within_delay`.
        within_delay: Scores at each allowed delay and without a limit, (6,).
        within_delay_samples: (B, 6).
        hours: Hours watched.
        hour_samples: (B,).
    """

    predictions: PredictionSet
    match: IdMatch
    comparison: Comparison
    scores: Scores
    samples: Scores
    in_frames: RelativeDistance | None
    floors: tuple[Floor, ...]
    clock_within_delay: FloatArray
    humans: tuple[Ceiling, ...]
    skill: dict[str, Skill]
    delays: FloatArray | None
    within_delay: Scores | None
    within_delay_samples: Scores | None
    hours: float
    hour_samples: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """Two systems by one figure, on the same draws of the same videos.

    Attributes:
        f1: The first's F1 minus the second's.
        interval: 95 %; None for fewer than two videos.
        share_of_draws_above_0: In how many the first scores higher; None for fewer than two videos.
    """

    f1: float
    interval: Interval | None
    share_of_draws_above_0: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The outcome: one system, or two on the same videos and their differences by figure."""

    labels: LabelSet
    config: EvaluationConfig
    min_consistency: float | None
    systems: tuple[SystemResult, ...]
    differences: dict[str, Difference]


def evaluate(
    labels: LabelSet,
    predictions: PredictionSet,
    other: PredictionSet | None = None,
    *,
    config: EvaluationConfig | None = None,
    id_pattern: str | None = None,
    progress: Progress = lambda _: None,
) -> Evaluation:
    """Evaluate a system's predictions, at the moment to score (`PredictionSet.at`).

    With `other`, two systems are compared on the same videos; with missing="skip" on those that both
    predicted. `id_pattern`: see `ongebd.data.id_matching`.

    Raises:
        LabelError: Predictions can't be scored on these labels.
    """
    config = config or EvaluationConfig()
    least = config.min_consistency
    min_consistency = min_consistency_of(labels.dataset) if isinstance(least, str) else least
    given = [predictions] if other is None else [predictions, other]
    matches = [match_ids(each.videos, labels.videos, id_pattern) for each in given]
    for each, match in zip(given, matches, strict=True):
        if not match.label_of:
            some = ", ".join(map(repr, islice(match.unknown, 3)))
            raise LabelError(
                f"{each.source or 'the predictions'}: none of its {len(each.videos)} ids is in"
                f" {labels.source or 'the labels'} ({some}{', …' if len(match.unknown) > 3 else ''});"
                " check the ids (see --id-pattern)"
            )
    renamed = [each.renamed(match.label_of) for each, match in zip(given, matches, strict=True)]
    if other is not None and config.missing == "skip":
        renamed = _in_common(*renamed)
    systems = tuple(
        _evaluate_system(labels, each, match, config, min_consistency, progress)
        for each, match in zip(renamed, matches, strict=True)
    )
    differences = _differences(*systems) if len(systems) == 2 else {}
    return Evaluation(labels, config, min_consistency, systems, differences)


def _evaluate_system(
    labels: LabelSet,
    predictions: PredictionSet,
    match: IdMatch,
    config: EvaluationConfig,
    min_consistency: float | None,
    progress: Progress,
) -> SystemResult:
    """Evaluate predictions that have the labels' ids."""
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

    ticks = [clock_times(length, clock.figures["absolute 0.5"].period) for length in comparison.limits]
    clock_within = count_within_delay(comparison.with_detections(ticks, decided=ticks))
    assert clock_within is not None
    return SystemResult(
        predictions=predictions,
        match=match,
        comparison=comparison,
        scores=counts.totals(),
        samples=samples["system"],
        in_frames=_frame_rule(labels, predictions, config, min_consistency),
        floors=floors,
        clock_within_delay=clock_within.totals().f1,
        humans=humans,
        skill={figure: _skill(figure, counts.totals(), floors, humans, samples) for figure in FIGURES},
        delays=measure_delays(comparison),
        within_delay=None if within is None else within.totals(),
        within_delay_samples=samples.get("within delay"),
        hours=float(hours.sum()),
        hour_samples=hour_samples,
    )


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
) -> Skill:
    floor = best_floor(floors, figure)
    low = floor.figures[figure].f1
    if not humans:
        return Skill(None, None, floor.name, low, None, "no video has two annotators to compare")
    high = float(figure_values(humans[0].f1)[figure])
    if not high > low:
        why = "the annotators do not score above the best floor, so this figure distinguishes nothing"
        return Skill(None, None, floor.name, low, high, why)
    names = ("system", "human", _floor_key(floor, figure))
    own, human, blind = (figure_values(samples[name].f1)[figure] for name in names)
    span = human - blind
    interval = Interval.of((own - blind) / span) if len(span) and (span > 0).all() else None
    value = (float(figure_values(scores.f1)[figure]) - low) / (high - low)
    return Skill(value, interval, floor.name, low, high)


def _frame_rule(
    labels: LabelSet, predictions: PredictionSet, config: EvaluationConfig, min_consistency: float | None
) -> RelativeDistance | None:
    """The rule in frames, for TAPOS and for predictions in frames; else None."""
    if labels.dataset != "tapos" and predictions.unit != "frames":
        return None
    if any(video.last_frame is None or video.fps is None for video in labels.videos.values()):
        return None
    frames = predictions.in_frames(labels)
    return relative_distance(labels, frames, THRESHOLDS, min_consistency, config.missing, "frames")


def _in_common(first: PredictionSet, second: PredictionSet) -> list[PredictionSet]:
    shared = set(first.videos) & set(second.videos)
    if not shared:
        raise LabelError("the two systems share no video, so --missing skip leaves nothing to compare")
    return [
        replace(each, videos={name: video for name, video in each.videos.items() if name in shared})
        for each in (first, second)
    ]


def _differences(first: SystemResult, second: SystemResult) -> dict[str, Difference]:
    """Both systems' samples were drawn with one seed from the same videos, so they are paired."""
    result = {}
    for figure in FIGURES:
        own, other = (figure_values(system.scores.f1)[figure] for system in (first, second))
        drawn = figure_values(first.samples.f1)[figure] - figure_values(second.samples.f1)[figure]
        better = float(np.mean(drawn > 0)) if len(drawn) else None
        result[figure] = Difference(float(own - other), Interval.of(drawn), better)
    return result
