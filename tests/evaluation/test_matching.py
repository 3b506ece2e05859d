"""Greedy matching, pair by pair."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ongebd.evaluation.matching import count_matches, greedy_match

times = st.lists(st.integers(0, 20).map(lambda step: step / 4), max_size=8).map(
    lambda row: np.array(row, dtype=float)
)
tolerances = st.integers(0, 12).map(lambda step: step / 4)


@given(times, times, tolerances)
def test_matching_is_one_to_one_and_within_the_tolerance(
    boundaries: np.ndarray, detections: np.ndarray, tolerance: float
) -> None:
    pairs = greedy_match(boundaries, detections, tolerance)
    assert (
        len({boundary for boundary, _ in pairs}) == len({detection for _, detection in pairs}) == len(pairs)
    )
    assert all(abs(boundaries[b] - detections[d]) <= tolerance for b, d in pairs)


@given(times, times, tolerances)
def test_a_boundary_left_over_has_no_free_detection_in_reach(
    boundaries: np.ndarray, detections: np.ndarray, tolerance: float
) -> None:
    pairs = dict(greedy_match(boundaries, detections, tolerance))
    free = [time for place, time in enumerate(detections) if place not in pairs.values()]
    for place, boundary in enumerate(boundaries):
        assert place in pairs or all(abs(boundary - time) > tolerance for time in free)


@given(times, times, tolerances)
def test_the_count_of_many_is_that_of_one_by_one(
    boundaries: np.ndarray, detections: np.ndarray, tolerance: float
) -> None:
    counts = count_matches([(boundaries,)], [detections], np.array([[tolerance]]))
    assert counts.tp.tolist() == [[len(greedy_match(boundaries, detections, tolerance))]]


def test_the_first_of_two_equally_near_detections_is_taken() -> None:
    assert greedy_match(np.array([2.0]), np.array([3.0, 1.0]), 1.0) == [(0, 0)]


def test_a_match_that_comes_too_late_uses_its_detection_up_but_does_not_count() -> None:
    marks, found, known = np.array([1.0, 1.2]), np.array([1.1]), np.array([1.5])
    counts = count_matches(
        [(marks,)], [found], np.full((1, 3), 0.5), decided=[known], allowed_delay=np.array([0.4, 0.5, np.inf])
    )
    assert counts.tp.tolist() == [[0, 1, 1]]
