"""A whole evaluation: labels, one system or two, and everything a score is compared with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

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
        f1: The first's F1 minus the second's.
        interval: 95 %; None for fewer than two videos.
        share_of_draws_above_0: In how many the first scores higher; None for fewer than two videos.
    """

    f1: float
    interval: Interval | None
    share_of_draws_above_0: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The outcome.

    Attributes:
        labels: The reference.
        config: How it was run.
        min_consistency: The filter that was used; None for none.
        systems: One, or two that were scored on the same videos.
        differences: By figure, for two systems.
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
    """Evaluate a system, or compare two.

    Args:
        labels: The labels.
        predictions: The system's predictions, at the moment to score (`PredictionSet.at`).
        other: Another system's, to compare on the same videos; with missing="skip" on those that both
            predicted.
        config: How to run.
        id_pattern: See `ongebd.data.id_matching`.
        progress: Called with the name of each step when it is done.

    Raises:
        LabelError: Predictions can't be scored on these labels.
    """
    config = config or EvaluationConfig()
    least = config.min_consistency
    min_consistency = min_consistency_of(labels.dataset) if isinstance(least, str) else least
    given = [predictions] if other is None else [predictions, other]
    matches = [match_ids(each.videos, labels.videos, id_pattern) for each in given]
    for each, match in zip(given, matches, strict=True):
        each.check_shared(labels.videos, match.label_of, id_pattern)
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
        evaluate_system(labels, each, match, config, min_consistency, progress)
        for each, match in zip(renamed, matches, strict=True)
    )
    differences = _differences(*systems) if len(systems) == 2 else {}
    return Evaluation(labels, config, min_consistency, systems, differences)


def step_count(labels: LabelSet, systems: int) -> int:
    """How often `evaluate` calls `progress`, at most: for a progress bar."""
    everything = compare(labels, PredictionSet(), min_consistency=None)
    return systems * (4 + len(clock_periods(everything)))


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
