"""Scores by the project's evaluation, floors, recall by kind and false alarms, with 95 % intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from footage.methods import Found
from ongebd.data import LabelSet, PredictionSet, VideoPrediction
from ongebd.data.files import FloatArray
from ongebd.lab.composites import CompositeBoundary, CompositeDistractor, CompositeVideo
from ongebd.lab.composites.config import BOUNDARY_KINDS
from ongebd.lab.evaluation.comparison import Comparison, compare
from ongebd.lab.evaluation.counts import Counts, Interval, resampled_scores, resampled_sums
from ongebd.lab.evaluation.floors import clock_periods, clock_times, each_annotator
from ongebd.lab.evaluation.matching import greedy_match
from ongebd.lab.evaluation.relative_distance import ABSOLUTE, ABSOLUTE_PART

RESAMPLES = 2000
SEED = 0
RANDOM_SEEDS = 20
AFTER = 0.5
"""Seconds after a distractor in which a detection still counts as caused by it."""


@dataclass(frozen=True)
class Figure:
    """A figure and its 95 % interval over videos (percentile bootstrap; None where there is none)."""

    value: float
    interval: Interval | None = None

    def as_json(self) -> dict[str, Any]:
        """For the JSON."""
        value = None if np.isnan(self.value) else self.value
        return {"value": value, "interval": None if self.interval is None else self.interval._asdict()}


@dataclass(frozen=True, eq=False)
class Row:
    """A line of a table: counts of each video at each tolerance of `ABSOLUTE`, (V, T), and a remark."""

    name: str
    counts: Counts
    detail: str = ""

    def f1(self) -> list[Figure]:
        """At each tolerance."""
        samples, _ = resampled_scores({"": self.counts}, RESAMPLES, SEED, np.zeros(len(self.counts.tp)))
        drawn = samples[""].f1
        return [
            Figure(float(value), Interval.of(drawn[:, k])) for k, value in enumerate(self.counts.totals().f1)
        ]

    def at(self, tolerance: float) -> tuple[float, float, float]:
        """Precision, recall and F1."""
        totals, column = self.counts.totals(), ABSOLUTE.index(tolerance)
        return float(totals.precision[column]), float(totals.recall[column]), float(totals.f1[column])

    def as_json(self) -> dict[str, Any]:
        """For the JSON."""
        f1 = {str(t): each.as_json() for t, each in zip(ABSOLUTE, self.f1(), strict=True)}
        return {"detail": self.detail, "f1": f1}


def comparison_of(labels: LabelSet, found: Found, moment: str = "centre") -> Comparison:
    """All labelled videos against what was found in them."""
    predictions = PredictionSet(dict(found)).at(moment)  # type: ignore[arg-type]
    return compare(labels, predictions, min_consistency=None)


def count(comparison: Comparison) -> Counts:
    """At the tolerances of `ABSOLUTE`."""
    return comparison.count(comparison.absolute_tolerances(ABSOLUTE))


def row(name: str, labels: LabelSet, found: Found, moment: str = "centre", detail: str = "") -> Row:
    """The scores of one method."""
    return Row(name, count(comparison_of(labels, found, moment)), detail)


def _nothing(labels: LabelSet) -> Comparison:
    return comparison_of(labels, {name: VideoPrediction(np.zeros(0)) for name in labels.videos})


def clock_row(labels: LabelSet) -> tuple[Row, list[float]]:
    """The clock, at its best period for each tolerance, and those periods."""
    base = _nothing(labels)
    tried = {
        period: count(base.with_detections([clock_times(length, period) for length in base.limits]))
        for period in clock_periods(base)
    }
    best = [max(tried, key=lambda period: float(tried[period].totals().f1[k])) for k in range(len(ABSOLUTE))]

    def column(part: str) -> Any:
        return np.stack([getattr(tried[period], part)[:, k] for k, period in enumerate(best)], axis=1)

    counts = Counts(column("tp"), column("positives"), column("detections"), column("annotator"))
    detail = ", ".join(f"{period:g} s at ±{t:g}" for period, t in zip(best, ABSOLUTE, strict=True))
    return Row("clock, best period for each tolerance", counts, f"periods: {detail}"), best


def random_row(labels: LabelSet) -> Row:
    """As many points as the annotators mark on average, anywhere; counts of several seeds summed."""
    base = _nothing(labels)
    marked = np.mean([len(times) for video in base.annotators for times in video]) * len(base)
    rate = float(marked / base.limits.sum())
    runs = []
    for seed in range(RANDOM_SEEDS):
        draw = np.random.default_rng((SEED, seed))
        points = [np.sort(draw.uniform(0, length, draw.poisson(rate * length))) for length in base.limits]
        runs.append(count(base.with_detections(points)))
    sums = {part: sum(getattr(run, part) for run in runs) for part in ("tp", "positives", "detections")}
    detail = f"{60 * rate:.1f} a minute, as the raters mark; {RANDOM_SEEDS} seeds"
    return Row("random points", replace(runs[0], **sums), detail)


def ceiling_row(labels: LabelSet) -> Row | None:
    """Each annotator in turn against the others; None if no video has two."""
    human = each_annotator(_nothing(labels))
    if human is None:
        return None
    counts = human.counts
    parts = (counts.tp, counts.positives, counts.detections, counts.annotator)
    return Row("a rater against the others", Counts(*(part[:, ABSOLUTE_PART] for part in parts)))


def difference(first: Row, second: Row) -> list[tuple[Figure, float]]:
    """F1 of the first less the second's at each tolerance, and the share of draws where that is above 0."""
    players = {"first": first.counts, "second": second.counts}
    samples, _ = resampled_scores(players, RESAMPLES, SEED, np.zeros(len(first.counts.tp)))
    drawn = samples["first"].f1 - samples["second"].f1
    values = first.counts.totals().f1 - second.counts.totals().f1
    return [
        (Figure(float(value), Interval.of(drawn[:, k])), float(np.mean(drawn[:, k] > 0)))
        for k, value in enumerate(values)
    ]


def ratio(parts: FloatArray, wholes: FloatArray) -> Figure:
    """A sum over videos over another one, both (V,); draws without a whole are left out."""
    whole = float(wholes.sum())
    sums = resampled_sums(np.stack([parts, wholes], axis=1).astype(np.float64), RESAMPLES, SEED)
    sums = sums[sums[:, 1] > 0]
    interval = Interval.of(sums[:, 0] / sums[:, 1]) if len(sums) else None
    return Figure(float(parts.sum()) / whole if whole else np.nan, interval)


def found_by_label(
    boundaries: Sequence[CompositeBoundary], detections: FloatArray, tolerance: float
) -> list[bool]:
    """Which boundaries have a detection within the tolerance of their label."""
    times = np.array([boundary.time for boundary in boundaries], dtype=np.float64)
    places = {place for place, _ in greedy_match(times, detections, tolerance)}
    return [place in places for place in range(len(boundaries))]


def found_by_span(
    boundaries: Sequence[CompositeBoundary], detections: FloatArray, tolerance: float
) -> list[bool]:
    """Which boundaries have a detection while they last, or within the tolerance of that.

    Greedy, one to one, in the boundaries' order: each takes the free detection nearest to its span, and of
    several within it the nearest to its label.
    """
    free = list(detections)
    result = []
    for boundary in boundaries:

        def outside(time: float, b: CompositeBoundary = boundary) -> tuple[float, float]:
            return max(b.start - time, time - b.end, 0.0), abs(time - b.time)

        nearest = min(free, key=outside, default=None)
        hit = nearest is not None and outside(nearest)[0] <= tolerance
        if hit and nearest is not None:
            free.remove(nearest)
        result.append(hit)
    return result


def recall_by_kind(
    videos: Mapping[str, CompositeVideo], found: Found, tolerance: float, *, span: bool = False
) -> dict[str, tuple[int, Figure]]:
    """How many boundaries of each kind there are, and the share found (`span`: anywhere in a transition)."""
    match = found_by_span if span else found_by_label
    hits = {kind: np.zeros((2, len(videos))) for kind in BOUNDARY_KINDS}
    for place, (name, video) in enumerate(videos.items()):
        found_here = match(video.boundaries, found[name].times, tolerance)
        for boundary, hit in zip(video.boundaries, found_here, strict=True):
            hits[boundary.kind][:, place] += hit, 1
    return {kind: (int(all_.sum()), ratio(some, all_)) for kind, (some, all_) in hits.items() if all_.any()}


def span_counts(videos: Mapping[str, CompositeVideo], found: Found, tolerances: Sequence[float]) -> Counts:
    """Counts where a transition is matched with the whole of its span, (V, T)."""
    spans = [(video.boundaries, found[name].times) for name, video in videos.items()]
    tp = np.array([[sum(found_by_span(*span, t)) for t in tolerances] for span in spans], np.int64)
    positives = np.array([len(video.boundaries) for video in videos.values()], np.int64)
    given = np.array([len(found[name].times) for name in videos], np.int64)
    wide = [np.repeat(part[:, None], len(tolerances), axis=1) for part in (positives, given)]
    return Counts(tp, wide[0], wide[1], np.zeros_like(tp))


@dataclass(frozen=True)
class Alarms:
    """Detections in a set without boundaries.

    Attributes:
        distractors: How many there were.
        hours: Hours of video.
        during: Detections whose onset is in a distractor or within `AFTER` after it, an hour of video.
        all: All detections an hour.
        count: Those of `during`.
    """

    distractors: int
    hours: float
    during: Figure
    all: Figure
    count: int


def during(moments: FloatArray, distractors: Sequence[CompositeDistractor]) -> int:
    """How many moments are in a distractor, or at most `AFTER` after its end."""
    return sum(any(d.start <= moment <= d.end + AFTER for d in distractors) for moment in moments)


def false_alarms(videos: Mapping[str, CompositeVideo], found: Found) -> Alarms:
    """False alarms in a set without boundaries."""
    hours = np.array([video.duration / 3600 for video in videos.values()])
    onsets = {name: np.asarray(found[name].onsets, dtype=np.float64) for name in videos}
    whole = np.array([float(len(each)) for each in onsets.values()])
    part = np.array([float(during(onsets[name], video.distractors)) for name, video in videos.items()])
    return Alarms(
        sum(len(video.distractors) for video in videos.values()),
        float(hours.sum()),
        ratio(part, hours),
        ratio(whole, hours),
        int(part.sum()),
    )
