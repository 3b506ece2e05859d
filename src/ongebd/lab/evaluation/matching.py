"""Matching detections with an annotator's boundaries: greedy, one to one, in the annotator's order.

Each boundary takes the nearest detection that is still free, the first on ties, if that lies within the
tolerance (the tolerance itself included). A boundary that finds none leaves all detections free. This is the
official rule: it is not the best possible matching, and the order of an annotator's boundaries can change
the count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ongebd.data.numbers import FloatArray
from ongebd.lab.evaluation.counts import Counts, IntArray, precision_recall_f1

_CHUNK = (
    400_000  # elements of a working array, (T, pairs, detections): a few megabytes, so that it stays in cache
)


def greedy_match(boundaries: FloatArray, detections: FloatArray, tolerance: float) -> list[tuple[int, int]]:
    """The matched pairs of one annotator, one by one: the rule as it reads.

    Args:
        boundaries: Shape (P,), in the annotator's order.
        detections: Shape (D,), in the order given.
        tolerance: In the same unit.

    Returns:
        (place among the boundaries, place among the detections), in the boundaries' order.

    Examples:
        >>> greedy_match(np.array([1.0, 1.5]), np.array([1.4, 2.0]), 0.5)
        [(0, 0), (1, 1)]
    """
    pairs = []
    free = list(range(len(detections)))
    for place, boundary in enumerate(boundaries):
        if not free:
            break
        nearest = min(free, key=lambda detection: abs(boundary - detections[detection]))
        if abs(boundary - detections[nearest]) <= tolerance:
            pairs.append((place, nearest))
            free.remove(nearest)
    return pairs


def count_matches(
    annotators: Sequence[tuple[FloatArray, ...]],
    detections: Sequence[FloatArray],
    tolerances: FloatArray,
    *,
    decided: Sequence[FloatArray] | None = None,
    allowed_delay: FloatArray | None = None,
) -> Counts:
    """The official counts of all videos at all tolerances: the rule of this module, all videos at a time.

    In each video and at each tolerance the annotator with the highest F1 is chosen, the first on ties. A
    video without detections counts the first annotator's boundaries as missed.

    Args:
        annotators: For each of V videos, its annotators' boundaries.
        detections: For each video, its admissible detections, shape (D,), in the order given.
        tolerances: Shape (V, T), in the unit of the times; finite.
        decided: For each video, when its detections were known, shape (D,).
        allowed_delay: Shape (T,): a match counts as a true positive only where the detection was decided at
            most this long after the boundary; a late one stays matched, and so costs both precision and
            recall.
    """
    videos, levels = tolerances.shape
    tp = np.zeros((videos, levels), dtype=np.int64)
    chosen = np.zeros((videos, levels), dtype=np.int64)
    found = np.array([len(times) for times in detections], dtype=np.int64)
    positives = np.repeat(
        np.array([len(row[0]) for row in annotators], dtype=np.int64)[:, None], levels, axis=1
    )

    seen = np.flatnonzero(found)
    if len(seen):
        owner = np.repeat(seen, [len(annotators[int(video)]) for video in seen])
        boundaries = [times for video in seen for times in annotators[int(video)]]
        sizes = np.array([len(times) for times in boundaries], dtype=np.int64)
        hits = _count_pairs(boundaries, sizes, owner, detections, tolerances, decided, allowed_delay)
        best, tp[seen], positives[seen] = _best_annotators(hits, sizes, owner, found, seen)
        chosen[seen] = best
    return Counts(tp, positives, np.repeat(found[:, None], levels, axis=1), chosen)


def _best_annotators(
    hits: IntArray, sizes: IntArray, owner: IntArray, found: IntArray, seen: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """The annotator of highest F1 in each seen video, its true positives and its positives, all (seen, T)."""
    as_float = [
        np.broadcast_to(part[:, None], hits.shape).astype(np.float64) for part in (sizes, found[owner])
    ]
    f1 = precision_recall_f1(hits.astype(np.float64), *as_float)[2]
    first = np.searchsorted(owner, seen)
    rank = np.arange(len(owner)) - np.repeat(first, np.diff(np.append(first, len(owner))))
    table = np.full((len(seen), rank.max() + 1, hits.shape[1]), -1.0)
    table[np.searchsorted(seen, owner), rank] = f1
    best = table.argmax(axis=1)
    pair = first[:, None] + best
    return best, np.take_along_axis(hits, pair, axis=0), sizes[pair]


def _count_pairs(
    boundaries: list[FloatArray],
    sizes: IntArray,
    owner: IntArray,
    detections: Sequence[FloatArray],
    tolerances: FloatArray,
    decided: Sequence[FloatArray] | None,
    allowed_delay: FloatArray | None,
) -> IntArray:
    """True positives of each (video, annotator) pair at each tolerance, shape (pairs, T).

    Pairs of like size are worked on together, so that little of the padding is in vain.
    """
    levels = tolerances.shape[1]
    found = np.array([len(detections[video]) for video in owner], dtype=np.int64)
    hits = np.zeros((len(owner), levels), dtype=np.int64)
    order = np.lexsort((sizes, found))
    order = order[sizes[order] > 0]
    start = 0
    while start < len(order):
        width = _chunk_width(found[order[start:]], levels)
        part = order[start : start + width]
        start += width
        marks = _pad([boundaries[pair] for pair in part], np.nan)
        times = _pad([detections[video] for video in owner[part]], np.inf)
        late = None
        if decided is not None and allowed_delay is not None:
            late = _pad([decided[video] for video in owner[part]], np.inf), allowed_delay
        hits[part] = _greedy(marks, times, tolerances[owner[part]].T, late)
    return hits


def _chunk_width(found: IntArray, levels: int) -> int:
    """How many of the first pairs, with ascending numbers of detections, to work on together."""
    width = len(found)
    while width > 1 and width * int(found[width - 1]) * levels > _CHUNK:
        width = min(width - 1, max(1, _CHUNK // (int(found[width - 1]) * levels)))
    return width


def _pad(rows: list[FloatArray], value: float) -> FloatArray:
    """Rows of unequal length as one array, (number of rows, longest), filled up with a value."""
    lengths = np.array([len(row) for row in rows])
    padded = np.full((len(rows), int(lengths.max())), value)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.concatenate(rows)
    return padded


def _greedy(
    marks: FloatArray, times: FloatArray, tolerances: FloatArray, late: tuple[FloatArray, FloatArray] | None
) -> npt.NDArray[np.int64]:
    """Greedy matching of many pairs at once; the working arrays are (T, n, D), however many boundaries.

    Args:
        marks: Boundaries, (n, P), filled up with NaN, which is near to nothing.
        times: Detections, (n, D), filled up with infinity, which is near to no boundary.
        tolerances: (T, n), finite.
        late: When each detection was known, (n, D), and the delay allowed at each level, (T,).

    Returns:
        True positives, (n, T).
    """
    levels, pairs = tolerances.shape
    taken = np.zeros((levels, pairs, times.shape[1]))  # 0 where free, inf where used up
    total = np.zeros((levels, pairs), dtype=np.int64)
    for mark in marks.T:  # (n,)
        distance = np.abs(mark[:, None] - times)  # (n, D)
        left = distance + taken  # (T, n, D); exact: only 0 or inf is added
        nearest = left.argmin(axis=2)  # the first on ties
        hit = np.take_along_axis(left, nearest[:, :, None], axis=2)[:, :, 0] <= tolerances
        level, pair = np.nonzero(hit)
        taken[level, pair, nearest[level, pair]] = np.inf
        if late is not None:
            known, allowed = late
            hit[level, pair] = known[pair, nearest[level, pair]] - mark[pair] <= allowed[level]
        total += hit
    return total.T
