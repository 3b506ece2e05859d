"""Floors and ceilings: what a predictor scores that never looks at the video, and what annotators score.

A score means something only above the floors. The clock is causal, so it is a floor for an online system too;
its period is chosen on the labels that are scored, which is generous to it.

The ceiling is what one annotator scores against the others, by the same rule as a system. The exam differs
slightly: where a video has five annotators, a system may choose the best of five, the left-out annotator the
best of four. Annotators need not be people.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ongebd.data.files import FloatArray
from ongebd.data.label_set import LabelSet
from ongebd.errors import ConfigError
from ongebd.lab.evaluation.comparison import Comparison
from ongebd.lab.evaluation.counts import Counts
from ongebd.lab.evaluation.relative_distance import count_all, figure_values

PERIODS: tuple[float, ...] = (
    *(0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 7.5, 10.0),
    *(15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 300.0),
)
"""Clock periods to try, seconds."""

RANDOM_SEEDS = 5


@dataclass(frozen=True, slots=True, eq=False)
class FloorFigure:
    """What a floor scores by one figure.

    Attributes:
        f1: The figure.
        detail: How the floor was set, "every 1.5 s" for instance.
        counts: Its counts at all tolerances, for the bootstrap; summed over seeds.
        period: The clock's, in seconds; 0 for other floors.
    """

    f1: float
    detail: str
    counts: Counts
    period: float = 0.0


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
    """A boundary every `period` seconds within the video, not at its start or very end.

    >>> clock_times(4.0, 1.0).tolist()
    [1.0, 2.0, 3.0]
    """
    if not period > 0:
        raise ConfigError(f"the clock's period must be above 0, not {period}")
    times = np.arange(1, int(duration / period) + 2, dtype=np.float64) * period
    return times[times < duration]


def uniform_times(duration: float, count: int) -> FloatArray:
    """`count` boundaries at equal distances.

    >>> uniform_times(10.0, 4).tolist()
    [2.0, 4.0, 6.0, 8.0]
    """
    return duration * np.arange(1, count + 1, dtype=np.float64) / (count + 1)


def clock_periods(comparison: Comparison) -> Sequence[float]:
    """The `PERIODS` to try on these videos: those shorter than the longest video, or the shortest."""
    longest = float(comparison.limits.max())
    return [period for period in PERIODS if period < longest] or PERIODS[:1]


def clock_floor(comparison: Comparison) -> Floor:
    """The clock at its best period by each figure."""
    best: dict[str, FloorFigure] = {}
    curve: FloatArray = np.zeros(0)
    for period in clock_periods(comparison):
        times = [clock_times(length, period) for length in comparison.limits]
        counts = count_all(comparison.with_detections(times))
        f1 = counts.totals().f1
        for figure, value in figure_values(f1).items():
            if figure not in best or value > best[figure].f1:
                best[figure] = FloorFigure(float(value), f"every {period:g} s", counts, period)
                curve = f1 if figure == "average" else curve
    return Floor("clock", best, curve)


def uniform_floor(comparison: Comparison) -> Floor:
    """As many boundaries as the system found in each video, at equal distances."""
    times = [uniform_times(d, len(t)) for d, t in zip(comparison.limits, comparison.detections, strict=True)]
    runs = [count_all(comparison.with_detections(times))]
    return _mean_floor("uniform", "the system's count in each video, evenly", runs)


def random_floor(comparison: Comparison, seed: int, seeds: int = RANDOM_SEEDS) -> Floor:
    """As many boundaries as the system found in each video, anywhere; the mean F1 of several seeds."""
    runs = []
    for run in range(seeds):
        rng = np.random.default_rng((seed, run))
        times = [
            np.sort(rng.uniform(0, duration, len(found)))
            for duration, found in zip(comparison.limits, comparison.detections, strict=True)
        ]
        runs.append(count_all(comparison.with_detections(times)))
    return _mean_floor("random", f"the system's count in each video, at random, mean of {seeds} seeds", runs)


def _mean_floor(name: str, detail: str, runs: Sequence[Counts]) -> Floor:
    f1 = np.mean([counts.totals().f1 for counts in runs], axis=0)
    total = Counts(
        np.sum([counts.tp for counts in runs], axis=0),
        np.sum([counts.positives for counts in runs], axis=0),
        np.sum([counts.detections for counts in runs], axis=0),
        runs[0].annotator,
    )
    figures = {figure: FloorFigure(float(f), detail, total) for figure, f in figure_values(f1).items()}
    return Floor(name, figures, f1)


EACH, MOST_CONSISTENT = "each annotator in turn", "most consistent annotator"


def ceiling_name(name: str) -> str:
    """What reports call the ceiling EACH or MOST_CONSISTENT."""
    return f"annotators: {'each' if name == EACH else 'the most consistent'} against the others"


@dataclass(frozen=True, slots=True, eq=False)
class Ceiling:
    """What annotators score against the others.

    Attributes:
        name: EACH or MOST_CONSISTENT.
        n: Videos with two annotators or more; only these count.
        counts: Arrays of shape (V, 14) for all videos, summed over each video's annotators.
        f1: F1 of the totals, shape (14,).
    """

    name: str
    n: int
    counts: Counts
    f1: FloatArray


def each_annotator(comparison: Comparison) -> Ceiling | None:
    """Every annotator left out in turn and scored against the others; None if no video has two."""
    everyone = (
        (video, place) for video, rows in enumerate(comparison.annotators) for place in range(len(rows))
    )
    return _ceiling(EACH, comparison, everyone)


def most_consistent_annotator(comparison: Comparison, labels: LabelSet) -> Ceiling | None:
    """Each video's annotator of highest `f1_consis` against the others; None if labels lack it."""
    choices = [labels.videos[name].most_consistent for name in comparison.ids]
    known = ((video, place) for video, place in enumerate(choices) if place is not None)
    return _ceiling(MOST_CONSISTENT, comparison, known)


def _ceiling(name: str, comparison: Comparison, left_out: Iterable[tuple[int, int]]) -> Ceiling | None:
    """Score (video, left-out annotator) pairs, summed over each video's pairs."""
    pairs = [(video, place) for video, place in left_out if len(comparison.annotators[video]) > 1]
    if not pairs:
        return None
    owner = np.array([video for video, _ in pairs])
    rows = [comparison.annotators[video] for video in owner]
    places, limits = [place for _, place in pairs], comparison.limits[owner]
    marks = [each[place] for each, place in zip(rows, places, strict=True)]
    exam = replace(
        comparison,
        ids=tuple(comparison.ids[video] for video in owner),
        annotators=[each[:place] + each[place + 1 :] for each, place in zip(rows, places, strict=True)],
        lengths=comparison.lengths[owner],
        limits=limits,
    ).with_detections(
        [times[(times >= 0) & (times <= limit)] for times, limit in zip(marks, limits, strict=True)]
    )
    each = count_all(exam)
    parts = [np.zeros((len(comparison), each.tp.shape[1]), dtype=np.int64) for _ in range(4)]
    for total, part in zip(parts, (each.tp, each.positives, each.detections), strict=False):
        np.add.at(total, owner, part)
    counts = Counts(*parts)
    return Ceiling(name, len(set(owner.tolist())), counts, counts.totals().f1)
