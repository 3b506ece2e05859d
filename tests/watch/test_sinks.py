"""Files, commands, web hooks, folders: what they hold, that errors are reported and harm no other."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ongebd.errors import OngebdError
from ongebd.output.jsonl import read_jsonl
from ongebd.types import Boundary
from ongebd.watch import (
    Clip,
    Digest,
    Dropped,
    Found,
    HubSink,
    Incident,
    Onset,
    Patience,
    Retuned,
    StateChanged,
)
from ongebd.watch.records import Filmed
from ongebd.watch.sink import countdown
from ongebd.watch.sinks.command import CommandSink
from ongebd.watch.sinks.folder import CappedFolder, PictureSink
from ongebd.watch.sinks.jsonl import RecordSink
from ongebd.watch.sinks.lines import LineSink
from ongebd.watch.sinks.webhook import WebhookSink
from waiting import until

from .conftest import answering, sink_watcher

WALL = 1_795_852_800.25
FULL = "No space left on device (free some space or write elsewhere"
AT_ONCE = Patience(first_delay=0.01, longest_delay=0.01)


def onset(number=1, wall=WALL):
    return Onset("cam", number, 0, 3.0, wall, 2.5, True)


def found(number=1, wall=WALL):
    boundary = Boundary(3.25, 3.0, 3.5, 4.0, onset_known=3.125)
    return Found("cam", number, 0, boundary, wall, True)


def clip(number=1):
    return Clip("cam", number, 0, 3.0, WALL, Path("clips") / "1.mp4", 9.5)


@pytest.fixture
def watcher():
    return sink_watcher()


@pytest.fixture
def complaints():
    return []


def play(sink, watcher, *records, seconds=60.0):
    sink.start()
    for record in records:
        watcher.hub.publish(record)
    watcher.hub.close()
    sink.end()
    sink.finish(countdown(seconds))


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


# Files of records.


def test_a_file_of_records_is_one_that_detect_could_have_written(tmp_path, watcher, complaints):
    path = tmp_path / "deep" / "seen.jsonl"
    play(
        RecordSink(path, watcher, complaints.append),
        watcher,
        StateChanged("cam", "live", WALL, 0, ""),
        onset(),
        found(),
        StateChanged("cam", "stalled", WALL + 1, 0, "no frame for 3 s"),
        StateChanged("cam", "live", WALL + 3, 1, ""),
        Dropped("cam", WALL + 4, 5, 12),
        Retuned("cam", WALL + 5, 0.7),
        clip(),
        StateChanged("cam", "ended", WALL + 6, 1, "stopped"),
    )
    recording = read_jsonl(path)
    assert recording.boundaries == [found().boundary]
    assert recording.boundaries[0].onset_known == 3.125
    assert [(epoch.number, epoch.reason) for epoch in recording.epochs] == [(1, "reconnected to the source")]
    assert recording.header.model == "made"
    assert recording.end is not None
    assert (recording.complete, recording.end.boundaries) == (False, 1)
    lines = lines_of(path)
    kinds = [line.get("state", line["type"]) for line in lines]
    wanted = "header streams live onset boundary stalled live epoch drop retuned clip ended end"
    assert kinds == wanted.split()
    assert all("stream" in line and "wall" in line for line in lines[2:-1])
    where = {"stream": "cam", "number": 1, "epoch": 0}
    assert lines[3] == {"type": "onset", **where, "onset": 3.0, "score": 2.5, "wall": WALL}
    assert lines[4].items() >= {"type": "boundary", **where, "decided": 3.5, "wall": WALL}.items()
    assert lines[8] == {"type": "drop", "stream": "cam", "count": 5, "total": 12, "wall": WALL + 4}
    film = {"path": str(Path("clips") / "1.mp4"), "seconds": 9.5}
    assert lines[10] == {"type": "clip", **where, "onset": 3.0, **film, "wall": WALL}
    assert complaints == []


def test_a_file_of_records_is_complete_when_all_sources_ended_by_themselves(tmp_path, watcher, complaints):
    path = tmp_path / "seen.jsonl"
    ended = [StateChanged(key, "ended", WALL, 0, "the source has ended") for key in watcher.streams]
    play(RecordSink(path, watcher, complaints.append), watcher, *ended)
    assert read_jsonl(path).complete


def test_files_are_replaced_by_size_each_is_valid_and_the_oldest_go(tmp_path, watcher, complaints):
    path = tmp_path / "seen.jsonl"
    (tmp_path / "seen-notes.jsonl").write_text("mine")
    sink = RecordSink(path, watcher, complaints.append, size=1024, files=3)
    for number in range(1, 61):
        watcher.clock.now += 1
        sink.handle(found(number))
    sink.tidy()
    files = sorted(tmp_path.glob("seen-2*.jsonl"))
    assert len(files) == 3
    assert (tmp_path / "seen-notes.jsonl").read_text() == "mine"
    assert all(read_jsonl(file).end is not None for file in [*files, path])
    assert all(file.stat().st_size < 1024 + 400 for file in files)
    numbers = [line["number"] for file in [*files, path] for line in lines_of(file) if "number" in line]
    assert numbers == list(range(numbers[0], 61))


def test_files_are_replaced_by_age_or_when_someone_removed_them(tmp_path, watcher, complaints):
    path = tmp_path / "a.jsonl"
    sink = RecordSink(path, watcher, complaints.append)
    sink.handle(found(1))
    watcher.clock.now += 86_401
    sink.handle(found(2))
    assert len(list(tmp_path.iterdir())) == 2
    path.unlink()
    sink.handle(found(3))
    sink.tidy()
    assert [len(read_jsonl(file).boundaries) for file in sorted(tmp_path.iterdir())] == [1, 1]


def test_what_an_earlier_watch_wrote_is_put_aside(tmp_path, complaints):
    path = tmp_path / "seen.jsonl"
    for number in (1, 2):
        watcher = sink_watcher()
        play(RecordSink(path, watcher, complaints.append), watcher, found(number))
    (aside,) = tmp_path.glob("seen-2*.jsonl")
    assert [lines_of(file)[2]["number"] for file in (aside, path)] == [1, 2]


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


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(st.just(10**9), st.integers(0, 2)), min_size=5, max_size=40))
def test_on_a_disk_that_is_full_at_times_each_file_begins_with_its_header(disk, tmp_path_factory, script):
    folder = tmp_path_factory.mktemp("records")
    watcher, disk.left = sink_watcher(), 10**9
    sink = RecordSink(folder / "seen.jsonl", watcher, print, size=1024, files=1000)
    written = []
    for number, disk.left in enumerate(script, 1):
        watcher.clock.now += 1
        try:
            sink.handle(found(number))
        except OngebdError as problem:
            assert "No space left on device" in str(problem)  # noqa: PT017 - not every record fails
            assert "see --jsonl" in str(problem)  # noqa: PT017
        else:
            written.append(number)
    disk.left = 10**9
    sink.tidy()
    paths = sorted(folder.glob("seen-*")) + list(folder.glob("seen.jsonl"))
    files, lines = [read_jsonl(path) for path in paths], [lines_of(path) for path in paths]
    assert all([line["type"] for line in one[:2]] == ["header", "streams"] for one in lines)
    assert [line["number"] for one in lines for line in one if "number" in line] == written
    assert all(one.end is None or one.end.boundaries == len(one.boundaries) for one in files)


def test_on_a_full_disk_no_file_of_records_is_begun_and_every_record_is_tried(
    disk, tmp_path, watcher, complaints
):
    disk.left = 0
    with pytest.raises(OngebdError, match=r"No space left on device \(free some space .*see --jsonl\)"):
        RecordSink(tmp_path / "seen.jsonl", watcher, print)
    assert list(tmp_path.iterdir()) == []
    disk.left = 2
    sink = RecordSink(tmp_path / "seen.jsonl", watcher, complaints.append)
    play(sink, watcher, *(found(number) for number in range(5)))
    assert (sink.done, sink.failed) == (5, 6)  # and the end record
    assert [complaint.rpartition(": ")[2] for complaint in complaints] == [f"{FULL}, see --jsonl)", "5"]
    assert len(lines_of(tmp_path / "seen.jsonl")) == 2


# Commands.


@pytest.fixture
def tell(tmp_path):
    """A command that writes its words into a file, except the first, which names the file; and that file."""
    script, told = tmp_path / "tell me.py", tmp_path / "told.json"
    script.write_text(
        f"import json, sys\nwith open({str(told)!r}, 'x') as file:\n    json.dump(sys.argv[1:], file)\n"
    )
    return f"{sys.executable} '{script}'", told


def test_a_command_gets_its_fields_as_words_and_no_shell_sees_them(tell, complaints):
    line, told = tell
    watcher = sink_watcher(picture=b"picture")
    line += " {time} at={onset} '{stream}; rm -rf x' {wall} {thumbnail}"
    play(CommandSink(line, watcher, complaints.append), watcher, found())
    assert complaints == []
    *words, picture = json.loads(told.read_text())
    assert words == ["3.250000", "at=3.000000", "cam; rm -rf x", f"{WALL:.6f}"]
    assert Path(picture).name == "cam-1.jpg"
    assert not Path(picture).exists()


@pytest.mark.parametrize("path", [Path("clips of mine; rm -rf x") / "1.mp4", None])
def test_a_command_that_asks_for_the_clip_runs_when_that_is_settled(tell, complaints, path):
    line, told = tell
    watcher = sink_watcher(clips=True)
    sink = CommandSink(f"{line} {{number}} clip={{clip}}", watcher, complaints.append)
    play(sink, watcher, found(7), Filmed(found(7), path))
    assert complaints == []
    assert sink.done == 1  # not with the centre
    assert json.loads(told.read_text()) == ["7", f"clip={path or ''}"]


def test_a_command_without_a_clip_in_it_runs_when_the_centre_is_known(complaints):
    watcher = sink_watcher(clips=True)
    sink = CommandSink("true {number}", watcher, complaints.append)
    play(sink, watcher, found(7), Filmed(found(7), None))
    assert (sink.done, complaints) == (1, [])


def test_a_command_that_hangs_is_killed_with_everything_that_it_started(tmp_path, watcher, complaints):
    os.mkfifo(held := tmp_path / "held")
    reader = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    line = f"sh -c 'exec 9>\"{held}\"; sleep 150 & wait'"
    play(CommandSink(line, watcher, complaints.append, seconds=0.2), watcher, found())
    assert complaints == ["exec: killed sh after 0.2 s"]
    assert os.read(reader, 1) == b"", "whoever still ran would hold it open"
    os.close(reader)


def test_a_few_commands_run_at_the_same_time_and_too_many_are_dropped_and_reported(
    tmp_path, watcher, complaints
):
    line = f"{sys.executable} -c \"import time; time.sleep(0.1); open(r'{tmp_path}/{{number}}', 'w')\""
    sink = CommandSink(line, watcher, complaints.append)
    sink.start()
    for number in range(400):
        watcher.hub.publish(found(number))
    until(lambda: any(tmp_path.iterdir()))
    watcher.hub.close()
    sink.end()
    sink.finish(countdown(0.2))
    assert 0 < len(list(tmp_path.iterdir())) <= 20
    assert sink.lost > 100
    assert any("can't keep up: dropped" in complaint for complaint in complaints)
    assert any("out of time: skipped" in complaint for complaint in complaints)


def test_a_command_that_fails_is_reported_with_its_status(watcher, complaints):
    sink = CommandSink("sh -c 'exit 3'", watcher, complaints.append)
    play(sink, watcher, found(), found())
    assert complaints == ["exec: sh ended with status 3", "exec: records lost: 2"]
    assert (sink.done, sink.failed) == (2, 2)


def test_an_error_is_told_once_and_so_is_its_end_and_a_new_one_not_within_a_minute(watcher, complaints):
    class Failing(HubSink):
        def handle(self, record):
            if record.number in (1, 2, 4):
                raise ValueError(f"no {record.number}")

    sink = Failing("made", watcher.hub, (Onset,), complaints.append)
    play(sink, watcher, *(onset(number) for number in range(1, 6)))
    assert complaints == ["made: no 1", "made: works again; records lost: 2"]  # the third within a minute
    assert (sink.done, sink.failed) == (5, 3)


# Web hooks.


def test_a_web_hook_is_tried_again_after_a_passing_error_and_not_after_a_refusal(
    watcher, complaints, monkeypatch
):
    pytest.importorskip("httpx")
    with answering(503, 429, 204, 400) as (url, got):
        monkeypatch.setattr("ongebd.watch.sink._PAUSES", AT_ONCE)
        sink = WebhookSink(url, watcher, complaints.append)
        for number in (1, 2, 3):
            sink._try(found(number))
        sink.tidy()
    assert [one["number"] for one in got] == [1, 1, 1, 2, 3]
    assert sink.failed == 1
    assert "answered 503; trying again" in complaints[0]
    assert complaints[1:] == ["webhook: works again; records lost: 0"]
    assert "hunter2" not in complaints[0]


# Folders.


def test_a_folder_keeps_to_its_size_and_removes_only_what_is_its_own(tmp_path, complaints):
    watcher = sink_watcher(picture=bytes(300_000))
    old, mine = tmp_path / "20200101T000000.000Z-cam-1.jpg", tmp_path / "holiday.jpg"
    left, young = (tmp_path / f".20200101T000000.000Z-cam-{n}.jpg.77.part" for n in (2, 3))
    for path in (old, mine, left, young):
        path.write_bytes(bytes(400_000))
    long_ago = time.time() - 3600
    os.utime(left, (long_ago, long_ago))  # a watch that was killed
    sink = PictureSink(tmp_path, watcher, complaints.append, most_bytes=1024 * 1024)
    assert [path.exists() for path in (left, young)] == [False, True]
    play(sink, watcher, *(onset(number, WALL + number) for number in range(1, 6)))
    ours = sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("20"))
    assert [name.rsplit("-", 1)[1] for name in ours] == ["3.jpg", "4.jpg", "5.jpg"]
    assert ours[0].startswith("20261128T")
    assert mine.exists()
    assert complaints == []


@pytest.mark.parametrize("wrong", ["name", "clock"])
def test_age_and_not_the_name_decides_which_files_go(tmp_path, watcher, complaints, wrong):
    old = tmp_path / "20991231T000000.000Z-cam-1.jpg"  # a clock was wrong
    old.write_bytes(bytes(1 << 20))
    changed = time.time() + (1e6 if wrong == "clock" else -1e6)
    os.utime(old, (changed, changed))
    path = CappedFolder(tmp_path, "thumbnails", ".jpg", 1 << 20).write(onset(), b"new")
    assert list(tmp_path.iterdir()) == [path]
    path = tmp_path / "seen.jsonl"
    path.write_text("mine")
    for number, wall in enumerate((WALL, WALL + 1e8, WALL - 1e8, WALL + 1), 1):
        watcher.clock.now = wall
        play(RecordSink(path, sink_watcher(), complaints.append, files=1), watcher, found(number))
    kept = sorted(tmp_path.glob("seen*"))
    assert len(kept) == 3  # the newest, the one before, and what the user had written
    assert any(one.read_text() == "mine" for one in kept)


def test_a_folder_that_vanishes_is_made_again(tmp_path):
    folder = CappedFolder(tmp_path / "new", "clips", ".mp4", 1 << 20)
    (tmp_path / "new").rmdir()
    assert folder.write(onset(), b"clip").read_bytes() == b"clip"


def test_nothing_half_written_is_left_on_a_full_disk(tmp_path, monkeypatch):
    folder, whole = CappedFolder(tmp_path, "clips", ".mp4", 1024 * 1024), Path.write_bytes

    def full(path, data):
        whole(path, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        folder.write(onset(), bytes(1000))
    assert list(tmp_path.iterdir()) == []


# Lines.


def test_lines_show_incidents_states_and_drops(watcher, complaints):
    lines: list[str] = []
    play(
        LineSink(lines.append, watcher, complaints.append),
        watcher,
        StateChanged("cam", "reconnecting", WALL, 0, "no data\nfor 10 s"),
        incident := Incident("cam", 3, "started", 5, 0, 3.25, None, WALL, None, 0.71, 2, "event", True),
        replace(incident, state="updated", count=3),
        replace(incident, state="ended", end=4.0, count=3),
        replace(incident, number=4, held="rate"),
        replace(incident, number=4, state="ended", held="rate"),
        Digest("cam", WALL, "2026-11-28", 15, {"rate": 2, "repeats": 40}, (4, 9)),
        Dropped("yard", WALL, 2, 22),
    )
    assert len(lines) == 5
    assert "cam   reconnecting, epoch 0: no data\\nfor 10 s" in lines[0]
    assert lines[0].startswith("# 20")
    assert lines[1].endswith("cam   incident 3 at 0:00:03.250  peak 0.71  2 boundaries")
    assert not lines[1].startswith("#")
    assert lines[2].startswith("# ")
    assert lines[2].endswith("incident 4 at 0:00:03.250  peak 0.71  2 boundaries  held: rate")
    assert lines[3].endswith("2026-11-28: alerts: 15; held: rate 2, repeats 40 (the strongest: 4, 9)")
    assert lines[4].endswith("yard  can't keep up: dropped 2 frames (22 in all); try --fps 8")


def test_who_cannot_keep_up_at_few_frames_is_not_told_to_take_more(watcher, complaints):
    lines: list[str] = []
    watcher.streams["yard"].rate = 8.0
    play(LineSink(lines.append, watcher, complaints.append), watcher, Dropped("yard", WALL, 1, 1))
    assert lines[0].endswith("dropped 1 frame (1 in all); watch fewer sources")


def test_a_line_that_cannot_be_written_is_counted_and_the_next_is_tried(watcher, complaints):
    left, lines = [OSError(errno.ENOSPC, "No space left on device")], []

    def write(line):
        if left:
            raise left.pop()
        lines.append(line)

    sink = LineSink(write, watcher, complaints.append)
    play(sink, watcher, Retuned("cam", WALL, 0.5), Retuned("cam", WALL, 0.6))
    assert (sink.failed, len(lines)) == (1, 1)
    told = "can't write to standard output: No space left on device", "works again; records lost: 1"
    assert complaints == [f"lines: {one}" for one in told]


def test_a_reader_of_lines_that_goes_away_is_noticed(watcher, complaints):
    def write(_line):
        raise BrokenPipeError

    sink = LineSink(write, watcher, complaints.append)
    play(sink, watcher, Retuned("cam", WALL, 0.5), Retuned("cam", WALL, 0.6))
    assert sink.reader_gone.is_set()
    assert complaints == []
