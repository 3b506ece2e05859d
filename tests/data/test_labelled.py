"""Features and labels brought together, with a target for each frame."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from ongebd.data.label_dicts import TAPOS_INSTANCE
from ongebd.data.label_set import LabelSet, VideoLabels
from ongebd.data.labelled import LabelRule, chosen_annotator, frame_targets, label_videos, random_split
from ongebd.data.labels import read_labels
from ongebd.errors import LabelError
from synthetic import MemoryStore, MemoryVideo, SyntheticConfig, make_synthetic


def store_of(fps: float, **frames: int) -> MemoryStore:
    store = MemoryStore(4, fps)
    for name, count in frames.items():
        store.videos[name] = MemoryVideo(
            np.ones((count, 4), np.float16), np.arange(count) / fps, np.zeros(count, np.int32), count / fps
        )
    return store


def labels_of(dataset: str = "custom", **videos: list[float]) -> LabelSet:
    return LabelSet(
        {name: VideoLabels(name, 10.0, (np.array(times),)) for name, times in videos.items()}, dataset
    )


def test_videos_without_a_fellow_are_counted() -> None:
    found = label_videos(store_of(10, kitchen=20, garden=5), labels_of(kitchen=[1.0], street=[2.0]))
    assert [video.id for video in found.videos] == ["kitchen"]
    assert np.flatnonzero(found.videos[0].targets).tolist() == [10]
    assert found.notes == (
        "1 videos of the store have no labels and are left out",
        "1 labelled videos have no features and are left out",
    )


def test_kinetics_names_with_action_and_span_are_found() -> None:
    store = store_of(10, arm_wrestling__C4lCVBZ3ux0_000028_000038=9)
    found = label_videos(store, labels_of("kinetics-gebd", C4lCVBZ3ux0=[0.5]))
    assert found.videos[0].id == "C4lCVBZ3ux0"


def test_nothing_in_common_is_refused() -> None:
    with pytest.raises(LabelError, match="none of the 1 videos in the store"):
        label_videos(store_of(10, kitchen=20), labels_of(street=[2.0]))


INSTANCES = {
    "1y60SfvKbxY_s00002_2_500_4_500": [1.0],  # from 2.5 s to 4.5 s; its labels count from its own start
    "1y60SfvKbxY_s00002_5_000_6_000": [0.5],
}


def test_tapos_instances_are_cut_out_of_shots() -> None:
    store = store_of(6, **{"1y60SfvKbxY_s00002": 60})
    found = label_videos(store, labels_of("tapos", **INSTANCES))
    assert [video.id for video in found.videos] == list(INSTANCES)
    first, second = found.videos
    np.testing.assert_allclose(first.times, np.arange(13) / 6)
    assert np.flatnonzero(first.targets).tolist() == [6]
    np.testing.assert_allclose(second.times, np.arange(7) / 6)


def test_tapos_instances_that_are_stored_are_taken_as_they_are() -> None:
    name = "1y60SfvKbxY_s00002_2_500_4_500"
    found = label_videos(store_of(6, **{name: 12}), labels_of("tapos", **INSTANCES))
    assert [(video.id, len(video)) for video in found.videos] == [(name, 12)]
    assert found.notes == ("1 labelled videos have no features and are left out",)


def test_a_whole_tapos_video_or_another_instance_of_the_shot_is_never_cut() -> None:
    """The times in the ids count from the start of a shot, which the labels don't say."""
    for other in ("1y60SfvKbxY", "1y60SfvKbxY_s00003", "1y60SfvKbxY_s00002_7_000_9_000"):
        with pytest.raises(LabelError, match=r"instances or shots \(VIDEO_s00002\): cut these out"):
            label_videos(store_of(6, **{other: 60}), labels_of("tapos", **INSTANCES))


def test_times_in_ids_of_tapos_count_from_a_shot(shared: Path) -> None:
    by_shot, by_video = defaultdict(list), defaultdict(list)
    for name in read_labels(shared / "labels/tapos_gt_val.pkl").videos:
        found = TAPOS_INSTANCE.fullmatch(name)
        assert found is not None
        start, end = (float(found[part].replace("_", ".")) for part in ("from", "to"))
        by_shot[found["shot"]].append((start, end))
        by_video[found["shot"].rpartition("_")[0]].append((start, end))
    assert overlapping(by_shot) <= 1
    assert overlapping(by_video) > 5000


def overlapping(groups: dict[str, list[tuple[float, float]]]) -> int:
    pairs = (pair for spans in groups.values() for pair in combinations(sorted(spans), 2))
    return sum(second[0] < first[1] - 0.05 for first, second in pairs)


def test_the_split_is_by_id_and_seed_and_nothing_else() -> None:
    store, labels = make_synthetic(SyntheticConfig(videos=50, frames=30, event=(10, 12)))
    videos = label_videos(store, labels).videos
    training, validation = random_split(videos, 0.2, seed=3)
    assert (len(training), len(validation)) == (40, 10)
    assert not {v.id for v in training} & {v.id for v in validation}
    again = random_split(videos[::-1], 0.2, seed=3)[1]
    assert {v.id for v in again} == {v.id for v in validation}
    other = random_split(videos, 0.2, seed=4)[1]
    assert {v.id for v in other} != {v.id for v in validation}


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
