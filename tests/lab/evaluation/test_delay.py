"""How late: the delay, F1 within an allowed delay, false alarms per hour."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ongebd.data import PredictionSet, VideoPrediction, as_label_set, as_prediction_set
from ongebd.lab.evaluation.comparison import (
    Comparison,
    compare,
    count_within_delay,
    false_alarms_per_hour,
    measure_delays,
    watched_hours,
)

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
