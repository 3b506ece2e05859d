"""One system's result: scores, floors, annotator ceiling, skill, delay and false alarms, with intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ongebd.data.id_matching import IdMatch
from ongebd.data.label_set import LabelSet
from ongebd.data.numbers import FloatArray
from ongebd.data.prediction_set import PredictionSet
from ongebd.errors import ConfigError, a_whole_number
from ongebd.lab.evaluation.bootstrap import Interval, resampled_scores
from ongebd.lab.evaluation.ceiling import Human, each_annotator, most_consistent_annotator
from ongebd.lab.evaluation.comparison import Comparison, Missing, check_min_consistency, compare
from ongebd.lab.evaluation.counts import Counts, Scores
from ongebd.lab.evaluation.delay import Delays, count_within_delay, measure_delays, watched_hours
from ongebd.lab.evaluation.figures import FIGURES, count_all, figure_values
from ongebd.lab.evaluation.floors import Floor, clock_floor, clock_times, random_floor, uniform_floor
from ongebd.lab.evaluation.relative_distance import THRESHOLDS, RelativeDistance, relative_distance

Progress = Callable[[str], None]
"""Called with the name of each step as it is done."""

MOST_RESAMPLES = 100_000


@dataclass(frozen=True, slots=True)
class EvaluationConfig:
    """How an evaluation is run.

    Attributes:
        min_consistency: See `relative_distance`; "own" for the data set's own rule.
        missing: See `relative_distance`.
        resamples: Bootstrap samples; 0 for no intervals.
        seed: Of the bootstrap and of the random floor.
    """

    min_consistency: float | str | None = "own"
    missing: Missing = "count"
    resamples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value in (("resamples", self.resamples), ("seed", self.seed)):
            if a_whole_number(name, value) < 0:
                raise ConfigError(f"{name} is {value}; it must be 0 or more")
        if self.resamples > MOST_RESAMPLES:
            raise ConfigError(f"resamples is {self.resamples}; more than {MOST_RESAMPLES} tell nothing new")
        if not isinstance(self.min_consistency, str):
            check_min_consistency(self.min_consistency)
        elif self.min_consistency != "own":
            raise ConfigError(f"min_consistency is {self.min_consistency!r}; give a number, None or 'own'")


@dataclass(frozen=True, slots=True, eq=False)
class Skill:
    """How far a system stands between the best floor (0) and the annotators (1), by one figure.

    Attributes:
        value: (F1 − floor) / (annotators − floor); None where that says nothing, and `why` says why.
        floor: The best floor's F1, and its name.
        floor_name: "clock", "uniform" or "random".
        human: The F1 of each annotator in turn; None where no video has two.
        interval: 95 %.
        why: Why there is no value.
    """

    value: float | None
    floor: float
    floor_name: str
    human: float | None
    interval: Interval | None
    why: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class SystemResult:
    """All that is known of one system on one set of labels.

    Attributes:
        predictions: What was scored.
        match: How its ids were matched.
        comparison: The videos scored, in seconds.
        counts: Counts of each video at the 10 thresholds and 4 absolute tolerances, (V, 14).
        scores: Their totals, (14,).
        samples: Bootstrap samples of the same, (B, 14).
        in_frames: The score by the official notebooks' rule in frames; None where that is not asked for.
        floors: clock, uniform, random.
        clock_within_delay: F1 of the clock (best at 0.5 s) at each allowed delay and without a limit, (6,).
        humans: Annotators against the others; empty where no video has two.
        skill: By figure.
        delays: None where the predictions do not say when they were decided; likewise the next two.
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
    humans: tuple[Human, ...]
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
        predictions: Its predictions, under the labels' ids, at the moment to be scored.
        match: How the ids were matched, for the report.
        config: How to run.
        min_consistency: The filter, resolved.
        progress: Called after each step.

    Raises:
        LabelError: Where the predictions cannot be scored on these labels.
    """
    comparison = compare(
        labels, predictions.in_seconds(labels), min_consistency=min_consistency, missing=config.missing
    )
    counts = count_all(comparison)
    progress("scores")
    within = count_within_delay(comparison)
    floors = (
        clock_floor(comparison, lambda: progress("clock floor")),
        uniform_floor(comparison),
        random_floor(comparison, config.seed),
    )
    progress("floors")
    humans = tuple(
        human
        for human in (each_annotator(comparison), most_consistent_annotator(comparison, labels))
        if human is not None
    )
    progress("annotator ceiling")
    players = _players(counts, within, floors, humans)
    samples, hours = resampled_scores(players, config.resamples, config.seed, watched_hours(comparison))
    progress("bootstrap")
    scores = counts.totals()
    return SystemResult(
        predictions=predictions,
        match=match,
        comparison=comparison,
        counts=counts,
        scores=scores,
        samples=samples["system"],
        in_frames=_frame_rule(labels, predictions, config, min_consistency),
        floors=floors,
        clock_within_delay=_clock_within_delay(comparison, floors[0]),
        humans=humans,
        skill=_skill(scores, floors, humans, samples),
        delays=measure_delays(comparison),
        within_delay=None if within is None else within.totals(),
        within_delay_samples=samples.get("within delay"),
        hours=float(watched_hours(comparison).sum()),
        hour_samples=hours,
    )


def _players(
    counts: Counts, within: Counts | None, floors: tuple[Floor, ...], humans: tuple[Human, ...]
) -> dict[str, Counts]:
    """All counts that are drawn together; a floor's that serve several figures stand once."""
    players = {"system": counts}
    if within is not None:
        players["within delay"] = within
    if humans:
        players["human"] = humans[0].counts
    for figure in FIGURES:
        floor = best_floor(floors, figure)
        players[_floor_key(floor, figure)] = floor.figures[figure].counts
    return players


def best_floor(floors: tuple[Floor, ...], figure: str) -> Floor:
    """The floor that scores highest by a figure, the first on ties."""
    return max(floors, key=lambda floor: floor.figures[figure].f1)


def _floor_key(floor: Floor, figure: str) -> str:
    return f"{floor.name}, {floor.figures[figure].detail}"


def _skill(
    scores: Scores, floors: tuple[Floor, ...], humans: tuple[Human, ...], samples: dict[str, Scores]
) -> dict[str, Skill]:
    result = {}
    own = figure_values(scores.f1)
    human = figure_values(humans[0].f1) if humans else None
    for figure in FIGURES:
        floor = best_floor(floors, figure)
        low = floor.figures[figure].f1
        if human is None:
            result[figure] = Skill(
                None, low, floor.name, None, None, "no video has two annotators to compare"
            )
            continue
        high = float(human[figure])
        if not high > low:
            why = "the annotators do not stand above the best floor, so the figure tells nothing apart"
            result[figure] = Skill(None, low, floor.name, high, None, why)
            continue
        drawn = figure_values(samples[_floor_key(floor, figure)].f1)[figure]
        span = figure_values(samples["human"].f1)[figure] - drawn
        gain = figure_values(samples["system"].f1)[figure] - drawn
        interval = Interval.of(gain / span) if len(span) and (span > 0).all() else None
        result[figure] = Skill((float(own[figure]) - low) / (high - low), low, floor.name, high, interval)
    return result


def _clock_within_delay(comparison: Comparison, clock: Floor) -> FloatArray:
    """F1 of the clock, which decides when it strikes, at each allowed delay and without a limit."""
    period = float(clock.figures["absolute 0.5"].detail.split()[1])
    rows = [clock_times(length, period) for length in comparison.limits]
    counts = count_within_delay(comparison.with_detections(rows, rows))
    return np.zeros(0) if counts is None else counts.totals().f1


def _frame_rule(
    labels: LabelSet, predictions: PredictionSet, config: EvaluationConfig, min_consistency: float | None
) -> RelativeDistance | None:
    """The rule in frames, for TAPOS and for predictions in frames; None elsewhere."""
    asked = labels.dataset == "tapos" or predictions.unit == "frames"
    if not asked or any(video.last_frame is None or video.fps is None for video in labels.videos.values()):
        return None
    frames = predictions.in_frames(labels)
    return relative_distance(labels, frames, THRESHOLDS, min_consistency, config.missing, "frames")
