"""`detect` with a selection or a part, and `keyframes`, as a user meets them."""

from __future__ import annotations

import json
import subprocess
import sys

import av
import numpy as np
import pytest

import ongebd
from ongebd.cli import main
from ongebd.output import read_jsonl

OBD = ["--model", "window-mean"]
RATE = 12
SHOTS = (2, 3, 1.5, 4, 2.5)  # seconds


@pytest.fixture(scope="module")
def film(tmp_path_factory, make_video, make_scene):
    """Five shots; the second one is blurred but for a moment."""
    pictures = []
    for seed, seconds in enumerate(SHOTS):
        sharp = make_scene(seed)
        soft = (sharp.astype(np.float32) + np.roll(sharp, 1, 1)) / 2
        shown = [soft.astype(np.uint8) if seed == 1 else sharp] * int(RATE * seconds)
        shown[len(shown) // 2] = sharp
        pictures += shown
    path = tmp_path_factory.mktemp("film") / "film.ts"
    return make_video(path, pictures, rate=RATE, options={"g": "24", "keyint_min": "24"})


def lines(capfd, *arguments):
    assert main([*map(str, arguments)]) == 0
    out, err = capfd.readouterr()
    return out.splitlines(), err


def test_all_formats_hold_the_selection_and_nothing_that_was_found_is_lost(film, tmp_path, capfd):
    _, err = lines(capfd, "detect", film, *OBD, "--chapters", 3, "--out", tmp_path, "-f", "jsonl,csv,vtt,png")
    assert "2 boundaries of the 4 found in 13.000 s" in err
    recording = read_jsonl(tmp_path / "film.jsonl")
    times = [boundary.time for boundary in recording.boundaries]
    assert (len(times), times) == (2, sorted(times))
    assert sum(record["type"] == "found" for record in recording.others) == recording.end.found == 4
    assert recording.header.settings["chapters"] == 3
    rows = (tmp_path / "film.csv").read_text().splitlines()[1:]
    assert [float(row.partition(",")[0]) for row in rows] == times
    assert (tmp_path / "film.vtt").read_text().count("-->") == 3
    assert (tmp_path / "film.png").stat().st_size > 10_000


def test_no_segment_is_shorter_than_asked(film, capfd):
    out, _ = lines(capfd, "detect", film, *OBD, "--min-length", 2.4, "-q")
    assert [line[:9] for line in out] == ["0:00:05.0", "0:00:10.5"]


def test_a_part_is_told_with_the_times_of_the_whole(film, capfd, tmp_path):
    out, err = lines(capfd, "detect", film, *OBD, "--start", "0:00:03", "--duration", 6)
    assert [line[:9] for line in out] == ["0:00:05.0", "0:00:06.5"]
    assert "2 boundaries in 6.000 s of video" in err
    lines(capfd, "detect", film, *OBD, "--start", 4, "--end", 9, "--out", tmp_path)
    settings = read_jsonl(tmp_path / "film.jsonl").header.settings
    assert (settings["start"], settings["end"]) == (4, 9)


def test_a_pipe_is_told_at_once_within_its_rate_and_has_no_chapters(film):
    def piped(*options):
        command = [sys.executable, "-m", "ongebd", "detect", "-", *OBD, *map(str, options)]
        with film.open("rb") as file, subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE) as cat:
            return subprocess.run(command, stdin=cat.stdout, capture_output=True, text=True)

    told = piped("--min-length", 2.4)
    assert [line[:9] for line in told.stdout.splitlines()] == ["0:00:05.0", "0:00:10.5"]
    assert "2 boundaries of the 4 found" in told.stderr
    refused = piped("--chapters", 3)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "ongebd: standard input: chapters need a file, whose end is known; use --max-per-minute\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--min-scene-len", "0.6s"], "did you mean --min-length SECONDS?"),
        (["--detector=adaptive"], "did you mean --model NAME?"),
        (["-m", "0.6s"], "-m means --model: did you mean --min-length 0.6s?"),
        (["--chapters", "0"], "chapters must be at least 1"),
        (["--max-per-minute", "0"], "max_per_minute must be above 0"),
        (["--start", "1:75"], "start must be seconds or h:mm:ss"),
        (["--start", "9", "--end", "0:09"], "no video is left between 9 s and 9 s"),
        (["--end", "5", "--duration", "3"], "not both"),
        (["--start", "60"], "ends at 13.000 s, before the start at 60 s"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_write(film, arguments, said, capfd):
    assert main(["detect", str(film), *arguments]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err


def test_a_detection_has_a_sharp_picture_for_each_segment(film):
    found = ongebd.detect(film, "window-mean")
    shots = list(found.keyframes())
    assert [segment.start for segment, _ in shots] == pytest.approx([0, 2, 5, 6.5, 10.5], abs=0.05)
    assert all(one.start <= one.keyframe < one.end for one, _ in shots)
    assert {picture.shape for _, picture in shots} == {(240, 320, 3)}
    assert shots[1][0].keyframe == 3.5, "the sharp moment of a soft shot"
    fewer = [segment for segment, _ in found.keyframes(max=2)]
    assert len(fewer) == 2
    assert fewer == sorted(fewer, key=lambda one: one.start)


def test_key_frames_of_what_can_not_be_read_twice_are_refused(film):
    with film.open("rb") as file, pytest.raises(ongebd.ConfigError, match="name the file"):
        ongebd.detect(file, "window-mean", fps=2).keyframes()


def test_key_frames_stand_in_a_folder_with_a_list(film, tmp_path, capfd):
    _, err = lines(capfd, "keyframes", film, *OBD, "--out", tmp_path)
    assert "film.ts: 5 key frames, into" in err
    listed = json.loads((tmp_path / "film.keyframes.json").read_text())["keyframes"]
    assert [one["file"] for one in listed] == [f"film-{number:03}.jpg" for number in range(1, 6)]
    assert [one["end"] for one in listed] == pytest.approx([2, 5, 6.5, 10.5, 13], abs=0.05)
    for one in listed:
        with av.open(str(tmp_path / one["file"])) as picture:
            assert picture.streams.video[0].width == 320
    lines(capfd, "keyframes", film, *OBD, "--out", tmp_path, "--max", 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "film-001.jpg",
        "film-002.jpg",
        "film.keyframes.json",
    ], "the pictures of the earlier run are gone"


def test_key_frames_overwrite_nothing_of_others(film, tmp_path, capfd):
    (tmp_path / "film-notes.jpg").write_text("mine")
    for taken in ("film-002.jpg", "film.keyframes.json"):
        (tmp_path / taken).write_text("mine")
        assert main(["keyframes", str(film), *OBD, "--out", str(tmp_path)]) == 2
        assert f"{taken} already exists" in capfd.readouterr().err
        assert {path.read_text() for path in tmp_path.iterdir()} == {"mine"}
        (tmp_path / taken).unlink()
    (tmp_path / taken).write_text("mine")
    lines(capfd, "keyframes", film, *OBD, "--out", tmp_path, "--force")
    assert (tmp_path / "film-notes.jpg").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 7
