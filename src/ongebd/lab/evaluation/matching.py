"""Matching detections with an annotator's boundaries: greedy, one to one, in the annotator's order.

Each boundary takes the nearest free detection, the first on ties, if it is within the tolerance (inclusive).
This is the official rule. It isn't the best possible matching, and the order of an annotator's boundaries can
change the count.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import inf

import numpy as np

from ongebd.data.files import FloatArray
from ongebd.lab.evaluation.counts import Counts, IntArray, precision_recall_f1

_CHUNK = 400_000  # elements of a working array, (T, pairs, detections): small enough to stay in cache


def greedy_match(boundaries: FloatArray, detections: FloatArray, tolerance: float) -> list[tuple[int, int]]:
    """The matched pairs of one annotator, in a time that grows little faster than the number of boundaries.

    Args:
        boundaries: Shape (P,), in the annotator's order.
        detections: Shape (D,), in the given order.
        tolerance: In the same unit.

    Returns:
        Pairs of indices (boundary, detection), in the boundaries' order.

    Examples:
        >>> greedy_match(np.array([1.0, 1.5]), np.array([1.4, 2.0]), 0.5)
        [(0, 0), (1, 1)]
    """
    order = np.argsort(detections, kind="stable").tolist()
    times = [-inf, *detections[order].tolist(), inf]
    before, after = list(range(len(times))), list(range(len(times)))  # links to free ones, each to itself
    pairs = []
    for place, boundary in enumerate(boundaries.tolist()):
        right = bisect_left(times, boundary)
        left, right = _end_of(before, right - 1), _end_of(after, right)
        gap = min(abs(boundary - times[left]), abs(boundary - times[right]))
        if not gap <= tolerance:
            continue
        nearest = []  # of each of the times that are equally near, the first detection
        while abs(boundary - times[right]) == gap:
            nearest.append(right)
            right = _end_of(after, bisect_right(times, times[right]))
        while abs(boundary - times[left]) == gap:
            first = bisect_left(times, times[left])
            nearest.append(_end_of(after, first))
            left = _end_of(before, first - 1)
        taken = min(nearest, key=lambda one: order[one - 1])
        pairs.append((place, order[taken - 1]))
        before[taken], after[taken] = taken - 1, taken + 1
    return pairs


def _end_of(links: list[int], at: int) -> int:
    """Where a chain of links ends; it is shorter next time."""
    while links[at] != at:
        links[at] = links[links[at]]
        at = links[at]
    return at


def count_matches(
    annotators: Sequence[tuple[FloatArray, ...]],
    detections: Sequence[FloatArray],
    tolerances: FloatArray,
    *,
    decided: Sequence[FloatArray] | None = None,
    allowed_delay: FloatArray | None = None,
) -> Counts:
    """The official counts of all videos at all tolerances.

    In each video and at each tolerance the annotator with the highest F1 is chosen, the first on ties. A
    video without detections counts the first annotator's boundaries as missed.

    Args:
        annotators: For each of V videos, its annotators' boundaries.
        detections: For each video, its admissible detections, shape (D,), in the given order.
        tolerances: Shape (V, T), in the unit of the times; finite.
        decided: For each video, when its detections were known, shape (D,).
        allowed_delay: Shape (T,): a match is a true positive only if the detection was decided at most this
            long after the boundary. A late match keeps its boundary and its detection occupied.
    """
    videos, levels = tolerances.shape
    tp = np.zeros((videos, levels), dtype=np.int64)
    chosen = np.zeros((videos, levels), dtype=np.int64)
    found = np.array([len(times) for times in detections], dtype=np.int64)
    first = np.array([len(row[0]) for row in annotators], dtype=np.int64)
    positives = np.repeat(first[:, None], levels, axis=1)
    late = None if decided is None or allowed_delay is None else (decided, allowed_delay)

    seen = np.flatnonzero(found)
    if len(seen):
        owner = np.repeat(seen, [len(annotators[int(video)]) for video in seen])
        boundaries = [times for video in seen for times in annotators[int(video)]]
        sizes = np.array([len(times) for times in boundaries], dtype=np.int64)
        hits = _count_pairs(boundaries, sizes, owner, detections, tolerances, late)
        chosen[seen], tp[seen], positives[seen] = _best_annotators(hits, sizes, owner, found, seen)
    return Counts(tp, positives, np.repeat(found[:, None], levels, axis=1), chosen)


def _best_annotators(
    hits: IntArray, sizes: IntArray, owner: IntArray, found: IntArray, seen: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """The annotator of highest F1 in each seen video, its true positives and its positives, all (seen, T)."""
    totals = [np.broadcast_to(part[:, None], hits.shape).astype(np.float64) for part in (sizes, found[owner])]
    f1 = precision_recall_f1(hits.astype(np.float64), *totals)[2]
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
    late: tuple[Sequence[FloatArray], FloatArray] | None,
) -> IntArray:
    """True positives of each (video, annotator) pair at each tolerance, shape (pairs, T).

    Pairs of similar size are computed together, which keeps the padding small; long ones, one by one.
    """
    levels = tolerances.shape[1]
    found = np.array([len(detections[video]) for video in owner], dtype=np.int64)
    hits = np.zeros((len(owner), levels), dtype=np.int64)
    order = np.lexsort((sizes, found))
    long = sizes * found > _CHUNK
    for pair in np.flatnonzero(long):
        video = owner[pair]
        for level, tolerance in enumerate(tolerances[video]):
            pairs = greedy_match(boundaries[pair], detections[video], tolerance)
            if late is not None and pairs:
                marks, taken = np.array(pairs).T
                hits[pair, level] = (late[0][video][taken] - boundaries[pair][marks] <= late[1][level]).sum()
            else:
                hits[pair, level] = len(pairs)
    order = order[(sizes[order] > 0) & ~long[order]]
    start = 0
    while start < len(order):
        width = _chunk_width(found[order[start:]], levels)
        part = order[start : start + width]
        start += width
        marks = _pad([boundaries[pair] for pair in part], np.nan)
        times = _pad([detections[video] for video in owner[part]], np.inf)
        known = None if late is None else _pad([late[0][video] for video in owner[part]], np.inf)
        limit = None if late is None else late[1]
        hits[part] = _greedy(marks, times, tolerances[owner[part]].T, known, limit)
    return hits


def _chunk_width(found: IntArray, levels: int) -> int:
    """How many of the first pairs, sorted by ascending numbers of detections, to compute together."""
    width = len(found)
    while width > 1 and width * int(found[width - 1]) * levels > _CHUNK:
        width = min(width - 1, max(1, _CHUNK // (int(found[width - 1]) * levels)))
    return width


def _pad(rows: list[FloatArray], value: float) -> FloatArray:
    """Rows of unequal length as one array, (number of rows, longest), padded with a value."""
    lengths = np.array([len(row) for row in rows])
    padded = np.full((len(rows), int(lengths.max())), value)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.concatenate(rows)
    return padded


def _greedy(
    marks: FloatArray,
    times: FloatArray,
    tolerances: FloatArray,
    known: FloatArray | None,
    allowed: FloatArray | None,
) -> IntArray:
    """Greedy matching of n pairs together; the working arrays are (T, n, D) whatever P is.

    Args:
        marks: Boundaries, (n, P), padded with NaN, which matches nothing.
        times: Detections, (n, D), padded with infinity, which matches nothing.
        tolerances: (T, n), finite.
        known: When each detection was decided, (n, D).
        allowed: The delay allowed at each level, (T,).

    Returns:
        True positives, (n, T).
    """
    levels, pairs = tolerances.shape
    taken = np.zeros((levels, pairs, times.shape[1]))  # 0 for free, inf for used
    total = np.zeros((levels, pairs), dtype=np.int64)
    for mark in marks.T:  # (n,)
        distance = np.abs(mark[:, None] - times)  # (n, D)
        left = distance + taken  # (T, n, D); exact: only 0 or inf is added
        nearest = left.argmin(axis=2)  # the first on ties
        hit = np.take_along_axis(left, nearest[:, :, None], axis=2)[:, :, 0] <= tolerances
        level, pair = np.nonzero(hit)
        taken[level, pair, nearest[level, pair]] = np.inf
        if known is not None and allowed is not None:
            hit[level, pair] = known[pair, nearest[level, pair]] - mark[pair] <= allowed[level]
        total += hit
    return total.T
