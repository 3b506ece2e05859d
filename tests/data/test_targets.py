"""From an annotator's times to a target for each frame."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ongebd.data import read_labels
from ongebd.data.label_set import VideoLabels
from ongebd.data.labelled import LabelRule, chosen_annotator, frame_targets

TIMES = np.arange(20) / 10  # 0.0 … 1.9 s


def positive(boundaries: list[float], rule: LabelRule = "exact", tolerance: float = 0.15) -> list[int]:
    return np.flatnonzero(frame_targets(TIMES, np.array(boundaries), rule, tolerance)).tolist()


def test_exact_takes_the_nearest_frame_and_the_earlier_of_two() -> None:
    assert positive([0.5, 0.94, 1.25]) == [5, 9, 12]


def test_near_takes_all_frames_within_the_tolerance() -> None:
    assert positive([0.5], "near") == [4, 5, 6]
    assert positive([0.5, 0.72], "near", 0.2) == [3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("rule", ["exact", "near"])
def test_boundaries_outside_the_frames_have_none(rule: LabelRule) -> None:
    assert positive([-0.1, 1.91, 50.0], rule) == []


def test_no_frames_no_targets() -> None:
    assert frame_targets(np.zeros(0), np.array([1.0])).shape == (0,)


def test_the_annotator_is_the_one_who_agrees_best() -> None:
    video = VideoLabels("a", 9.0, (np.array([1.0]), np.array([5.0, 2.0])), 0.5, (0.4, 0.6))
    assert chosen_annotator(video).tolist() == [2.0, 5.0]
    assert chosen_annotator(VideoLabels("b", 9.0, (np.array([1.0]), np.array([2.0])))).tolist() == [1.0]


@pytest.mark.parametrize(
    ("file", "dataset", "fps", "exact", "near"),
    [
        ("k400_mr345_minval_min_change_duration0.3.pkl", "kinetics-gebd", 24, "2.0%", "14.5%"),
        ("tapos_gt_val.pkl", "tapos", 6, "4.1%", "7.3%"),
    ],
)
def test_the_share_of_positive_frames_in_the_real_sets(
    shared: Path, file: str, dataset: str, fps: int, exact: str, near: str
) -> None:
    labels = read_labels(shared / "labels" / file, dataset)  # type: ignore[arg-type]
    shares = []
    for rule in ("exact", "near"):
        hits = frames = 0
        for video in labels.videos.values():
            times = np.arange(int(video.duration * fps)) / fps
            hits += frame_targets(times, chosen_annotator(video), rule).sum()  # type: ignore[arg-type]
            frames += len(times)
        shares.append(float(hits / frames))
    # The figures that were known before are of another grid of frames: they agree to half a point.
    assert shares[0] == pytest.approx(float(exact[:-1]) / 100, abs=0.005)
    assert shares[1] == pytest.approx(float(near[:-1]) / 100, abs=0.005)
