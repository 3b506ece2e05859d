"""Where `watch` writes: never over a source, never half, and on a full disk whole records or none."""

from __future__ import annotations

import dataclasses
import errno
import io
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ongebd.cli import main
from ongebd.cli.watch import WatchOptions
from ongebd.errors import ConfigError, OngebdError
from ongebd.output import RunHeader
from ongebd.output.jsonl import read_jsonl
from ongebd.types import Boundary
from ongebd.watch import Found, Hub
from ongebd.watch.sinks import CommandSink, LineSink, PictureSink, RecordSink, Rotation

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
    assert main(["watch", *arguments, *QUIET]) == 2
    said, trouble = capfd.readouterr()
    assert (said, trouble.count("\n")) == ("", 1), trouble
    assert all_of(place) == before
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ongebd")]
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
    one = "the source itself" if len(sources) == 1 else "one of the sources"
    assert trouble == f"ongebd: {option} {name} is {one}, and would be lost; name another place\n"


@pytest.mark.skipif(os.name == "nt", reason="links and pipes")
@pytest.mark.parametrize("name", ["pictures", "link", "pipe", "/dev/null"])
def test_what_is_no_file_is_not_put_aside_for_records(place, capfd, name):
    Path("link").symlink_to("pictures")
    os.mkfifo("pipe")
    says = "is a folder" if name in ("pictures", "link") else "is no regular file"
    assert f"--jsonl {name} {says}" in refused(place, capfd, "film.mp4", "--jsonl", name)
    before = all_of(place)
    with pytest.raises(ConfigError, match=says):
        record_sink(Path(name))
    assert all_of(place) == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--clips", "empty.mp4"], "--clips empty.mp4 is no folder"),
        (["--thumbnails", "empty.mp4"], "--thumbnails empty.mp4 is no folder"),
        (["--clips", "empty.mp4/x"], "cannot use empty.mp4/x"),
        (["--clips", "x" * 300], "name another"),
        (["--clips", "seen.jsonl"], "is no folder"),
        (["--thumbnails", "seen.jsonl/x"], "--jsonl seen.jsonl is where --thumbnails needs a folder"),
        (["--clips", "new", "--clips-size", "1k"], "a folder of clips takes at least 1 MiB"),
        (["--thumbnails", "new", "--clips", "new", "--clips-size", "1k"], "takes at least 1 MiB"),
        (["--thumbnails-size", "much"], "give a size"),
        (["--thumbnails-size", "9" * 5000], "give a size"),
        (["--jsonl-size", "1"], "at least 1024 bytes"),
        (["--jsonl-files", "-1"], "0 or more before it"),
        (["--queue", "0"], "max_pending must be at least 1"),
        (["--queue", "1" + 20 * "0"], "max_pending must be at most 100000"),
        (["--retries", "-1"], "retries must be at least 0"),
        (["--exec", "echo {x}"], "no field {x}"),
        (["--serve", "0.0.0.0:0"], "a token is needed"),
        (["--serve", "0.0.0.0:0", "--token", "short"], "the token must have 8"),
        (["--serve", "9" * 5000], "give [HOST:]PORT"),
        (["--serve", "99999"], "a port is a number from 0 to 65535"),
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


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), 0, -1, "1", True])
def test_a_command_has_a_finite_time(seconds):
    with pytest.raises(ConfigError, match="--exec-timeout must be"):
        CommandSink("true", Hub(), lambda key, number: None, print, seconds=seconds)


def test_files_of_records_have_a_finite_age():
    with pytest.raises(ConfigError, match="some time"):
        Rotation(seconds=float("nan"))


def test_a_folder_of_pictures_is_no_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ConfigError, match="is no folder"):
        PictureSink(tmp_path / "file", Hub(), lambda key, number: b"", print)
    assert (tmp_path / "file").read_text() == "mine"


def found(number):
    return Found("cam", number, 0, Boundary(3.25, 3.0, 3.5, 4.0), WALL, True)


def record_sink(path, rotation=None, wall=lambda: WALL):
    header = RunHeader("cam", "made", {"fps": 24.0}, 0, 0, "1")
    return RecordSink(
        path, Hub(), {"cam": "cam"}, header, lambda _: None, lambda: 7, wall=wall, rotation=rotation
    )


class Disk(io.FileIO):
    """A file on a disk that may be full: then half of what is written still fits."""

    left = 10**9
    """Writes until the disk is full."""
    torn = False

    def write(self, data):
        if Disk.left > 0:
            Disk.left -= 1
            return super().write(data)
        self.torn = not self.torn
        if self.torn:
            return super().write(bytes(data)[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def disk(monkeypatch):
    monkeypatch.setattr("ongebd.output.writer.io.FileIO", Disk)
    monkeypatch.setattr(Disk, "left", 10**9)
    return Disk


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(st.just(10**9), st.integers(0, 2)), min_size=5, max_size=40))
def test_on_a_disk_that_is_full_at_times_each_file_begins_with_its_header(disk, tmp_path_factory, script):
    folder = tmp_path_factory.mktemp("records")
    now, disk.left = [WALL], 10**9
    sink = record_sink(folder / "seen.jsonl", Rotation(most_bytes=1024, files=1000), wall=lambda: now[0])
    written = []
    for number, disk.left in enumerate(script, 1):
        now[0] += 1
        try:
            sink.handle(found(number))
        except OngebdError as problem:
            assert str(problem).endswith(  # noqa: PT017 - not every record fails
                "No space left on device (free some space or write elsewhere, see --jsonl)"
            )
        else:
            written.append(number)
    disk.left = 10**9
    sink.close()
    files = [read_jsonl(path) for path in sorted(folder.glob("seen-*")) + list(folder.glob("seen.jsonl"))]
    lines = [path.read_text().splitlines() for path in folder.iterdir()]
    assert all('"header"' in one[0] and '"streams"' in one[1] for one in lines)
    kept = [int(n) for path in sorted(folder.glob("seen-*")) for n in numbers_in(path)]
    assert kept + [int(n) for path in folder.glob("seen.jsonl") for n in numbers_in(path)] == written
    assert sum(len(one.boundaries) for one in files) == len(written)
    assert all(one.end is None or one.end.boundaries == len(one.boundaries) for one in files)


def numbers_in(path):
    return re.findall(r'"number": (\d+)', path.read_text())


def test_on_a_full_disk_no_file_of_records_is_begun(disk, tmp_path):
    disk.left = 0
    with pytest.raises(OngebdError, match=r"No space left on device \(free some space .*see --jsonl\)"):
        record_sink(tmp_path / "seen.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_records_that_could_not_be_written_are_told_in_the_status(disk, place, capfd):
    disk.left = 1
    assert main(["watch", "film.mp4", *QUIET, "--jsonl", "new.jsonl"]) == 2
    assert "cannot write new.jsonl: No space left on device" in capfd.readouterr().err
    assert len(Path("new.jsonl").read_text().splitlines()) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full disk")
def test_lines_that_could_not_be_written_are_told_in_the_status(place):
    command = [sys.executable, "-m", "ongebd", "watch", "film.mp4", "-m", "window-mean", "--jsonl", "new"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert ended.returncode == 2
    assert "cannot write to standard output: No space left on device" in ended.stderr
    assert read_jsonl("new").complete  # nothing else is held up


def test_a_line_that_cannot_be_written_is_counted_and_the_next_is_tried():
    left, lines, complaints, hub = [OSError(errno.ENOSPC, "No space left on device")], [], [], Hub()

    def write(line):
        if left:
            raise left.pop()
        lines.append(line)

    sink = LineSink(write, hub, {"cam": "cam"}, complaints.append)
    sink.start()
    for number in (1, 2):
        hub.publish(found(number))
    hub.close()
    sink.finish(5)
    assert (sink.failed, len(lines)) == (1, 1)
    assert complaints == ["lines: cannot write to standard output: No space left on device"]


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
    assert main(["detect", str(raw), *QUIET, *rate, "--out", ".", "--stem", "detected"]) == 0
    assert main(["watch", str(raw), *QUIET, *rate, "--jsonl", "watched.jsonl"]) == 0
    detected, watched = read_jsonl("detected.jsonl"), read_jsonl("watched.jsonl")
    assert detected.boundaries == watched.boundaries != []


@pytest.mark.parametrize("name", ["film.mp4", "gone.mp4"])
def test_the_example_of_the_guide_tells_everything_and_ends(place, capfd, name):
    (example,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    given_sources = '["door=rtsp://…", "yard=udp://:5000"]'
    assert given_sources in example
    code = example.replace(given_sources, f'["film.mp4", "other={name}"], model="window-mean"')
    thread = threading.Thread(target=exec, args=(code, {}), daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    said = capfd.readouterr().out
    onsets, ends = said.count("Onset("), said.count("Found(")
    assert main(["watch", "film.mp4", *QUIET, "--jsonl", "watched.jsonl"]) == 0
    films = 2 if name == "film.mp4" else 1
    assert onsets == ends == films * len(read_jsonl("watched.jsonl").boundaries) > 0
