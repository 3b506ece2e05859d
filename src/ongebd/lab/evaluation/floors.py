"""Floors: what a predictor scores that never looks at the video.

A score means something only above these. The clock is causal, so it is also a floor for an online system;
its period is chosen on the labels that are scored, which is generous to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ongebd.data.numbers import FloatArray
from ongebd.errors import ConfigError
from ongebd.lab.evaluation.comparison import Comparison
from ongebd.lab.evaluation.counts import Counts
from ongebd.lab.evaluation.figures import FIGURES, count_all, figure_values

PERIODS: tuple[float, ...] = (
    *(0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 7.5, 10.0),
    *(15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 300.0),
)
"""Clock periods that are tried, seconds."""

RANDOM_SEEDS = 5


@dataclass(frozen=True, slots=True, eq=False)
class FloorFigure:
    """What a floor scores by one figure.

    Attributes:
        f1: The figure.
        detail: How the floor was set, "every 1.5 s" for instance.
        counts: Its counts at all tolerances, for the bootstrap; of several seeds, their sum.
    """

    f1: float
    detail: str
    counts: Counts


@dataclass(frozen=True, slots=True, eq=False)
class Floor:
    """A blind predictor's scores.

    Attributes:
        name: "clock", "uniform" or "random".
        figures: By figure: a clock's period is chosen for each.
        curve: F1 at all tolerances, shape (14,), of the one that is best by the average.
    """

    name: str
    figures: dict[str, FloorFigure]
    curve: FloatArray


def clock_times(duration: float, period: float) -> FloatArray:
    """A boundary every `period` seconds, within the video; none at its start or its very end.

    Examples:
        >>> clock_times(4.0, 1.0).tolist()
        [1.0, 2.0, 3.0]
    """
    if not period > 0:
        raise ConfigError(f"the clock's period is {period}; it must be above 0")
    times = np.arange(1, int(duration / period) + 2, dtype=np.float64) * period
    return times[times < duration]


def uniform_times(duration: float, count: int) -> FloatArray:
    """`count` boundaries at equal distances.

    Examples:
        >>> uniform_times(10.0, 4).tolist()
        [2.0, 4.0, 6.0, 8.0]
    """
    return duration * np.arange(1, count + 1, dtype=np.float64) / (count + 1)


def clock_floor(comparison: Comparison, tick: Callable[[], None] = lambda: None) -> Floor:
    """The clock at its best period by each figure, of `PERIODS` that are shorter than the longest video.

    Args:
        comparison: In seconds.
        tick: Called after each period, for a progress bar.
    """
    best: dict[str, FloorFigure] = {}
    curve: FloatArray = np.zeros(0)
    for period in clock_periods(comparison):
        counts = count_all(
            comparison.with_detections([clock_times(length, period) for length in comparison.limits])
        )
        f1 = counts.totals().f1
        for figure, value in figure_values(f1).items():
            if figure not in best or value > best[figure].f1:
                best[figure] = FloorFigure(float(value), f"every {period:g} s", counts)
                curve = f1 if figure == "average" else curve
        tick()
    return Floor("clock", best, curve)


def clock_periods(comparison: Comparison) -> Sequence[float]:
    """The periods that are tried on these videos; the shortest always is."""
    longest = float(comparison.limits.max())
    return [period for period in PERIODS if period < longest] or PERIODS[:1]


def uniform_floor(comparison: Comparison) -> Floor:
    """As many boundaries as the system found in each video, at equal distances."""
    rows = [uniform_times(d, len(t)) for d, t in zip(comparison.limits, comparison.detections, strict=True)]
    counts = count_all(comparison.with_detections(rows))
    f1 = counts.totals().f1
    values = figure_values(f1)
    detail = "the system's count in each video, evenly"
    return Floor("uniform", {name: FloorFigure(float(values[name]), detail, counts) for name in FIGURES}, f1)


def random_floor(comparison: Comparison, seed: int, seeds: int = RANDOM_SEEDS) -> Floor:
    """As many boundaries as the system found in each video, anywhere; the mean F1 of several seeds."""
    runs = []
    for run in range(seeds):
        rng = np.random.default_rng((seed, run))
        rows = [
            np.sort(rng.uniform(0, d, len(t)))
            for d, t in zip(comparison.limits, comparison.detections, strict=True)
        ]
        runs.append(count_all(comparison.with_detections(rows)))
    f1 = np.mean([counts.totals().f1 for counts in runs], axis=0)
    total = Counts(
        sum((counts.tp for counts in runs), np.zeros_like(runs[0].tp)),
        sum((counts.positives for counts in runs), np.zeros_like(runs[0].tp)),
        sum((counts.detections for counts in runs), np.zeros_like(runs[0].tp)),
        runs[0].annotator,
    )
    values = figure_values(f1)
    detail = f"the system's count in each video, at random, mean of {seeds} seeds"
    return Floor("random", {name: FloorFigure(float(values[name]), detail, total) for name in FIGURES}, f1)
