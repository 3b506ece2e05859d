"""The annotator ceiling: what one annotator scores against the others, by the very same rule.

It is not quite the system's exam: where a video has five annotators, the system may choose the best of five,
the left-out annotator the best of four. Where annotators are people this is the human ceiling; but they
need not be people.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ongebd.data.label_set import LabelSet
from ongebd.data.numbers import FloatArray
from ongebd.lab.evaluation.comparison import Comparison
from ongebd.lab.evaluation.counts import Counts
from ongebd.lab.evaluation.figures import count_all


@dataclass(frozen=True, slots=True, eq=False)
class Human:
    """What annotators score against the others.

    Attributes:
        name: "each annotator in turn" or "most consistent annotator".
        n: Videos with two annotators or more, the only ones that say anything here.
        counts: Arrays of shape (V, 14), all videos; of several annotators in a video, the sum.
        f1: F1 of the totals, shape (14,).
    """

    name: str
    n: int
    counts: Counts
    f1: FloatArray


def each_annotator(comparison: Comparison) -> Human | None:
    """Every annotator left out in turn and scored against the others; None where no video has two."""
    videos = [video for video, rows in enumerate(comparison.annotators) for _ in rows]
    left_out = [place for rows in comparison.annotators for place in range(len(rows))]
    return _human("each annotator in turn", comparison, videos, left_out)


def most_consistent_annotator(comparison: Comparison, labels: LabelSet) -> Human | None:
    """Each video's annotator of highest `f1_consis` against the others; None where labels lack it."""
    choices = [labels.videos[name].most_consistent for name in comparison.ids]
    known = [(video, place) for video, place in enumerate(choices) if place is not None]
    return _human("most consistent annotator", comparison, [v for v, _ in known], [p for _, p in known])


def _human(name: str, comparison: Comparison, videos: list[int], left_out: list[int]) -> Human | None:
    """Score (video, left-out annotator) pairs, summed over each video's pairs."""
    pairs = [(v, p) for v, p in zip(videos, left_out, strict=True) if len(comparison.annotators[v]) > 1]
    if not pairs:
        return None
    owner = np.array([video for video, _ in pairs])
    marks = [comparison.annotators[video][place] for video, place in pairs]
    limits = comparison.limits[owner]
    exam = replace(
        comparison,
        ids=tuple(comparison.ids[video] for video in owner),
        annotators=[_others(comparison.annotators[video], place) for video, place in pairs],
        lengths=comparison.lengths[owner],
        limits=limits,
        detections=[
            times[(times >= 0) & (times <= limit)] for times, limit in zip(marks, limits, strict=True)
        ],
        decided=None,
        found=np.ones(len(pairs), dtype=np.bool_),
    )
    each = count_all(exam)
    parts = []
    for part in (each.tp, each.positives, each.detections):
        table = np.zeros((len(comparison), part.shape[1]), dtype=np.int64)
        np.add.at(table, owner, part)
        parts.append(table)
    counts = Counts(parts[0], parts[1], parts[2], np.zeros_like(parts[0]))
    return Human(name, len(set(owner.tolist())), counts, counts.totals().f1)


def _others(rows: tuple[FloatArray, ...], place: int) -> tuple[FloatArray, ...]:
    return rows[:place] + rows[place + 1 :]
