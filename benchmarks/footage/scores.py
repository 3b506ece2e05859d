"""F1 at absolute tolerances by the project's evaluation, floors, delay, and 95 % intervals over videos."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from footage.listening import Found
from ongebd.data import LabelSet
from ongebd.data.numbers import FloatArray
from ongebd.data.prediction_set import PredictionSet, VideoPrediction
from ongebd.lab.evaluation.bootstrap import Interval, resampled_scores, resampled_sums
from ongebd.lab.evaluation.ceiling import each_annotator
from ongebd.lab.evaluation.comparison import Comparison, compare
from ongebd.lab.evaluation.counts import Counts
from ongebd.lab.evaluation.delay import measure_delays
from ongebd.lab.evaluation.figures import ABSOLUTE, ABSOLUTE_PART
from ongebd.lab.evaluation.floors import clock_periods, clock_times

RESAMPLES = 2000
SEED = 0
RANDOM_SEEDS = 20


@dataclass(frozen=True)
class Figure:
    """A figure and its 95 % interval over videos (percentile bootstrap; None where there is none)."""

    value: float
    interval: Interval | None = None

    def as_json(self) -> dict[str, Any]:
        """For the JSON."""
        value = None if np.isnan(self.value) else self.value
        return {"value": value, "interval": None if self.interval is None else asdict(self.interval)}


@dataclass(frozen=True, eq=False)
class Row:
    """A line of a table of scores.

    Attributes:
        name: What was scored.
        counts: Of each video at each tolerance of `ABSOLUTE`, (V, T).
        detail: What is to be said of it.
    """

    name: str
    counts: Counts
    detail: str = ""

    def f1(self) -> list[Figure]:
        """At each tolerance."""
        samples, _ = resampled_scores({"": self.counts}, RESAMPLES, SEED, np.zeros(len(self.counts.tp)))
        values = self.counts.totals().f1
        return [
            Figure(float(value), Interval.of(samples[""].f1[:, column]))
            for column, value in enumerate(values)
        ]

    def at(self, tolerance: float) -> tuple[float, float, float]:
        """Precision, recall and F1."""
        totals, column = self.counts.totals(), ABSOLUTE.index(tolerance)
        return float(totals.precision[column]), float(totals.recall[column]), float(totals.f1[column])

    def as_json(self) -> dict[str, Any]:
        """For the JSON."""
        totals = self.counts.totals()
        return {
            "detail": self.detail,
            "f1": {str(t): each.as_json() for t, each in zip(ABSOLUTE, self.f1(), strict=True)},
            "precision": dict(zip(map(str, ABSOLUTE), totals.precision.tolist(), strict=True)),
            "recall": dict(zip(map(str, ABSOLUTE), totals.recall.tolist(), strict=True)),
        }


def prediction_set(found: Mapping[str, Found], moment: str = "centre") -> PredictionSet:
    """The same as a prediction set; an onset is known when it was told."""
    if moment == "centre":
        return PredictionSet(
            {n: VideoPrediction(f.times, _known(f.decided), f.onsets) for n, f in found.items()}
        )
    onsets = {
        n: VideoPrediction(f.onsets, None if f.told is None else _known(f.told)) for n, f in found.items()
    }
    return PredictionSet(onsets, moment="onset")


def _known(moments: FloatArray | None) -> FloatArray | None:
    return None if moments is None or np.isnan(moments).any() else moments


def comparison_of(labels: LabelSet, found: Mapping[str, Found], moment: str = "centre") -> Comparison:
    """All labelled videos against what was found in them."""
    return compare(labels, prediction_set(found, moment), min_consistency=None)


def count(comparison: Comparison) -> Counts:
    """At the tolerances of `ABSOLUTE`."""
    return comparison.count(comparison.absolute_tolerances(ABSOLUTE))


def row(
    name: str, labels: LabelSet, found: Mapping[str, Found], moment: str = "centre", detail: str = ""
) -> Row:
    """The scores of one method."""
    return Row(name, count(comparison_of(labels, found, moment)), detail)


def nothing_found(labels: LabelSet) -> dict[str, Found]:
    """An empty result for every video: the base for floors."""
    empty = np.zeros(0)
    return {name: Found(empty, empty, empty, empty) for name in labels.videos}


def clock_row(labels: LabelSet) -> tuple[Row, list[float]]:
    """The clock, at its best period for each tolerance, and those periods."""
    base = comparison_of(labels, nothing_found(labels))
    tried = {
        period: count(base.with_detections([clock_times(length, period) for length in base.limits]))
        for period in clock_periods(base)
    }
    best = [
        max(tried, key=lambda period: float(tried[period].totals().f1[column]))
        for column in range(len(ABSOLUTE))
    ]
    counts = columns_of([tried[period] for period in best])
    detail = ", ".join(f"{period:g} s at ±{t:g}" for period, t in zip(best, ABSOLUTE, strict=True))
    return Row("clock, best period for each tolerance", counts, f"periods: {detail}"), best


def random_row(labels: LabelSet) -> Row:
    """As many points in all as the annotators mark on average, anywhere; counts of several seeds summed."""
    base = comparison_of(labels, nothing_found(labels))
    marked = np.mean([len(times) for video in base.annotators for times in video]) * len(base)
    rate = float(marked / base.limits.sum())
    runs = []
    for seed in range(RANDOM_SEEDS):
        draw = np.random.default_rng((SEED, seed))
        points = [np.sort(draw.uniform(0, length, draw.poisson(rate * length))) for length in base.limits]
        runs.append(count(base.with_detections(points)))
    total = replace(
        runs[0],
        **{part: sum(getattr(run, part) for run in runs) for part in ("tp", "positives", "detections")},
    )
    return Row("random points", total, f"{60 * rate:.1f} a minute, as the raters mark; {RANDOM_SEEDS} seeds")


def ceiling_row(labels: LabelSet) -> Row | None:
    """Each annotator in turn against the others; None where no video has two."""
    human = each_annotator(comparison_of(labels, nothing_found(labels)))
    return None if human is None else Row("a rater against the others", human.counts.columns(ABSOLUTE_PART))


def columns_of(chosen: Sequence[Counts]) -> Counts:
    """Counts whose column k is that of the k-th given."""

    def column(part: str) -> Any:
        return np.stack([getattr(counts, part)[:, k] for k, counts in enumerate(chosen)], axis=1)

    return Counts(column("tp"), column("positives"), column("detections"), column("annotator"))


def difference(first: Row, second: Row) -> list[tuple[Figure, float]]:
    """F1 of the first less that of the second at each tolerance, and the share of draws where it is above 0.

    Both are drawn with the same videos.
    """
    players = {"first": first.counts, "second": second.counts}
    samples, _ = resampled_scores(players, RESAMPLES, SEED, np.zeros(len(first.counts.tp)))
    drawn = samples["first"].f1 - samples["second"].f1
    values = first.counts.totals().f1 - second.counts.totals().f1
    return [
        (Figure(float(value), Interval.of(drawn[:, column])), float(np.mean(drawn[:, column] > 0)))
        for column, value in enumerate(values)
    ]


def delay_figures(
    labels: LabelSet, found: Mapping[str, Found], moment: str, tolerance: float = 0.5
) -> dict[str, Figure]:
    """Median and 90th percentile of known − boundary, seconds, of detections matched at a tolerance.

    Nothing where nothing matched, or where it is not said when a moment was known.
    """
    delays = measure_delays(comparison_of(labels, found, moment), tolerance)
    if delays is None or not len(delays.seconds):
        return {}
    videos = [delays.seconds[delays.video == video] for video in range(len(labels))]
    return {
        name: Figure(
            float(np.percentile(delays.seconds, percent)),
            resampled(videos, partial(_percentile, percent=percent)),
        )
        for name, percent in (("median", 50.0), ("p90", 90.0))
    }


def _percentile(values: FloatArray, percent: float) -> float:
    return float(np.percentile(values, percent)) if len(values) else np.nan


def resampled(videos: Sequence[FloatArray], figure: Callable[[FloatArray], float]) -> Interval | None:
    """The interval of a figure of values that lie together by video."""
    if len(videos) < 2:
        return None
    draw = np.random.default_rng(SEED)
    values = [
        figure(np.concatenate([videos[place] for place in draw.integers(0, len(videos), len(videos))]))
        for _ in range(RESAMPLES // 4)
    ]
    return Interval.of(np.array([value for value in values if np.isfinite(value)]))


def ratio(parts: FloatArray, wholes: FloatArray, scale: float = 1.0) -> Figure:
    """A sum over videos over another one, both (V,), times a scale; draws without a whole are left out."""
    whole = float(wholes.sum())
    value = scale * float(parts.sum()) / whole if whole else np.nan
    sums = resampled_sums(np.stack([parts, wholes], axis=1).astype(np.float64), RESAMPLES, SEED)
    sums = sums[sums[:, 1] > 0]
    return Figure(value, Interval.of(scale * sums[:, 0] / sums[:, 1]) if len(sums) else None)
