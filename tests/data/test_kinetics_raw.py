"""The conversion of the raw Kinetics-GEBD annotation, rule by rule, the oddities of the recipe included."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from ongebd.data import read_labels
from ongebd.data.kinetics_raw import annotator_boundaries, convert_raw_annotation
from ongebd.errors import LabelError

EVENT = "EventChange (Timestamp/Range): Change of Action"
GRADUAL = "ShotChangeGradualRange: Change due to Cut"
SHOT = "ShotChangeImmediateTimestamp: Change due to Pan"


def mark(label: str, start: float, end: float | None = None) -> dict[str, object]:
    return {"start_time": start, "end_time": start if end is None else end, "label": label}


def boundaries(*marks: dict[str, object]) -> list[float]:
    return [round(time, 6) for time in annotator_boundaries(list(marks), 10.0, "clip")]


def test_a_mark_counts_as_its_midpoint() -> None:
    assert boundaries(mark(EVENT, 2.0, 3.0), mark(GRADUAL, 5.0, 6.0), mark(SHOT, 8.0)) == [2.5, 5.5, 8.0]


def test_marks_within_0_3_s_of_the_ends_are_left_out() -> None:
    assert boundaries(mark(EVENT, 0.29), mark(EVENT, 0.3), mark(EVENT, 9.7), mark(EVENT, 9.71)) == [0.3, 9.7]


def test_gradual_changes_that_overlap_are_merged() -> None:
    assert boundaries(mark(GRADUAL, 2.0, 4.0), mark(GRADUAL, 3.0, 6.0)) == [4.0]


def test_a_gradual_change_marked_out_of_order_is_swallowed_as_published() -> None:
    assert boundaries(mark(GRADUAL, 6.0, 7.0), mark(GRADUAL, 1.0, 2.0)) == [6.5]


def test_moments_near_a_gradual_change_are_left_out() -> None:
    assert boundaries(mark(GRADUAL, 4.0, 5.0), mark(EVENT, 3.75), mark(SHOT, 5.3), mark(EVENT, 3.6)) == [
        3.6,
        4.5,
    ]


def test_the_neighbour_of_a_dropped_moment_is_passed_over() -> None:
    near = [mark(EVENT, 4.1), mark(EVENT, 4.9)]
    assert boundaries(mark(GRADUAL, 4.0, 5.0), *near) == [4.5, 4.9]


def test_the_second_of_two_close_events_is_left_out() -> None:
    assert boundaries(mark(EVENT, 2.5), mark(EVENT, 2.0), mark(EVENT, 3.0)) == [2.0, 3.0]


def test_events_near_a_shot_change_are_left_out_except_near_the_last() -> None:
    shots = [mark(SHOT, 2.0), mark(SHOT, 8.0)]
    assert boundaries(*shots, mark(EVENT, 2.4), mark(EVENT, 8.4)) == [2.0, 8.0, 8.4]


def raw_video(annotators: int, **changes: object) -> dict[str, object]:
    video: dict[str, object] = {
        "fps": 25.0,
        "num_frames": 250,
        "video_duration": 10.0,
        "f1_consis": [0.5] * annotators,
        "f1_consis_avg": 0.5,
        "substages_timestamps": [[mark(EVENT, 2.03)] for _ in range(annotators)],
    }
    return video | changes


def test_times_are_exact_and_frame_numbers_whole() -> None:
    converted, notes = convert_raw_annotation({"v": raw_video(3)})
    assert converted["v"]["substages_timestamps"][0] == [2.03]  # type: ignore[index]
    assert converted["v"]["substages_myframeidx"][0] == [50]  # type: ignore[index]
    assert notes == ["converted from the raw annotation, rules of 0.3 s"]


def test_what_the_recipe_leaves_out_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "k400_val_raw_annotation.pkl"
    path.write_bytes(pickle.dumps({"a": raw_video(3), "b": raw_video(2), "c": raw_video(3, fps=None)}))
    labels = read_labels(path)
    assert list(labels.videos) == ["a"]
    assert labels.dataset == "kinetics-gebd"
    assert any(note.startswith("2 videos left out by the official recipe") for note in labels.notes)


def test_a_mark_without_an_end_names_the_video_and_the_annotator(tmp_path: Path) -> None:
    path = tmp_path / "raw.pkl"
    bad = [[mark(EVENT, 2.0)], [{"start_time": 1.0, "label": EVENT}], []]
    path.write_bytes(pickle.dumps({"a": raw_video(3, substages_timestamps=bad)}))
    with pytest.raises(LabelError, match=r"raw\.pkl: video 'a', annotator 1, mark 1: .*end_time"):
        read_labels(path)
