"""`ongebd split` and chapters of `ongebd convert`: names, pictures, and nothing of the user's overwritten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import pytest

from ongebd.cli import main
from ongebd.data import read_labels
from ongebd.output import JsonlWriter, RunEnd, RunHeader
from ongebd.types import Boundary, Epoch
from ongebd.video import VideoReader

TIMES = [1.0, 1.36, 3.0]


@pytest.fixture
def video(tmp_path: Path, make_video: Any, make_numbered: Any) -> Path:
    pictures = make_numbered(100)
    return Path(make_video(tmp_path / "Müsik $1.mp4", pictures, audio="last", options={"g": "25"}))


@pytest.fixture
def results(video: Path) -> Path:
    return found(video)


def found(video: Path, settings: dict[str, Any] | None = None, end: float = 4.0) -> Path:
    path = video.with_name("found.jsonl")
    writer = JsonlWriter(path, RunHeader(str(video), "m", settings or {}, 96, 64, "1", rate="25"))
    for time in TIMES:
        writer.boundary(Boundary(time, time, time, 1.0))
    writer.close(RunEnd(True, end, 100, 3))
    return path


def frames(path: Path) -> int:
    with VideoReader(path) as reader:
        return len(list(reader))


def test_copied_parts_begin_at_key_frames_and_that_is_said(video: Path, results: Path, capsys: Any):
    out = video.parent / "parts"
    assert main(["split", str(video), str(results), "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == [f"Müsik $1-Scene-00{n}.mp4" for n in (1, 2, 3)]
    assert [frames(path) for path in sorted(out.iterdir())] == [25, 50, 25]
    said = capsys.readouterr().err
    assert "copied; cuts moved to key frames by up to 0.360 s (--exact" in said


def test_exact_parts_begin_at_the_boundaries(video: Path, results: Path, capsys: Any):
    out = video.parent / "parts"
    arguments = ["split", str(video), str(results), "--out", str(out), "--exact", "--save-images", "2"]
    assert main([*arguments, "--name", "$VIDEO_NAME from $START_TIME $SCENE_NUMBER"]) == 0
    parts = sorted(out.glob("*.mp4"))
    assert [frames(path) for path in parts] == [25, 9, 41, 25]
    assert parts[1].name == "Müsik $1 from 0-00-01.000 002.mp4"
    assert len(list(out.glob("*.jpg"))) == 8
    assert parts[1].with_name(f"{parts[1].stem}-02.jpg").exists()
    assert "4 segments in 4 parts into" in capsys.readouterr().err


def test_a_part_of_a_video_is_split_without_what_lies_around_it(video: Path):
    results, out = found(video, {"start": 0.52, "end": 3.4}, 3.4), video.parent / "parts"
    assert main(["split", str(video), str(results), "--out", str(out), "--exact"]) == 0
    assert [frames(path) for path in sorted(out.iterdir())] == [12, 9, 41, 10]


def test_boundaries_within_a_frame_are_one_cut(video: Path, monkeypatch: Any):
    monkeypatch.setattr(f"{__name__}.TIMES", [1.0, 1.001, 1.002, 3.0])
    out = video.parent / "parts"
    assert main(["split", str(video), str(found(video)), "--out", str(out), "--exact", "-q"]) == 0
    assert [frames(path) for path in sorted(out.iterdir())] == [25, 50, 25]


@pytest.mark.parametrize("form", ["edl", "scenes"])
def test_lists_of_other_programs_say_where_to_cut_too(video: Path, results: Path, form: str):
    cuts = video.with_name(f"cuts.{'csv' if form == 'scenes' else form}")
    assert main(["convert", str(results), str(cuts), "--format", form]) == 0
    if form == "edl":
        cuts.write_text("\n".join(line for line in cuts.read_text().splitlines() if "ongebd" not in line))
    out = video.parent / "parts"
    assert main(["split", str(video), str(cuts), "--out", str(out), "--exact", "-q"]) == 0
    assert [frames(path) for path in sorted(out.iterdir())] == [25, 9, 41, 25]


def test_nothing_is_overwritten(video: Path, results: Path, capsys: Any):
    before = video.read_bytes()
    mine = video.with_name(f"{video.stem}-Scene-002.mp4")
    mine.write_text("mine")
    arguments = ["split", str(video), str(results), "--out", str(video.parent)]
    assert main(arguments) == 2
    assert "already exists" in capsys.readouterr().err
    assert main([*arguments, "--name", "$VIDEO_NAME", "--force"]) == 2
    assert main(["convert", str(results), str(video), "--force"]) == 2
    assert "is the source" in capsys.readouterr().err.splitlines()[-1]
    assert (mine.read_text(), video.read_bytes()) == ("mine", before)
    assert main([*arguments, "--force"]) == 0
    assert frames(mine) == 50


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("$X", "use $VIDEO_NAME"),
        ("a/$SCENE_NUMBER", "a plain name"),
        ("x", "the same name"),
        ("$", "$$ for a dollar"),
    ],
)
def test_a_bad_template_is_one_line(video: Path, results: Path, name: str, complaint: str, capsys: Any):
    assert main(["split", str(video), str(results), "--out", str(video.parent / "o"), "--name", name]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert complaint in line
    assert not (video.parent / "o").exists()


def test_a_clock_that_breaks_is_refused(video: Path, results: Path, capsys: Any):
    writer = JsonlWriter(results, RunHeader(str(video), "m", {}, 96, 64, "1", rate="25"))
    writer.epoch(Epoch(1, 2.0, "the clock stepped back"))
    writer.close(RunEnd(True, 4.0, 100, 0))
    for command in (
        ["split", str(video), str(results), "--out", "o"],
        ["convert", str(results), str(results) + ".mp4"],
    ):
        assert main(command) == 2
        assert "its clock breaks at 2.000 s" in capsys.readouterr().err


def test_a_full_disk_leaves_no_half_part(video: Path, results: Path, capsys: Any, monkeypatch: Any):
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ongebd.video.cutting._chapter_list", full)
    out = video.parent / "parts"
    assert main(["split", str(video), str(results), "--out", str(out)]) == 2
    assert "can't write" in (said := capsys.readouterr().err)
    assert "No space left on device" in said
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".mov"])
def test_chapters_go_into_a_copy_that_ffprobe_and_we_can_read(
    video: Path, results: Path, suffix: str, ffprobe: Any
):
    target = video.with_name(f"with chapters{suffix}")
    assert main(["convert", str(results), str(target)]) == 0
    told = ffprobe(target, "-show_chapters")["chapters"]
    assert [round(float(one["start_time"]), 2) for one in told] == [0, *TIMES]
    assert list(read_labels(target).videos["with chapters"].boundaries[0]) == pytest.approx(TIMES, abs=0.001)
    with av.open(str(video)) as old, av.open(str(target)) as new:
        kinds = [
            [stream.codec_context.name for stream in file.streams if stream.type != "data"]
            for file in (old, new)
        ]
    assert kinds[0] == kinds[1]
