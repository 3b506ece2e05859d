from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from footage.scores import (
    clock_row,
    comparison_of,
    difference,
    during,
    false_alarms,
    found_by_label,
    found_by_span,
    ratio,
    recall_by_kind,
    row,
    span_counts,
)

from ongebd.data import LabelSet, VideoLabels, VideoPrediction
from ongebd.lab.composites import CompositeBoundary, CompositeDistractor, CompositeVideo
from ongebd.lab.evaluation.comparison import measure_delays
from ongebd.lab.evaluation.relative_distance import ABSOLUTE


def boundary(time: float, kind: str = "cut", before: float = 0.0, after: float = 0.0) -> CompositeBoundary:
    return CompositeBoundary(time, kind, time - before, time + after)


def video(
    name: str,
    boundaries: tuple[CompositeBoundary, ...] = (),
    distractors: tuple[CompositeDistractor, ...] = (),
    duration: float = 36.0,
) -> CompositeVideo:
    frames = round(24 * duration)
    return CompositeVideo(
        name, Path(f"{name}.mp4"), "all", duration, 24.0, frames, boundaries, distractors, ("clip",)
    )


def found(*times: float) -> VideoPrediction:
    moments = np.array(times)
    return VideoPrediction(moments, moments + 0.1, moments, onsets_known=moments)


def test_a_boundary_is_found_within_the_tolerance_of_its_label() -> None:
    boundaries = [boundary(2.0), boundary(4.0), boundary(6.0)]
    assert found_by_label(boundaries, np.array([2.25, 4.26, 5.9]), 0.25) == [True, False, True]


def test_one_detection_finds_one_boundary() -> None:
    assert found_by_label([boundary(2.0), boundary(2.4)], np.array([2.2]), 0.25) == [True, False]
    dissolves = [boundary(2.0, "dissolve", 0.5, 0.5), boundary(3.0, "dissolve", 0.5, 0.5)]
    assert found_by_span(dissolves, np.array([2.5]), 0.25) == [True, False]


def test_a_transition_is_found_at_its_first_frame_by_span_and_not_by_label() -> None:
    dissolve = [boundary(5.0, "dissolve", 1.0, 1.0)]
    onset = np.array([4.05])
    assert found_by_label(dissolve, onset, 0.5) == [False]
    assert found_by_span(dissolve, onset, 0.25) == [True]


@pytest.mark.parametrize(("time", "hit"), [(3.74, False), (3.76, True), (6.24, True), (6.26, False)])
def test_the_span_ends_with_its_margin(time: float, hit: bool) -> None:
    assert found_by_span([boundary(5.0, "fade", 1.0, 1.0)], np.array([time]), 0.25) == [hit]


def test_of_several_detections_in_a_span_the_others_stay_free() -> None:
    pair = [boundary(5.0, "dissolve", 1.0, 1.0), boundary(6.2)]
    # The dissolve takes what is nearest to its middle, and leaves 6.0 to the cut.
    assert found_by_span(pair, np.array([6.0, 4.5]), 0.25) == [True, True]


def test_of_a_sudden_boundary_span_and_label_agree() -> None:
    boundaries = [boundary(2.0), boundary(4.0)]
    for detections in ([1.8, 4.3], [2.0], [3.9, 4.1], []):
        times = np.array(detections)
        assert found_by_span(boundaries, times, 0.25) == found_by_label(boundaries, times, 0.25)


def test_recall_by_kind_counts_each_kind_over_all_videos() -> None:
    videos = {
        "a": video("a", (boundary(2.0), boundary(5.0, "dissolve", 1.0, 1.0))),
        "b": video("b", (boundary(3.0), boundary(8.0, "stop"))),
    }
    seen = {"a": found(2.1, 4.1), "b": found(9.0)}
    recall = recall_by_kind(videos, seen, 0.25)
    assert {kind: (count, share.value) for kind, (count, share) in recall.items()} == {
        "cut": (2, 0.5),
        "dissolve": (1, 0.0),
        "stop": (1, 0.0),
    }
    assert recall_by_kind(videos, seen, 0.25, span=True)["dissolve"][1].value == 1.0


def test_span_counts_hold_what_f1_needs() -> None:
    videos = {"a": video("a", (boundary(2.0), boundary(5.0, "dissolve", 1.0, 1.0)))}
    counts = span_counts(videos, {"a": found(2.1, 4.1, 20.0)}, (0.05, 0.25))
    assert counts.tp.tolist() == [[1, 2]]
    assert counts.positives.tolist() == [[2, 2]]
    assert counts.detections.tolist() == [[3, 3]]


def test_a_moment_is_laid_to_a_distractor_up_to_half_a_second_after_it() -> None:
    shake = [CompositeDistractor(2.0, 4.0, "shake"), CompositeDistractor(6.0, 7.0, "shake")]
    assert during(np.array([1.99, 2.0, 3.0, 4.5, 4.51, 7.2]), shake) == 4
    overlapping = [CompositeDistractor(2.0, 4.0, "shake"), CompositeDistractor(4.2, 5.0, "shake")]
    assert during(np.array([4.3]), overlapping) == 1  # once, though both could have caused it


def test_false_alarms_are_counted_an_hour_of_video() -> None:
    flash = (CompositeDistractor(10.0, 10.1, "flash"),)
    videos = {"a": video("a", distractors=flash), "b": video("b", distractors=flash)}  # 72 s: a fiftieth
    alarms = false_alarms(videos, {"a": found(10.0, 30.0), "b": found(10.2)})
    assert alarms.distractors == 2
    assert alarms.hours == pytest.approx(0.02)
    assert alarms.count == 2
    assert alarms.during.value == pytest.approx(100)
    assert alarms.all.value == pytest.approx(150)


def test_false_alarms_go_by_onsets() -> None:
    flash = (CompositeDistractor(10.0, 10.1, "flash"),)
    late = VideoPrediction(np.array([11.0]), np.array([12.0]), np.array([10.0]))
    assert false_alarms({"a": video("a", distractors=flash)}, {"a": late}).count == 1


LABELS = LabelSet(
    {
        "a": VideoLabels("a", 10.0, (np.array([2.0, 6.0]), np.array([2.0]))),
        "b": VideoLabels("b", 10.0, (np.array([5.0]),)),
    }
)


def moments(*onsets: float) -> VideoPrediction:
    first = np.array(onsets)
    return VideoPrediction(first + 0.1, first + 0.2, first, onsets_known=first + 0.05)


def test_scores_and_delays_are_of_the_moment_asked_for() -> None:
    found = {"a": moments(2.0, 6.0), "b": moments(5.0)}
    assert row("", LABELS, found, "onset").at(0.1)[2] == 1.0
    later = {name: moments(*(each.times)) for name, each in found.items()}
    assert row("", LABELS, later).at(0.1)[2] == 0.0
    for moment, delay in (("centre", 0.2), ("onset", 0.05)):
        delays = measure_delays(comparison_of(LABELS, found, moment), 0.5)
        assert delays is not None
        assert np.median(delays) == pytest.approx(delay)


def test_the_clock_has_its_best_period_at_each_tolerance() -> None:
    clock, periods = clock_row(LABELS)
    assert len(periods) == len(ABSOLUTE)
    for column, period in enumerate(periods):
        alone = {name: VideoPrediction(np.arange(period, 10, period)) for name in LABELS.videos}
        assert clock.f1()[column].value == pytest.approx(row("", LABELS, alone).f1()[column].value)


def test_a_difference_is_paired() -> None:
    better = row("", LABELS, {"a": found(2.0, 6.0), "b": found(5.0)})
    worse = row("", LABELS, {"a": found(2.0), "b": found(8.0)})
    figure, above = difference(better, worse)[ABSOLUTE.index(0.25)]
    assert figure.value == pytest.approx(better.at(0.25)[2] - worse.at(0.25)[2])
    assert figure.interval is not None
    assert above > 0.5
    assert difference(better, better)[0][0].value == 0.0


def test_a_ratio_of_sums_is_not_the_mean_of_ratios() -> None:
    figure = ratio(np.array([1.0, 0.0]), np.array([1.0, 3.0]))
    assert figure.value == 0.25
    assert np.isnan(ratio(np.zeros(2), np.zeros(2)).value)
