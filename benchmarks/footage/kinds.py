"""What the kind of a composite's boundary or distractor says of a method: recall by kind, false alarms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from footage.listening import Found
from footage.scores import Figure, ratio
from ongebd.data.numbers import FloatArray
from ongebd.lab.composites.config import BOUNDARY_KINDS
from ongebd.lab.composites.records import CompositeBoundary, CompositeDistractor, CompositeVideo
from ongebd.lab.evaluation.bootstrap import Interval
from ongebd.lab.evaluation.counts import Counts
from ongebd.lab.evaluation.matching import greedy_match

AFTER = 0.5
"""Seconds after a distractor in which a detection is still laid to it."""


@dataclass(frozen=True)
class Recall:
    """How many boundaries of a kind there were, and which share of them was found."""

    count: int
    share: Figure


@dataclass(frozen=True)
class Alarms:
    """Detections in a set without boundaries.

    Attributes:
        distractors: How many there were.
        hours: Hours of video.
        during: Detections whose onset lies in a distractor or within `AFTER` after it, an hour of video.
        all: All detections an hour.
        count: Those of `during`, as counted.
        poisson: 95 % interval of `during` as of independent events, which also stands where none was seen.
    """

    distractors: int
    hours: float
    during: Figure
    all: Figure
    count: int
    poisson: Interval


def found_by_label(
    boundaries: Sequence[CompositeBoundary], detections: FloatArray, tolerance: float
) -> list[bool]:
    """Which boundaries have a detection within the tolerance of their label; the project's matching."""
    times = np.array([boundary.time for boundary in boundaries], dtype=np.float64)
    places = {place for place, _ in greedy_match(times, detections, tolerance)}
    return [place in places for place in range(len(boundaries))]


def found_by_span(
    boundaries: Sequence[CompositeBoundary], detections: FloatArray, tolerance: float
) -> list[bool]:
    """Which boundaries have a detection while they last, or within the tolerance of that.

    Greedy, one to one, in the boundaries' order: each takes the free detection that is nearest to its span,
    and of several within it the nearest to its label.
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
    videos: Mapping[str, CompositeVideo], found: Mapping[str, Found], tolerance: float, *, span: bool = False
) -> dict[str, Recall]:
    """The share of each kind of boundary that was found, over all videos.

    Args:
        videos: The composites.
        found: What a method found in them.
        tolerance: Seconds.
        span: Match with the whole of a transition and not with its label.
    """
    match = found_by_span if span else found_by_label
    hits = {kind: np.zeros(len(videos)) for kind in BOUNDARY_KINDS}
    totals = {kind: np.zeros(len(videos)) for kind in BOUNDARY_KINDS}
    for place, (name, video) in enumerate(videos.items()):
        for boundary, hit in zip(
            video.boundaries, match(video.boundaries, found[name].times, tolerance), strict=True
        ):
            hits[boundary.kind][place] += hit
            totals[boundary.kind][place] += 1
    return {
        kind: Recall(int(totals[kind].sum()), ratio(hits[kind], totals[kind]))
        for kind in BOUNDARY_KINDS
        if totals[kind].any()
    }


def span_counts(
    videos: Mapping[str, CompositeVideo], found: Mapping[str, Found], tolerances: Sequence[float]
) -> Counts:
    """Counts where a transition is matched with the whole of its span, (V, T)."""
    rows = list(videos.items())
    tp = np.array(
        [[sum(found_by_span(v.boundaries, found[n].times, t)) for t in tolerances] for n, v in rows], np.int64
    )
    sizes = np.array([len(video.boundaries) for _, video in rows], np.int64)
    given = np.array([len(found[name].times) for name, _ in rows], np.int64)
    wide = [np.repeat(part[:, None], len(tolerances), axis=1) for part in (sizes, given)]
    return Counts(tp, wide[0], wide[1], np.zeros_like(tp))


def during(moments: FloatArray, distractors: Sequence[CompositeDistractor], after: float = AFTER) -> int:
    """How many moments lie in a distractor, or at most so long after its end."""
    return sum(any(d.start <= moment <= d.end + after for d in distractors) for moment in moments)


def false_alarms(videos: Mapping[str, CompositeVideo], found: Mapping[str, Found]) -> Alarms:
    """False alarms in a set that has distractors, or none, and no boundaries."""
    rows = list(videos.items())
    hours = np.array([video.duration / 3600 for _, video in rows])
    whole = np.array([float(len(found[name].onsets)) for name, _ in rows])
    part = np.array([float(during(found[name].onsets, video.distractors)) for name, video in rows])
    low, high = poisson_interval(int(part.sum()))
    total = float(hours.sum())
    return Alarms(
        sum(len(video.distractors) for _, video in rows),
        total,
        ratio(part, hours),
        ratio(whole, hours),
        int(part.sum()),
        Interval(low / total, high / total),
    )


def poisson_interval(count: int) -> tuple[float, float]:
    """The exact 95 % interval of the mean of a Poisson variable that was seen once.

    >>> [round(value, 2) for value in poisson_interval(0)]
    [0.0, 3.69]
    """
    low = 0.0 if count == 0 else _solve(lambda mean: 1 - _at_most(count - 1, mean), 0.025, count)
    high = _solve(lambda mean: 1 - _at_most(count, mean), 0.975, count)
    return low, high


def _at_most(count: int, mean: float) -> float:
    """The probability of at most so many."""
    if mean <= 0:
        return 1.0
    return math.fsum(math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) for n in range(count + 1))


def _solve(rising: object, goal: float, count: int) -> float:
    low, high = 0.0, 10.0 + 3.0 * count
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < goal else (low, middle)  # type: ignore[operator]
    return (low + high) / 2
