"""Where `watch` writes: never over a source, never half, and on a full disk whole records or none."""

from __future__ import annotations

import dataclasses
import errno
import io
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ongebd.cli import main
from ongebd.cli.watch import WatchOptions
from ongebd.output.jsonl import read_jsonl

from .conftest import our_threads

QUIET = ["-m", "window-mean", "-q"]
WALL = 1_795_852_800.25
GUIDE = Path(__file__).parents[2] / "docs" / "live.md"
NUMBERS = [field for field in dataclasses.fields(WatchOptions) if str(field.type).startswith("float")]


@pytest.fixture(scope="module")
def film(make_video, make_scene, tmp_path_factory):
    """Four scenes of 1.2 s."""
    pictures = [make_scene(n // 30, 96, 64) for n in range(120)]
    return make_video(tmp_path_factory.mktemp("films") / "film.mp4", pictures)


@pytest.fixture
def place(film, tmp_path, monkeypatch):
    """The working folder: a film and its other names, an empty film, a folder with a file in it."""
    (tmp_path / "film.mp4").write_bytes(film.read_bytes())
    (tmp_path / "empty.mp4").write_bytes(b"")
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "mine.txt").write_text("mine")
    (tmp_path / "seen.jsonl").write_text("earlier\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def all_of(folder):
    """Every path below a folder, and what is in it."""
    return {
        path.relative_to(folder): path.read_bytes() if path.is_file() else path.lstat().st_mode
        for path in folder.rglob("*")
    }


def refused(place, capfd, *arguments):
    """What a refusal says: one line, with nothing touched."""
    before = all_of(place)
    assert main(["watch", *QUIET, *arguments]) == 2
    said, trouble = capfd.readouterr()
    assert (said, trouble.count("\n")) == ("", 1), trouble
    assert all_of(place) == before
    assert not our_threads()
    return trouble


@pytest.mark.skipif(os.name == "nt", reason="links")
@pytest.mark.parametrize("option", ["--jsonl", "--thumbnails", "--clips"])
@pytest.mark.parametrize(
    "sources",
    [["film.mp4"], ["door=film.mp4"], ["camera:0", "film.mp4"], ["empty.mp4", "door=./film.mp4"], ["-"]],
)
@pytest.mark.parametrize("name", ["film.mp4", "pictures/../film.mp4", "hard", "soft"])
def test_a_source_is_never_written_over(place, capfd, monkeypatch, option, sources, name):
    os.link("film.mp4", "hard")
    Path("soft").symlink_to("film.mp4")
    with Path("film.mp4").open() as redirected:
        monkeypatch.setattr("sys.stdin", redirected)
        trouble = refused(place, capfd, *sources, option, name)
    one = "the source itself" if len(sources) == 1 else "the source"
    assert trouble.startswith(f"ongebd: {name} is {one}")
    assert trouble.endswith(f" and would be overwritten; write elsewhere, see {option}\n")


@pytest.mark.skipif(os.name == "nt", reason="links and pipes")
@pytest.mark.parametrize("name", ["pictures", "link", "pipe", "/dev/null"])
def test_what_is_no_file_is_not_put_aside_for_records(place, capfd, name):
    Path("link").symlink_to("pictures")
    os.mkfifo("pipe")
    assert f"--jsonl {name} is not a file" in refused(place, capfd, "film.mp4", "--jsonl", name)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--clips", "empty.mp4"], "--clips empty.mp4 is not a folder"),
        (["--thumbnails", "empty.mp4"], "--thumbnails empty.mp4 is not a folder"),
        (["--clips", "empty.mp4/x"], "can't use empty.mp4/x"),
        (["--clips", "x" * 300], "name another"),
        (["--clips", "seen.jsonl"], "is not a folder"),
        (["--thumbnails", "seen.jsonl/x"], "--jsonl seen.jsonl is where --thumbnails needs a folder"),
        (["--clips", "new", "--clips-size", "1k"], "--clips-size must be at least 1M"),
        (["--thumbnails", "new", "--clips", "new", "--clips-size", "1k"], "--clips-size must be at least 1M"),
        (["--thumbnails-size", "much"], "give a size"),
        (["--thumbnails-size", "9" * 5000], "give a size"),
        (["--jsonl-size", "1"], "jsonl_size must be at least 1024"),
        (["--jsonl-files", "-1"], "jsonl_files must be at least 0"),
        (["--queue", "0"], "queue must be at least 1"),
        (["--queue", "1" + 20 * "0"], "queue must be at least 1 and at most 100000"),
        (["--retries", "-1"], "retries must be at least 0"),
        (["--exec", "echo {x}"], "unknown field {x}; known are {time}"),
        (["--exec", "echo 'x"], "No closing quotation"),
        (["--exec", "no-such-program-here {time}"], "can't find the program no-such-program-here"),
        (["--serve", "0.0.0.0:0"], "set ONGEBD_TOKEN"),
        (["--serve", "0.0.0.0:0", "--token", "short"], "the token needs at least 8"),
        (["--serve", "9" * 5000], "give [HOST:]PORT"),
        (["--serve", "99999"], "the port must be from 0 to 65535"),
        (["--serve", "elsewhere"], "give [HOST:]PORT"),
        (["--exec", "echo {clip}"], "--exec: {clip} needs --clips FOLDER"),
        (["--read-timeout", "0"], "read_timeout must be"),
        (["--clip-before", "-1"], "clip_before must be at least 0"),
        (["--clip-after", "600"], "clip_after must be"),
        (["--webhook", "ftp://x"], "not an http or https URL"),
        (["--webhook", "http://"], "--webhook"),
        (["--webhook", "http://[::1"], "--webhook"),
        (["--keep", "empty.mp4"], "--keep empty.mp4 is not a folder"),
        (["--keep", "new", "--keep-size", "1k"], "--keep-size must be at least 1M"),
        (["--keep", "seen.jsonl/x"], "--jsonl seen.jsonl is where --keep needs a folder"),
        (["--notify", "nope://secret"], "--notify nope://***: Apprise doesn't know this kind of address"),
        (["--mqtt", "http://me:secret@host"], "--mqtt http://***@host: give mqtt://HOST"),
        (["--sreve"], "--sreve"),
    ],
)
def test_a_refusal_leaves_no_file_begun_and_none_put_aside(place, capfd, arguments, says):
    if "--serve" in arguments:
        pytest.importorskip("uvicorn")
        pytest.importorskip("prometheus_client")
    assert says in refused(place, capfd, "film.mp4", "--jsonl", "seen.jsonl", *arguments)


def test_two_outputs_that_are_new_cannot_be_one_place(place, capfd):
    assert "needs a folder" in refused(place, capfd, "film.mp4", "--jsonl", "new", "--clips", "./new")
    assert "needs a folder" in refused(place, capfd, "film.mp4", "--jsonl", "new", "--clips", "new/er")


@pytest.mark.parametrize("value", ["nan", "inf", "-1"])
@pytest.mark.parametrize("field", NUMBERS, ids=lambda field: field.name)
def test_no_number_is_taken_unchecked(place, capfd, field, value):
    option = f"--{field.name.replace('_', '-')}"
    assert f"not {value}" in refused(place, capfd, "film.mp4", "--jsonl", "seen.jsonl", option, value)


class Disk(io.FileIO):
    """A disk that is full after some writes."""

    left = 10**9

    def write(self, data):
        if Disk.left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        Disk.left -= 1
        return super().write(data)


@pytest.fixture
def disk(monkeypatch):
    monkeypatch.setattr("ongebd.output.writer.io.FileIO", Disk)
    monkeypatch.setattr(Disk, "left", 10**9)
    return Disk


def test_records_that_could_not_be_written_are_told_in_the_status(disk, place, capfd):
    disk.left = 2  # the first lines
    assert main(["watch", "film.mp4", *QUIET, "--jsonl", "new.jsonl"]) == 2
    assert "can't write new.jsonl: No space left on device" in capfd.readouterr().err
    assert len(Path("new.jsonl").read_text().splitlines()) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full disk")
def test_lines_that_could_not_be_written_are_told_in_the_status(place):
    command = [sys.executable, "-m", "ongebd", "watch", "film.mp4", "-m", "window-mean", "--jsonl", "new"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert ended.returncode == 2
    assert "can't write to standard output: No space left on device" in ended.stderr
    assert read_jsonl("new").complete  # nothing else is held up


@pytest.mark.parametrize(
    ("source", "says"),
    [("empty.mp4", "empty.mp4: is empty"), ("door=empty.mp4", "door: empty.mp4: is empty")],
)
def test_a_source_that_is_refused_is_named_once(place, capfd, source, says):
    assert main(["watch", source, *QUIET]) == 2
    assert capfd.readouterr().err.startswith(f"ongebd: {says}")


@pytest.mark.parametrize("rate", [["--source-fps", "50"], ["--fps", "12.5"], []])
def test_a_source_without_timestamps_has_the_rate_that_detect_gives_it(make_video, make_scene, place, rate):
    raw = make_video(place / "raw.h264", [make_scene(n // 30, 96, 64) for n in range(150)], container="h264")
    assert main(["detect", str(raw), "-q", "-m", "clock", *rate, "--out", ".", "--stem", "detected"]) == 0
    assert main(["watch", str(raw), "-q", "-m", "clock", *rate, "--jsonl", "watched.jsonl"]) == 0
    detected, watched = read_jsonl("detected.jsonl"), read_jsonl("watched.jsonl")
    assert (
        list(map(dataclasses.astuple, detected.boundaries))
        == list(map(dataclasses.astuple, watched.boundaries))
        != []
    )


def test_updates_of_streams_with_the_same_times_are_read_apart(place):
    assert main(["watch", "a=film.mp4", "b=film.mp4", *QUIET, "--jsonl", "both.jsonl"]) == 0
    path = Path("both.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    updates = [line for line in lines if line["type"] == "update"]
    for peak, line in enumerate(updates):
        line["peak"] = peak
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert len({one.peak for one in read_jsonl(path).boundaries}) == len(updates) > 1


@pytest.mark.parametrize("name", ["film.mp4", "gone.mp4"])
def test_the_example_of_the_guide_tells_everything_and_ends(place, capfd, name):
    (example,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    given_sources = '["door=rtsp://…", "yard=udp://:5000"]'
    assert given_sources in example
    code = example.replace(given_sources, f'["film.mp4", "other={name}"], model="window-mean"')
    thread = threading.Thread(target=exec, args=(code, {}), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    said = capfd.readouterr().out
    onsets, ends = said.count("Onset("), said.count("Found(")
    assert main(["watch", "film.mp4", *QUIET, "--jsonl", "watched.jsonl"]) == 0
    films = 2 if name == "film.mp4" else 1
    assert onsets == ends == films * len(read_jsonl("watched.jsonl").boundaries) > 0
