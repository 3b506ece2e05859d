"""The annotator ceiling: what one annotator scores against the others, by the same rule as a system.

The exam differs slightly: where a video has five annotators, a system may choose the best of five, the
left-out annotator the best of four. Annotators need not be people.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ongebd.data.label_set import LabelSet
from ongebd.data.numbers import FloatArray
from ongebd.lab.evaluation.comparison import Comparison
from ongebd.lab.evaluation.counts import Counts
from ongebd.lab.evaluation.figures import count_all

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
