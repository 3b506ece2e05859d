"""Scores of the rows of a table, with intervals; and the floors and the ceiling to compare them with.

All rows are scored on the same draws of videos, so differences are paired; a row with several seeds also
draws among them. A row is best only if it is ahead of every other one beyond that noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ongebd.data.files import FloatArray
from ongebd.data.label_set import LabelSet
from ongebd.data.labels import min_consistency_of
from ongebd.data.prediction_set import PredictionSet
from ongebd.lab.evaluation.comparison import ALLOWED_DELAYS, Comparison, compare, count_within_delay
from ongebd.lab.evaluation.counts import Counts, Interval, Scores, resampled_scores
from ongebd.lab.evaluation.floors import clock_periods, clock_times, each_annotator
from ongebd.lab.evaluation.relative_distance import ABSOLUTE, RELATIVE_PART, THRESHOLDS, count_all

RESAMPLES = 1000
RANDOM_DRAWS = 5

RELATIVE_COLUMNS = tuple(f"relative {share:g}" for share in THRESHOLDS)
ABSOLUTE_COLUMNS = tuple(f"absolute {seconds:g}" for seconds in ABSOLUTE)
DELAY_COLUMNS = tuple(f"within {delay:g} s" for delay in ALLOWED_DELAYS)
_WHERE = {
    column: ("f1", place)
    for place, column in enumerate((*RELATIVE_COLUMNS, *ABSOLUTE_COLUMNS, *DELAY_COLUMNS))
}
_WHERE |= {f"{score} 0.05": (score, 0) for score in ("precision", "recall", "f1")}
SCORES = ("average", *_WHERE)
"""Columns that are scores. Higher is better in all of them."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A cell's value.

    Attributes:
        value: Mean over the seeds.
        interval: 95 %; None for a single video, and for anything but a score.
        seeds: The value of each seed.
    """

    value: float
    interval: Interval | None = None
    seeds: tuple[float, ...] = ()


@dataclass(frozen=True)
class Limit:
    """A floor or the ceiling of a table: its score by column, and how it was set."""

    name: str
    cells: Mapping[str, float]
    detail: str


def compared(labels: LabelSet, predictions: PredictionSet) -> Comparison:
    """Predictions beside labels, by the data set's rule."""
    return compare(labels, predictions, min_consistency=min_consistency_of(labels.dataset))


def count(comparison: Comparison) -> Counts:
    """Counts for all columns, (V, 20): at relative and absolute tolerances, then within each delay and any.

    Those within a delay are zero where predictions don't say when they were decided.
    """
    plain, late = count_all(comparison), count_within_delay(comparison)
    if late is None:
        nothing = np.zeros((len(comparison), len(ALLOWED_DELAYS) + 1), np.int64)
        late = Counts(nothing, nothing, nothing, nothing)
    parts = ("tp", "positives", "detections", "annotator")
    return Counts(*(np.concatenate([getattr(plain, name), getattr(late, name)], axis=1) for name in parts))


def value_of(column: str, scores: Scores) -> FloatArray:
    """A column's value, (…), from scores of `count`, (…, 20)."""
    if column == "average":
        return np.asarray(scores.f1[..., RELATIVE_PART].mean(axis=-1))
    part, place = _WHERE[column]
    return np.asarray(getattr(scores, part)[..., place])


class Resampled:
    """Scores of several rows, each with counts by seed, on the same draws of videos."""

    def __init__(self, rows: Mapping[str, Sequence[Counts]], seed: int = 0) -> None:
        self._rows = rows
        players = {f"{name}\n{n}": counts for name, row in rows.items() for n, counts in enumerate(row)}
        videos = len(next(iter(players.values())).tp) if players else 0
        sampled = resampled_scores(players, RESAMPLES, seed, np.ones(videos))[0] if players else {}
        rng = np.random.default_rng((seed, 1))
        self._drawn: dict[tuple[str, str], FloatArray] = {}
        for name, row in rows.items():
            picks = rng.integers(0, len(row), (RESAMPLES, len(row)))
            for column in SCORES:
                seeds = range(len(row))
                drawn = np.stack([value_of(column, sampled[f"{name}\n{n}"]) for n in seeds])  # (S, B)
                if drawn.shape[1]:
                    self._drawn[name, column] = drawn[picks, np.arange(RESAMPLES)[:, None]].mean(axis=1)
                else:  # one video, which cannot vary
                    self._drawn[name, column] = drawn[0]

    def measured(self, name: str, column: str) -> Measured:
        """One row's value."""
        seeds = tuple(float(value_of(column, counts.totals())) for counts in self._rows[name])
        return Measured(float(np.mean(seeds)), Interval.of(self._drawn[name, column]), seeds)

    def best(self, column: str) -> str | None:
        """The row that is ahead of every other one beyond the noise, if there is one."""
        first, *others = sorted(self._rows, key=lambda name: -self.measured(name, column).value)
        for other in others:
            interval = Interval.of(self._drawn[first, column] - self._drawn[other, column])
            if interval is None or interval.low <= 0:
                return None
        return first if others else None


def limits(comparison: Comparison, columns: Sequence[str]) -> list[Limit]:
    """Two blind floors and, where videos have several annotators, the ceiling.

    The columns are those for which to give the clock's period.
    """
    return [_clock(comparison, columns), _random(comparison), *_ceiling(comparison)]


def _clock(comparison: Comparison, columns: Sequence[str]) -> Limit:
    best: dict[str, tuple[float, float]] = {}
    for period in clock_periods(comparison):
        scores = _scores_of(comparison, [clock_times(limit, period) for limit in comparison.limits])
        for column in SCORES:
            value = float(value_of(column, scores))
            if column not in best or value > best[column][0]:
                best[column] = value, period
    periods = "; ".join(f"{column}: {best[column][1]:g} s" for column in SCORES if column in columns)
    cells = {column: value for column, (value, _) in best.items()}
    return Limit("a blind clock, at its best period for each column", cells, periods)


def _random(comparison: Comparison) -> Limit:
    values = []
    for seed in range(RANDOM_DRAWS):
        rng = np.random.default_rng(seed)
        times = [
            np.sort(rng.uniform(0, limit, len(rows[0])))
            for limit, rows in zip(comparison.limits, comparison.annotators, strict=True)
        ]
        scores = _scores_of(comparison, times)
        values.append([float(value_of(column, scores)) for column in SCORES])
    cells = dict(zip(SCORES, np.mean(values, axis=0).tolist(), strict=True))
    return Limit("as many as are labelled, at random", cells, f"mean of {RANDOM_DRAWS} draws")


def _scores_of(comparison: Comparison, times: Sequence[FloatArray]) -> Scores:
    """Scores of boundaries that are decided when they happen."""
    return count(comparison.with_detections(times, times)).totals()


def _ceiling(comparison: Comparison) -> list[Limit]:
    """Each annotator against the others; their delay isn't known."""
    human = each_annotator(comparison)
    if human is None:
        return []
    scores = human.counts.totals()
    columns = [column for column in SCORES if column not in DELAY_COLUMNS]
    cells = {column: float(value_of(column, scores)) for column in columns}
    return [Limit("an annotator against the others", cells, f"{human.n} videos")]
