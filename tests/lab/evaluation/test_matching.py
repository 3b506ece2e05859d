"""Greedy matching, pair by pair; how late matches are, and false alarms."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.data import PredictionSet, VideoPrediction, as_label_set, as_prediction_set
from ongebd.lab.evaluation import matching
from ongebd.lab.evaluation.comparison import (
    Comparison,
    compare,
    count_within_delay,
    false_alarms_per_hour,
    measure_delays,
    watched_hours,
)
from ongebd.lab.evaluation.matching import count_matches, greedy_match

times = st.lists(st.integers(0, 20).map(lambda step: step / 4), max_size=8).map(
    lambda row: np.array(row, dtype=float)
)
tolerances = st.integers(0, 12).map(lambda step: step / 4)


def plain_match(boundaries: np.ndarray, detections: np.ndarray, tolerance: float) -> list[tuple[int, int]]:
    """The rule, as it is said."""
    free, pairs = list(range(len(detections))), []
    for place, boundary in enumerate(boundaries):
        nearest = min(free, key=lambda one: abs(boundary - detections[one]), default=None)
        if nearest is not None and abs(boundary - detections[nearest]) <= tolerance:
            pairs.append((place, nearest))
            free.remove(nearest)
    return pairs


@given(times, times, tolerances, st.sampled_from([0.0, 1e15, 4e15, -(2.0**53)]))
def test_each_boundary_takes_the_nearest_free_detection_the_first_of_several(
    boundaries: np.ndarray, detections: np.ndarray, tolerance: float, far: float
) -> None:
    """Also where rounding makes different times equally near."""
    for marks, found in ((boundaries, detections), (boundaries + far, detections)):
        assert greedy_match(marks, found, tolerance + abs(far)) == plain_match(
            marks, found, tolerance + abs(far)
        )


@given(times, times, tolerances)
def test_the_count_of_many_is_that_of_one_by_one(
    boundaries: np.ndarray, detections: np.ndarray, tolerance: float
) -> None:
    counts = count_matches([(boundaries,)], [detections], np.array([[tolerance]]))
    assert counts.tp.tolist() == [[len(plain_match(boundaries, detections, tolerance))]]


@given(
    st.lists(st.tuples(times, times), min_size=1, max_size=4),
    tolerances,
    st.integers(-4, 8),
    st.sampled_from([8, 400_000]),
)
def test_pairs_of_unequal_size_count_as_one_by_one_late_ones_too_long_or_not(
    pairs: list[tuple[np.ndarray, np.ndarray]], tolerance: float, quarters: int, most: int
) -> None:
    allowed = quarters / 4
    known = [found + np.arange(len(found)) / 4 for _, found in pairs]
    with patch.object(matching, "_CHUNK", most):
        counts = count_matches(
            [(marks,) for marks, _ in pairs],
            [found for _, found in pairs],
            np.full((len(pairs), 2), tolerance),
            decided=known,
            allowed_delay=np.array([allowed, np.inf]),
        )
    matched = [greedy_match(marks, found, tolerance) for marks, found in pairs]
    in_time = [
        sum(when[detection] - marks[mark] <= allowed for mark, detection in row)
        for row, when, (marks, _) in zip(matched, known, pairs, strict=True)
    ]
    assert counts.tp.tolist() == [list(row) for row in zip(in_time, map(len, matched), strict=True)]


def peak_bytes(size: int) -> int:
    """Memory for one long video with as many boundaries as detections, delays too."""
    marks = np.arange(size, dtype=np.float64)
    tracemalloc.start()
    try:
        count_matches(
            [(marks, marks + 0.25)],
            [marks],
            np.full((1, 3), 0.5),
            decided=[marks],
            allowed_delay=np.array([0.0, 0.5, np.inf]),
        )
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_grows_with_a_videos_length_not_with_its_square() -> None:
    peak_bytes(16)  # what is made once
    assert peak_bytes(1600) < 6 * peak_bytes(400)


def test_the_first_of_two_equally_near_detections_is_taken() -> None:
    assert greedy_match(np.array([2.0]), np.array([3.0, 1.0]), 1.0) == [(0, 0)]


def test_a_match_that_comes_too_late_uses_its_detection_up_but_does_not_count() -> None:
    marks, found, known = np.array([1.0, 1.2]), np.array([1.1]), np.array([1.5])
    counts = count_matches(
        [(marks,)], [found], np.full((1, 3), 0.5), decided=[known], allowed_delay=np.array([0.4, 0.5, np.inf])
    )
    assert counts.tp.tolist() == [[0, 1, 1]]


Official = Callable[..., dict[str, dict[str, object]]]


def video(*boundaries: tuple[float, float]) -> VideoPrediction:
    times, decided = np.array(boundaries, dtype=np.float64).reshape(-1, 2).T
    return VideoPrediction(times, decided)


def comparison_of(labels: dict[str, dict[str, object]], **videos: VideoPrediction) -> Comparison:
    return compare(as_label_set(labels), PredictionSet(videos))


def test_a_delay_runs_from_the_annotated_boundary_to_the_decision(official: Official) -> None:
    found = video((2.25, 2.5), (6.0, 6.75), (9.0, 9.0))
    delays = measure_delays(comparison_of(official(v=(10.0, [[2.0, 6.25]])), v=found))
    assert delays is not None
    assert delays.tolist() == [0.5, 0.5]


def test_a_detection_before_the_annotated_moment_has_a_negative_delay(official: Official) -> None:
    delays = measure_delays(comparison_of(official(v=(10.0, [[2.0]])), v=video((1.75, 1.875))))
    assert delays is not None
    assert delays.tolist() == [-0.125]


def test_the_delay_is_against_the_annotator_whom_the_rule_chooses(official: Official) -> None:
    labels = official(v=(10.0, [[2.5, 8.0], [2.0]]))
    delays = measure_delays(comparison_of(labels, v=video((2.25, 3.0))))
    assert delays is not None
    assert delays.tolist() == [1.0]


def test_decisions_stay_with_their_detections_when_some_are_out_of_range(official: Official) -> None:
    found = video((-1.0, 0.0), (11.0, 11.0), (2.0, 2.75))
    delays = measure_delays(comparison_of(official(v=(10.0, [[2.0]])), v=found))
    assert delays is not None
    assert delays.tolist() == [0.75]


def test_only_boundaries_decided_in_time_count(official: Official) -> None:
    found = video((2.0, 2.0), (4.0, 4.25), (6.0, 6.5), (8.0, 10.0))
    counts = count_within_delay(comparison_of(official(v=(10.0, [[2.0, 4.0, 6.0, 8.0]])), v=found))
    assert counts is not None
    assert counts.tp.tolist() == [[1, 1, 2, 3, 3, 4]]  # within 0, 0.1, 0.25, 0.5, 1 s, and without a limit
    assert counts.detections.tolist() == [[4] * 6]


def test_predictions_that_do_not_say_when_have_no_delay(official: Official) -> None:
    comparison = compare(as_label_set(official(v=(10.0, [[2.0]]))), as_prediction_set({"v": [2.0]}))
    assert measure_delays(comparison) is None
    assert count_within_delay(comparison) is None


def test_nothing_matched_is_no_delay_rather_than_zero(official: Official) -> None:
    delays = measure_delays(comparison_of(official(v=(10.0, [[2.0]])), v=video((8.0, 8.0))))
    assert delays is not None
    assert not len(delays)


def test_false_alarms_are_counted_for_the_hours_that_were_watched(official: Official) -> None:
    labels = official(v=(1800.0, [[10.0]]), missing=(1800.0, [[10.0]]))
    comparison = comparison_of(labels, v=video((10.0, 10.0), (500.0, 500.0), (900.0, 900.0)))
    hours = watched_hours(comparison)
    assert hours.tolist() == [0.5, 0.0]
    scores = comparison.count(comparison.absolute_tolerances([0.5])).totals()
    assert false_alarms_per_hour(scores, float(hours.sum())).tolist() == [pytest.approx(4.0)]
    assert np.isnan(false_alarms_per_hour(scores, 0.0)).all()
