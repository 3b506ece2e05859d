"""Floors and ceiling of a table: blind predictors, and annotators where there are several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ongebd.lab.evaluation.ceiling import each_annotator
from ongebd.lab.evaluation.comparison import Comparison
from ongebd.lab.evaluation.floors import clock_periods
from ongebd.lab.experiments.columns import SCORES, clocked, counted, value_of
from ongebd.lab.experiments.results import Limit

RANDOM_SEEDS = 5


def floors(comparison: Comparison, told: Sequence[str]) -> list[Limit]:
    """The clock at its best period for each column, and as many boundaries as are labelled, at random.

    Args:
        comparison: The videos.
        told: The columns of which the clock's period is told.
    """
    return [_clock(comparison, told), _random(comparison)]


def ceiling(comparison: Comparison) -> Limit | None:
    """Each annotator against the others; None where no video has two. Their delay is not known."""
    human = each_annotator(comparison)
    if human is None:
        return None
    scores = human.counts.totals()
    plain = [column for column in SCORES if not column.startswith("within")]
    cells = {column: float(value_of(column, scores)) for column in plain}
    return Limit("an annotator against the others", cells, f"{human.n} videos")


def _clock(comparison: Comparison, told: Sequence[str]) -> Limit:
    best: dict[str, tuple[float, float]] = {}
    for period in clock_periods(comparison):
        scores = clocked(comparison, period).counts.totals()
        for column in SCORES:
            value = float(value_of(column, scores))
            if column not in best or value > best[column][0]:
                best[column] = value, period
    periods = "; ".join(f"{column}: {period:g} s" for column, (_, period) in best.items() if column in told)
    cells = {column: value for column, (value, _) in best.items()}
    return Limit("a blind clock, at its best period for each column", cells, periods)


def _random(comparison: Comparison) -> Limit:
    values = []
    for seed in range(RANDOM_SEEDS):
        rng = np.random.default_rng(seed)
        times = [
            np.sort(rng.uniform(0, limit, len(rows[0])))
            for limit, rows in zip(comparison.limits, comparison.annotators, strict=True)
        ]
        scores = counted(comparison.with_detections(times, times)).counts.totals()
        values.append([float(value_of(column, scores)) for column in SCORES])
    cells = dict(zip(SCORES, np.mean(values, axis=0).tolist(), strict=True))
    return Limit("as many as are labelled, at random", cells, f"mean of {RANDOM_SEEDS} draws")
