"""A whole evaluation: labels, one system or two, and all that belongs beside a score."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ongebd.data.id_matching import match_ids
from ongebd.data.label_set import LabelSet
from ongebd.data.labels import min_consistency_of
from ongebd.data.prediction_set import PredictionSet
from ongebd.errors import LabelError
from ongebd.lab.evaluation.bootstrap import Interval
from ongebd.lab.evaluation.comparison import compare
from ongebd.lab.evaluation.figures import FIGURES, figure_values
from ongebd.lab.evaluation.floors import clock_periods
from ongebd.lab.evaluation.system import EvaluationConfig, Progress, SystemResult, evaluate_system


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """Two systems by one figure, on the same draws of the same videos.

    Attributes:
        value: The first's F1 less the second's.
        interval: 95 %; None where there are fewer than two videos.
        better: The share of draws in which the first scores higher; None likewise.
    """

    value: float
    interval: Interval | None
    better: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The outcome.

    Attributes:
        labels: What was scored against.
        config: How.
        min_consistency: The filter that was used; None for none.
        systems: One, or two that were scored on the same videos.
        differences: By figure, where there are two.
    """

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
    """Evaluate a system, or two side by side.

    Args:
        labels: The labels.
        predictions: The system's predictions, at the moment to be scored (`PredictionSet.at`).
        other: Another system's, to be compared on the same videos; with missing="skip" on those that both
            predicted.
        config: How to run.
        id_pattern: See `ongebd.data.id_matching`.
        progress: Called with the name of each step as it is done.

    Raises:
        LabelError: Where predictions cannot be scored on these labels.
    """
    config = config or EvaluationConfig()
    least = config.min_consistency
    min_consistency = min_consistency_of(labels.dataset) if isinstance(least, str) else least
    given = [predictions] if other is None else [predictions, other]
    matches = [match_ids(each.videos, labels.videos, id_pattern) for each in given]
    for each, match in zip(given, matches, strict=True):
        each.check_shared(labels.videos, match.label_of, id_pattern)
        if not match.label_of:
            raise LabelError(
                f"{each.source or 'the predictions'}: none of its ids ({len(each.videos)}) is in "
                f"{labels.source or 'the labels'} ({_some(match.unknown)}); check the ids (see --id-pattern)"
            )
    renamed = [each.renamed(match.label_of) for each, match in zip(given, matches, strict=True)]
    if len(renamed) == 2 and config.missing == "skip":
        renamed = _common(renamed)
    systems = tuple(
        evaluate_system(labels, each, match, config, min_consistency, progress)
        for each, match in zip(renamed, matches, strict=True)
    )
    differences = _differences(*systems) if len(systems) == 2 else {}
    return Evaluation(labels, config, min_consistency, systems, differences)


def step_count(labels: LabelSet, systems: int) -> int:
    """How many times `evaluate` calls `progress`, at most: for a progress bar."""
    whole = compare(labels, PredictionSet(), min_consistency=None)
    return systems * (4 + len(clock_periods(whole)))


def _common(given: list[PredictionSet]) -> list[PredictionSet]:
    shared = set(given[0].videos) & set(given[1].videos)
    if not shared:
        raise LabelError("the two systems have no video in common, so --missing skip leaves none to compare")
    return [
        replace(each, videos={name: video for name, video in each.videos.items() if name in shared})
        for each in given
    ]


def _differences(first: SystemResult, second: SystemResult) -> dict[str, Difference]:
    """Paired: both systems' samples were drawn with one seed from the same videos."""
    values = [figure_values(system.scores.f1) for system in (first, second)]
    samples = [figure_values(system.samples.f1) for system in (first, second)]
    result = {}
    for figure in FIGURES:
        drawn = samples[0][figure] - samples[1][figure]
        better = float(np.mean(drawn > 0)) if len(drawn) else None
        result[figure] = Difference(float(values[0][figure] - values[1][figure]), Interval.of(drawn), better)
    return result


def _some(names: Iterable[str], most: int = 3) -> str:
    """The first few of many names."""
    names = list(names)
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + rest
