"""`ongebd compose`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ongebd.cli import main
from ongebd.lab.composites import read_composites

Maker = Callable[..., Any]


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory, make_video: Maker, make_scene: Maker) -> Path:
    """Three clips of 4 seconds in which nothing moves."""
    folder = tmp_path_factory.mktemp("clips")
    for seed in range(3):
        make_video(folder / f"{'abc'[seed]}.mp4", [make_scene(seed, 96, 72)] * 96, rate=24)
    return folder


QUICK = ("--size", 64, "--seconds", "3,5", "--boundaries", "cut,framing")


def run(*arguments: object) -> int:
    return main(["compose", *map(str, arguments)])


def test_what_is_composed_can_be_evaluated(
    clips: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "made"
    assert run(clips, "--out", out, "--videos", 3, "--split", "all", *QUICK) == 0
    printed, said = capfd.readouterr()
    assert printed == ""
    assert said.startswith("3 videos, ")
    assert f"into {out}" in said
    made = read_composites(out)
    assert sorted(file.name for file in out.iterdir()) == [
        *(f"{name}.mp4" for name in made.videos),
        "composites.json",
        "labels.json",
    ]
    found = {video.id: [each.time for each in video.boundaries] for video in made.videos.values()}
    (tmp_path / "found.json").write_text(json.dumps(found))
    paths = ("--labels", out / "labels.json", "--predictions", tmp_path / "found.json")
    assert main(["evaluate", *map(str, paths), "--resamples", "0", "--dataset", "custom"]) == 0
    assert "not read" not in capfd.readouterr().out


def test_each_distractor_alone_for_so_many_minutes(clips: Path, tmp_path: Path) -> None:
    out = tmp_path / "made"
    options = ("--boundaries", "none", "--distractors", "overlay", "--minutes", "0.1", "--split", "all")
    assert run(clips, "-o", out, "-q", "--size", 64, "--seconds", "3,4", *options) == 0
    videos = read_composites(out).videos.values()
    assert 6 <= sum(video.duration for video in videos) < 10
    assert not any(video.boundaries for video in videos)
    assert {each.kind for video in videos for each in video.distractors} == {"overlay"}


def test_an_unreadable_clip_is_reported_and_the_others_go_on(
    clips: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(b"x" * 100)
    arguments = (clips, bad, "-o", tmp_path / "made", "-q", "--videos", 1, "--split", "all", *QUICK)
    assert run(*arguments) == 0
    said = capfd.readouterr().err
    assert said.startswith(f"ongebd: {bad}: can't read it as a video")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "CLIPS is missing"),
        (("{clips}",), "--out is missing"),
        (("{tmp}/gone", "-o", "{tmp}/made"), "no such file or folder"),
        (("{tmp}/full", "-o", "{tmp}/made"), "has no video file in it"),
        (("{clips}", "-o", "{tmp}/full"), "is not empty"),
        (("{clips}", "-o", "{tmp}/full/a.txt"), "Not a directory"),
        (("{clips}", "-o", "{tmp}/made", "--boundaries", "cuts"), "unknown kind 'cuts'"),
        (("{clips}", "-o", "{tmp}/made", "--distractors", "rain"), "unknown kind 'rain'"),
        (("{clips}", "-o", "{tmp}/made", "--videos", "0"), "videos must be at least 1"),
        (("{clips}", "-o", "{tmp}/made", "--seconds", "8"), "such as 8,40"),
        (("{clips}", "-o", "{tmp}/made", "--split", "half"), "split must be train, val, test, all"),
        (("{clips}", "-o", "{tmp}/made", "--workers", "0"), "--workers must be at least 1"),
        (("{clips}", "-o", "{tmp}/made", "--labels", "{tmp}/no.json"), "No such file"),
        (("{clips}", "-o", "{tmp}/made", "--boundaries", "speed"), "give no video of 8 s"),
        (("{clips}/a.mp4", "-o", "{tmp}/made"), "3 parts need at least 3 groups of clips"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(
    arguments: tuple[str, ...], message: str, clips: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.txt").write_text("mine")
    assert run(*(each.format(clips=clips, tmp=tmp_path) for each in arguments)) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["a.txt"]
