"""Composed videos: every label is a visible change at its very frame, and nothing else is labelled."""

from __future__ import annotations

import json
import operator
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.cli import main
from ongebd.common.processes import side_by_side
from ongebd.data import read_labels
from ongebd.errors import ConfigError, LabelError, OngebdError, SourceError
from ongebd.lab.composites import (
    BOUNDARY_KINDS,
    DISTRACTOR_KINDS,
    ComposeConfig,
    compose,
    plan_videos,
    read_clips,
    read_composites,
    render,
)
from ongebd.lab.composites.clips import Clip, ClipLibrary, Shot
from ongebd.lab.composites.grouping import parted
from ongebd.lab.composites.plan import VideoPlan
from ongebd.video import VideoReader

rendering = import_module("ongebd.lab.composites.render")  # the room has a function of that name
Maker = Callable[..., Any]
MADE_KINDS = [kind for kind in BOUNDARY_KINDS if kind != "natural"]


@pytest.fixture(scope="module")
def library(clip_folder: Path) -> ClipLibrary:
    return read_clips([clip_folder])


def small(**settings: Any) -> ComposeConfig:
    return ComposeConfig(**{"size": 64, "seconds": "4,6", "split": "all", "videos": 1, **settings})


def pictures(plan: VideoPlan) -> npt.NDArray[np.float32]:
    return np.stack(list(render(plan))).astype(np.float32)


def apart(shown: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Mean change to each frame from the one before; the first is 0."""
    steps: npt.NDArray[np.float32] = np.abs(np.diff(shown, axis=0)).mean((1, 2, 3))
    return np.concatenate([[0.0], steps])


@pytest.mark.parametrize("kind", MADE_KINDS)
def test_each_kind_of_boundary_is_seen_at_its_labelled_frame(kind: str, library: ClipLibrary) -> None:
    plan = plan_videos(library, small(boundaries=kind, distractors="none", seed=3))[0]
    assert plan.joins
    assert {join.kind for join in plan.joins} == {kind}
    shown = pictures(plan)
    assert len(shown) == plan.frames
    step = apart(shown)
    for join in plan.joins:
        at = join.frame
        if kind in ("cut", "jump", "action", "framing"):
            assert step[at] > 2.5 * np.median(step[max(1, at - 6) : at])
            assert step[at] == step[at - 6 : at + 6].max()
        elif kind == "dissolve":
            ends = (shown[join.first - 1] + shown[join.first + join.frames]) / 2
            assert np.abs(shown[at] - ends).mean() < np.abs(shown[join.first - 1] - ends).mean()
            assert join.frames % 2 == 1
            assert 0.3 <= join.frames / 24 <= 2
        elif kind == "fade":
            assert shown[at].std() < 1
            assert shown[at].mean() == pytest.approx(255 if join.white else 0, abs=1)
        elif kind == "stop":
            assert step[at - 6 : at].min() > 0
            assert step[at + 1 : at + 36].max() == 0
        elif kind == "start":
            assert step[at - 35 : at].max() == 0
            assert step[at + 1 : at + 7].max() > 0
        elif kind == "reverse":
            assert all((shown[at + each] == shown[at - each]).all() for each in range(1, 10))
        else:
            before, after = np.median(step[at - 12 : at]), np.mean(step[at + 1 : at + 13])
            assert max(before, after) > 1.6 * min(before, after)


@pytest.mark.parametrize("kind", DISTRACTOR_KINDS)
def test_a_distractor_is_seen_in_its_interval_alone_and_has_no_label(kind: str, library: ClipLibrary) -> None:
    motion = "any" if kind == "freeze" else "still"
    config = small(boundaries="none", distractors=kind, motion=motion, seconds="4,5", seed=1)
    plan = plan_videos(library, config)[0]
    assert not plan.joins
    assert {each.kind for each in plan.distractors} == {kind}
    shown, clean = pictures(plan), pictures(replace(plan, distractors=()))
    differ = np.abs(shown - clean).mean((1, 2, 3))
    inside = np.zeros(plan.frames, bool)
    for each in plan.distractors:
        inside[each.first : each.stop] = True
        assert differ[each.first : each.stop].max() > 0.5
        if kind == "freeze":
            assert (shown[each.first : each.stop] == shown[each.first]).all()
            assert each.stop - each.first < 0.4 * 24
    assert differ[~inside].max() == 0


def test_distractors_keep_clear_of_boundaries(library: ClipLibrary) -> None:
    for plan in plan_videos(library, small(videos=20, seconds="8,20")):
        for each in plan.distractors:
            assert 0 < each.first < each.stop < plan.frames
            for join in plan.joins:
                assert each.stop + 9 <= join.first or each.first >= join.first + join.frames + 9


def test_boundaries_keep_their_distance(library: ClipLibrary) -> None:
    for plan in plan_videos(library, small(videos=20, seconds="8,20")):
        marks = [0, *(join.frame for join in plan.joins), plan.frames]
        assert min(np.diff(marks)) >= 1.2 * 24
        assert 8 <= plan.duration <= 20.05


def test_order_of_files_and_number_of_processes_change_no_byte(clip_folder: Path, tmp_path: Path) -> None:
    files = sorted(clip_folder.iterdir())
    config = small(videos=2, seconds="3,4", seed=2)
    for name, clips, workers in (("one", files, 1), ("two", files[::-1], 2)):
        made = [video.id for video in compose(read_clips(clips), config, tmp_path / name, workers=workers)]
        assert made == ["composite-0000", "composite-0001"]
    one, two = ({file.name: file.read_bytes() for file in (tmp_path / x).iterdir()} for x in ("one", "two"))
    assert one == two
    assert len(one) == 4


def test_more_videos_begin_with_the_same_ones(library: ClipLibrary) -> None:
    assert plan_videos(library, small(videos=3)) == plan_videos(library, small(videos=8))[:3]
    assert plan_videos(library, small(seed=1)) != plan_videos(library, small(seed=2))


def fake_clip(name: str, group: str) -> Clip:
    none = np.zeros(0)
    return Clip(
        name=name,
        path=Path(name),
        width=4,
        height=4,
        times=none,
        pts=None,
        luma=np.zeros((0, 32, 32), np.uint8),
        motion=none,
        steps=none,
        shots=(),
        calm=(),
        natural=none,
        group=group,
        sha256="",
    )


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=30),
    st.integers(0, 1000),
    st.randoms(use_true_random=False),
)
def test_no_clip_or_group_is_on_both_sides_of_a_split(groups: list[int], seed: int, random: Any) -> None:
    clips = [fake_clip(f"clip-{place}", f"group-{group}") for place, group in enumerate(groups)]
    shares = {"train": 0.7, "val": 0.15, "test": 0.15}
    library = ClipLibrary({clip.name: clip for clip in clips})
    if len(set(groups)) < 3:
        with pytest.raises(ConfigError, match="3 parts need at least 3 groups"):
            parted(library, shares, seed)  # type: ignore[arg-type]
        return
    parts = parted(library, shares, seed)  # type: ignore[arg-type]
    assert sorted(clip.name for part in parts.values() for clip in part) == sorted(library.clips)
    sides = [{clip.group for clip in part} for part in parts.values()]
    assert all(sides)
    assert sum(map(len, sides)) == len(set(groups))
    random.shuffle(clips)
    again = parted(ClipLibrary({clip.name: clip for clip in clips}), shares, seed)  # type: ignore[arg-type]
    assert {part: [c.name for c in own] for part, own in again.items()} == {
        part: [c.name for c in own] for part, own in parts.items()
    }


def test_each_video_is_made_of_clips_of_its_own_part(clip_folder: Path, tmp_path: Path) -> None:
    library = read_clips([clip_folder])
    config = small(videos=4, split="0.5,0.25,0.25", boundaries="framing,fade", seconds="3,4")
    list(compose(library, config, tmp_path / "made"))
    made = read_composites(tmp_path / "made")
    assert {video.part for video in made.videos.values()} == {"train", "val", "test"}
    for video in made.videos.values():
        assert {made.clips[name]["part"] for name in video.clips} == {video.part}
    for part in ("train", "val", "test"):
        ids = (tmp_path / "made" / f"{part}.csv").read_text().split()
        assert ids == ["id", *(video.id for video in made.videos.values() if video.part == part)]


def test_labels_are_those_of_the_official_schema_at_the_frames_of_the_file(
    library: ClipLibrary, tmp_path: Path
) -> None:
    config = small(videos=2, boundaries="cut", distractors="flash", seed=5)
    videos = list(compose(library, config, tmp_path / "made"))
    labels = read_labels(tmp_path / "made" / "labels.json", "custom")
    made = read_composites(tmp_path / "made")
    assert list(made.videos.values()) == videos
    assert {each.kind for video in videos for each in video.distractors} == {"flash"}
    for video in videos:
        label = labels.videos[video.id]
        assert label.boundaries[0].tolist() == [each.time for each in video.boundaries]
        assert made.labels().videos[video.id].boundaries[0].tolist() == label.boundaries[0].tolist()
        with VideoReader(video.path) as reader:
            read = list(reader)
        assert len(read) == video.frames == (label.last_frame or 0) + 1
        assert label.duration == pytest.approx(float(reader.duration), abs=1e-6)
        times = [round(float(frame.time), 6) for frame in read]
        step = apart(np.stack([frame.rgb for frame in read]).astype(np.float32))
        for each in video.boundaries:
            at = times.index(each.time)  # on the file's own grid
            assert step[at] > 3 * np.median(step)


def test_cuts_inside_a_source_stay_out_of_every_piece(
    clip_folder: Path, tmp_path: Path, make_video: Maker, moving_scene: Maker
) -> None:
    two = [*moving_scene(31, 60), *moving_scene(32, 60)]
    make_video(tmp_path / "two.mp4", two, rate=24)
    library = read_clips([tmp_path / "two.mp4"])
    assert [(shot.start, shot.end) for shot in library.clips["two.mp4"].shots] == [
        (0.0, pytest.approx(59 / 24)),
        (pytest.approx(60 / 24), pytest.approx(5.0)),
    ]
    for plan in plan_videos(library, small(videos=5, boundaries="framing,jump", seconds="3,4")):
        for segment in plan.segments:
            first, last = (segment.source_time(at, plan.fps) for at in (segment.first, segment.stop - 1))
            assert (first < 2.45) == (last < 2.45)


def test_labelled_boundaries_are_kept_as_natural_or_avoided(clip_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    path.write_text(json.dumps({"solo": {"duration": 5.0, "boundaries": [[2.5], [2.6, 4.5], [2.4]]}}))
    solo = clip_folder / "solo.mp4"
    kept = read_clips([solo], labels=path)
    assert kept.clips["solo.mp4"].natural.tolist() == pytest.approx([2.5])
    plan = plan_videos(kept, small(boundaries="natural", seconds="3.5,3.5"))[0]
    segment = plan.segments[0]
    for frame in plan.naturals:
        assert segment.source_time(frame, plan.fps) == pytest.approx(2.5, abs=1 / 24)
    with pytest.raises(ConfigError, match="natural is not among the kinds"):
        plan_videos(kept, small(boundaries="cut"))
    avoided = read_clips([solo], labels=path, keep_labelled=False)
    for shot in avoided.clips["solo.mp4"].shots:
        assert shot.end <= 2.2 or shot.start >= 2.8


def test_clips_of_one_setting_are_found_by_name_and_picture_or_given(
    clip_folder: Path, tmp_path: Path
) -> None:
    groups = read_clips([clip_folder]).groups()
    assert [clip.name for clip in groups["room_1.mp4"]] == ["room_1.mp4", "room_2.mp4"]
    assert len(groups) == 5
    table = tmp_path / "groups.csv"
    table.write_text("file,group\nsolo.mp4,mine\nwide.mp4,mine\ngone,mine\n")
    given_ones = read_clips([clip_folder], groups=table)
    assert {clip.name for clip in given_ones.groups()["mine"]} == {"solo.mp4", "wide.mp4"}
    assert any("1 names match no clip, such as 'gone'" in line for line in given_ones.warnings)


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("g.csv", "file,group\nsolo,one\nwide, \n", "line 3: the file or the group is empty"),
        ("g.csv", "file,group\n,one\n", "line 2: the file or the group is empty"),
        ("g.csv", "file,group\nsolo,one\nsolo,two\n", "line 3: 'solo' has two groups"),
        ("g.csv", "clip,group\nsolo,one\n", "column 'file' is missing"),
        ("g.csv", "\ufeff", "the file is empty"),
    ],
)
def test_groups_that_say_nothing_are_refused(
    clip_folder: Path, tmp_path: Path, name: str, content: str, complaint: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(LabelError, match=complaint):
        read_clips([clip_folder / "solo.mp4", clip_folder / "wide.mp4"], groups=tmp_path / name)


def test_clips_whose_names_are_not_utf_8_are_composed_like_others(
    clip_folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "clips"
    shutil.copytree(clip_folder, folder)
    odd = os.fsdecode(b"caf\xe9_\xff.mp4")
    (folder / "solo.mp4").rename(folder / odd)
    library = read_clips([folder])
    config = small(videos=3, split="0.4,0.3,0.3", seconds="3,4", boundaries="cut,framing")
    made = list(compose(library, config, tmp_path / "made"))
    read = read_composites(tmp_path / "made")
    assert odd in read.clips
    assert list(read.videos.values()) == made
    assert any(odd in video.clips for video in made)
    command = ["compose", str(folder), "--out", str(tmp_path / "again"), "--videos", "3", "--size", "64"]
    assert main([*command, "--seconds", "3,4", "--split", "0.4,0.3,0.3"]) == 0
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("sought", ["right", "other pictures", "nothing"])
def test_late_frames_are_the_same_whether_the_file_was_sought_in_or_not(
    sought: str, clip_folder: Path, library: ClipLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = library.clips["other.mkv"]
    numbers = [122, 122, 125, 143]
    honest = rendering._sought

    def seek(*arguments: Any) -> Iterator[tuple[int, Any]]:
        shift = {"right": 0, "other pictures": 40, "nothing": 1000}[sought]
        yield from ((number + shift, frame) for number, frame in honest(*arguments))

    monkeypatch.setattr(rendering, "_sought", seek)
    found = list(rendering.pictures_at(clip, numbers, 72))
    plain = list(rendering.pictures_at(replace(clip, pts=None), numbers, 72))
    assert all((one == other).all() for one, other in zip(found, plain, strict=True))
    backwards = list(rendering.pictures_at(clip, numbers[::-1], 72))
    assert all((one == other).all() for one, other in zip(found, backwards[::-1], strict=True))


def test_unreadable_clips_are_reported_and_the_others_go_on(clip_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "clips"
    shutil.copytree(clip_folder, folder)
    (folder / "broken.mp4").write_bytes(b"no video at all")
    (folder / "notes.txt").write_text("not even named like one")
    library = read_clips([folder])
    assert len(library.clips) == 6
    assert [line.split(": ")[0] for line in library.warnings] == [str(folder / "broken.mp4")]
    with pytest.raises(SourceError, match="none of the clips can be used"):
        read_clips([folder / "broken.mp4"])


def test_a_source_of_few_frames_a_second_is_refused(
    tmp_path: Path, make_video: Maker, moving_scene: Maker
) -> None:
    make_video(tmp_path / "slow.mp4", moving_scene(1, 12), rate=3)
    with pytest.raises(SourceError, match="gives 3 frames/s"):
        read_clips([tmp_path / "slow.mp4"])


def test_stopped_early_the_labels_list_the_finished_videos_alone(
    library: ClipLibrary, tmp_path: Path
) -> None:
    made = compose(library, small(videos=3, seconds="3,4"), tmp_path / "made")
    next(made)
    made.close()
    assert sorted(file.name for file in (tmp_path / "made").iterdir()) == [
        "composite-0000.mp4",
        "composites.json",
        "labels.json",
    ]
    assert list(read_composites(tmp_path / "made").videos) == ["composite-0000"]
    assert len(read_labels(tmp_path / "made" / "labels.json", "custom")) == 1


def test_processes_keep_the_order_and_hand_on_what_goes_wrong() -> None:
    assert list(side_by_side(operator.neg, list(range(9)), 2)) == [-number for number in range(9)]
    with pytest.raises(OngebdError, match="No such file"):
        list(side_by_side(read_composites, ["/nowhere/1", "/nowhere/2"], 2))
    with pytest.raises(OngebdError, match="a worker died"):
        list(side_by_side(os._exit, [3, 3], 2))


def test_a_clip_that_changed_since_it_was_read_is_refused(clip_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(clip_folder, tmp_path / "clips")
    library = read_clips([tmp_path / "clips"])
    for file in (tmp_path / "clips").iterdir():
        file.write_bytes(b"gone")
    with pytest.raises(SourceError):
        list(compose(library, small(), tmp_path / "made"))
    assert not (tmp_path / "made").exists()


def test_a_folder_that_is_not_empty_is_left_alone(library: ClipLibrary, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(OngebdError, match="is not empty"):
        list(compose(library, small(), tmp_path))
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"videos": 0}, "videos must be at least 1"),
        ({"minutes": 0.0}, "minutes must be above 0"),
        ({"size": 65}, "even number"),
        ({"fps": 1000}, "fps must be at least 8"),
        ({"crf": 52}, "crf must be at least 0 and at most 51"),
        ({"seconds": "9,8"}, "seconds must be the shortest and the longest"),
        ({"split": "0.5,0.2,0.2"}, "three shares that sum to 1"),
        ({"boundaries": "cut,cot"}, "unknown kind 'cot'"),
        ({"distractors": "blur"}, "unknown kind 'blur'"),
        ({"motion": "still"}, "set boundaries to none"),
        ({"motion": "still", "boundaries": "none"}, "hides a freeze"),
    ],
)
def test_settings_out_of_range_are_refused(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        small(**setting)


def test_too_little_material_is_refused_with_advice(library: ClipLibrary) -> None:
    with pytest.raises(ConfigError, match="give no video of 60 s with --motion calm"):
        plan_videos(library, small(boundaries="none", seconds="60,80"))
    one = ClipLibrary({"solo.mp4": library.clips["solo.mp4"]})
    with pytest.raises(ConfigError, match="give no video of 4 s with boundaries of cut"):
        plan_videos(one, small(boundaries="cut"))
    short = replace(library.clips["solo.mp4"], shots=(Shot(0, 0.6),))
    with pytest.raises(ConfigError):
        plan_videos(ClipLibrary({"solo.mp4": short}), small())


def test_a_damaged_truth_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabelError, match="No such file"):
        read_composites(tmp_path)
    for text in ("{}", '{"format": "ongebd composites 1", "videos": {"a": {}}, "clips": {}, "settings": {}}'):
        (tmp_path / "composites.json").write_text(text)
        with pytest.raises(LabelError, match="compose the videos again"):
            read_composites(tmp_path)
