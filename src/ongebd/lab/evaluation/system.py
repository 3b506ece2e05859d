"""One system's result: scores, floors, annotator ceiling, skill, delay and false alarms, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from ongebd.common.settings import Range, check_fields
from ongebd.data.id_matching import IdMatch
from ongebd.data.label_set import LabelSet
from ongebd.data.numbers import FloatArray
from ongebd.data.prediction_set import PredictionSet
from ongebd.errors import ConfigError
from ongebd.lab.evaluation.bootstrap import Interval, resampled_scores
from ongebd.lab.evaluation.ceiling import Ceiling, each_annotator, most_consistent_annotator
from ongebd.lab.evaluation.comparison import Comparison, Missing, check_min_consistency, compare
from ongebd.lab.evaluation.counts import Counts, Scores
from ongebd.lab.evaluation.delay import Delays, count_within_delay, measure_delays, watched_hours
from ongebd.lab.evaluation.figures import FIGURES, count_all, figure_values
from ongebd.lab.evaluation.floors import Floor, clock_floor, clock_times, random_floor, uniform_floor
from ongebd.lab.evaluation.relative_distance import THRESHOLDS, RelativeDistance, relative_distance

Progress = Callable[[str], None]
"""Called with the name of each step when it is done."""


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
        counts: Counts of each video at the 10 thresholds and 4 absolute tolerances, (V, 14).
        scores: Their totals, (14,).
        samples: Bootstrap samples of the same, (B, 14).
        in_frames: The score by the official notebooks' rule in frames; for TAPOS and frame predictions only.
        floors: clock, uniform, random.
        clock_within_delay: F1 of the clock (best at 0.5 s) at each allowed delay and without a limit, (6,).
        humans: Annotators against the others; empty if no video has two.
        skill: By figure.
        delays: None without times of decisions, like `within_delay` and its samples.
        within_delay: Scores at each allowed delay and without a limit, (6,).
        within_delay_samples: (B, 6).
        hours: Hours watched.
        hour_samples: (B,).
    """

    predictions: PredictionSet
    match: IdMatch
    comparison: Comparison
    counts: Counts
    scores: Scores
    samples: Scores
    in_frames: RelativeDistance | None
    floors: tuple[Floor, ...]
    clock_within_delay: FloatArray
    humans: tuple[Ceiling, ...]
    skill: dict[str, Skill]
    delays: Delays | None
    within_delay: Scores | None
    within_delay_samples: Scores | None
    hours: float
    hour_samples: FloatArray


def evaluate_system(
    labels: LabelSet,
    predictions: PredictionSet,
    match: IdMatch,
    config: EvaluationConfig,
    min_consistency: float | None,
    progress: Progress,
) -> SystemResult:
    """Evaluate one system.

    Args:
        labels: The labels.
        predictions: Its predictions, under the labels' ids, at the moment to score.
        match: How the ids were matched, for the report.
        config: How to run.
        min_consistency: The filter that `config` stands for.
        progress: Called after each step.

    Raises:
        LabelError: The predictions can't be scored on these labels.
    """
    comparison = compare(
        labels, predictions.in_seconds(labels), min_consistency=min_consistency, missing=config.missing
    )
    counts, hours = count_all(comparison), watched_hours(comparison)
    progress("scores")
    within = count_within_delay(comparison)
    clock = clock_floor(comparison, lambda: progress("clock floor"))
    floors = (clock, uniform_floor(comparison), random_floor(comparison, config.seed))
    progress("floors")
    ceilings = each_annotator(comparison), most_consistent_annotator(comparison, labels)
    humans = tuple(ceiling for ceiling in ceilings if ceiling is not None)
    progress("annotator ceiling")

    players = {"system": counts}
    if within is not None:
        players["within delay"] = within
    if humans:
        players["human"] = humans[0].counts
    for figure in FIGURES:
        floor = best_floor(floors, figure)
        players[_floor_key(floor, figure)] = floor.figures[figure].counts
    samples, hour_samples = resampled_scores(players, config.resamples, config.seed, hours)
    progress("bootstrap")

    ticks = [clock_times(length, clock.figures["absolute 0.5"].period) for length in comparison.limits]
    clock_within = count_within_delay(comparison.with_detections(ticks, decided=ticks))
    assert clock_within is not None
    return SystemResult(
        predictions=predictions,
        match=match,
        comparison=comparison,
        counts=counts,
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
