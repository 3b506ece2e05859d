"""Files, commands, web hooks, folders: what they hold, and that trouble in one is told and harms no other."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from ongebd.errors import ConfigError, OngebdError
from ongebd.output import RunHeader
from ongebd.output.jsonl import read_jsonl
from ongebd.types import Boundary
from ongebd.watch import Clip, Dropped, Filmed, Found, Hub, Onset, Retuned, StateChanged
from ongebd.watch.sinks import CommandSink, LineSink, PictureSink, RecordSink, Rotation, WebhookSink
from ongebd.watch.sinks.records import record_line

from .conftest import answering

WALL = 1_795_852_800.25


def onset(number: int = 1, wall: float = WALL) -> Onset:
    return Onset("cam", number, 0, 3.0, wall, 2.5, True)


def found(number: int = 1, wall: float = WALL) -> Found:
    return Found("cam", number, 0, Boundary(3.25, 3.0, 3.5, 4.0), wall, True)


@pytest.fixture
def hub():
    return Hub()


@pytest.fixture
def complaints():
    return []


def play(hub, sink, *records, seconds=5.0):
    sink.start()
    for record in records:
        hub.publish(record)
    hub.close()
    sink.finish(seconds)


def record_sink(path, hub, complaints, rotation=None, wall=lambda: WALL):
    header = RunHeader("cam", "made", {"fps": 24.0}, 0, 0, "1")
    return RecordSink(
        path, hub, {"cam": "cam"}, header, complaints.append, lambda: 7, wall=wall, rotation=rotation
    )


def test_a_file_of_records_is_one_that_detect_could_have_written(tmp_path, hub, complaints):
    path = tmp_path / "deep" / "seen.jsonl"
    play(
        hub,
        record_sink(path, hub, complaints),
        StateChanged("cam", "live", WALL, 0, ""),
        onset(),
        found(),
        StateChanged("cam", "stalled", WALL + 1, 0, "no frame for 3 s"),
        StateChanged("cam", "reconnecting", WALL + 2, 0, "no data for 10 s"),
        StateChanged("cam", "live", WALL + 3, 1, ""),
        Dropped("cam", WALL + 4, 5, 12),
        Retuned("cam", WALL + 5, 0.7),
        StateChanged("cam", "ended", WALL + 6, 1, "stopped"),
    )
    recording = read_jsonl(path)
    assert recording.boundaries == [found().boundary]
    assert [(epoch.number, epoch.reason) for epoch in recording.epochs] == [
        (1, "the source was connected anew")
    ]
    assert recording.end is not None
    assert (recording.complete, recording.end.boundaries) == (False, 1)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert all("stream" in line and "wall" in line for line in lines[2:-1])
    kinds = [line.get("state", line["type"]) for line in lines]
    wanted = "header streams live onset boundary stalled reconnecting live epoch drop retuned ended end"
    assert kinds == wanted.split()
    assert lines[9] == {"type": "drop", "stream": "cam", "count": 5, "total": 12, "wall": WALL + 4}
    assert complaints == []


@pytest.mark.parametrize(("path", "said"), [(Path("1.mp4"), "1.mp4"), (None, None)])
def test_a_boundary_and_its_clip_have_a_line_for_who_wants_both(path, said):
    assert record_line(Filmed("cam", WALL, found(7), path)) == {
        "type": "filmed",
        "stream": "cam",
        "number": 7,
        "epoch": 0,
        "path": said,
        "wall": WALL,
    }


def test_a_file_of_records_is_complete_when_all_sources_came_to_their_end(tmp_path, hub, complaints):
    path = tmp_path / "seen.jsonl"
    ended = StateChanged("cam", "ended", WALL, 0, "the source is over")
    play(hub, record_sink(path, hub, complaints), ended)
    assert read_jsonl(path).complete


def test_files_are_exchanged_by_size_each_is_valid_and_the_oldest_go(tmp_path, hub, complaints):
    path = tmp_path / "seen.jsonl"
    (tmp_path / "seen-notes.jsonl").write_text("mine")
    now = [WALL]
    sink = record_sink(path, hub, complaints, Rotation(most_bytes=1024, files=3), wall=lambda: now[0])
    sink.start()
    for number in range(1, 61):
        now[0] += 1
        hub.publish(found(number))
        until = time.monotonic() + 5
        while sink.done < number:
            assert time.monotonic() < until
            time.sleep(0.001)
    hub.close()
    sink.finish(5)
    files = sorted(tmp_path.glob("seen-2*.jsonl"))
    assert len(files) == 3
    assert (tmp_path / "seen-notes.jsonl").read_text() == "mine"
    kept = [read_jsonl(file) for file in [*files, path]]
    assert all(one.end is not None for one in kept)
    assert all(file.stat().st_size < 1024 + 400 for file in files)
    numbers = [
        json.loads(line)["number"]
        for file in [*files, path]
        for line in file.read_text().splitlines()
        if '"boundary"' in line and '"number"' in line
    ]
    assert numbers == list(range(numbers[0], 61))


def test_files_are_exchanged_by_age(tmp_path, hub, complaints):
    now = [WALL]
    sink = record_sink(tmp_path / "a.jsonl", hub, complaints, Rotation(seconds=60), wall=lambda: now[0])
    sink.handle(found(1))
    now[0] += 61
    sink.handle(found(2))
    hub.close()
    sink.finish(1)
    assert [len(read_jsonl(file).boundaries) for file in sorted(tmp_path.iterdir())] == [1, 1]


def test_what_an_earlier_watch_wrote_is_put_aside(tmp_path, complaints):
    path = tmp_path / "seen.jsonl"
    for number in (1, 2):
        hub = Hub()
        play(hub, record_sink(path, hub, complaints), found(number))
    (aside,) = tmp_path.glob("seen-2*.jsonl")
    assert json.loads(aside.read_text().splitlines()[2])["number"] == 1
    assert json.loads(path.read_text().splitlines()[2])["number"] == 2


def test_a_file_that_cannot_be_written_is_refused_at_the_start(tmp_path, hub, complaints):
    (tmp_path / "file").write_text("")
    with pytest.raises(OngebdError, match="cannot write"):
        record_sink(tmp_path / "file" / "seen.jsonl", hub, complaints)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full disk")
def test_a_full_disk_is_told_once_and_every_record_is_tried(tmp_path, hub, complaints, monkeypatch):
    sink = record_sink(tmp_path / "seen.jsonl", hub, complaints)
    with Path("/dev/full").open("wb", buffering=0) as full:
        monkeypatch.setattr(sink._out, "_file", full)
        play(hub, sink, *(found(number) for number in range(5)))
    assert (sink.done, sink.failed) == (5, 6)  # and the end record
    assert len(complaints) == 2
    assert "No space left" in complaints[0]


def test_a_command_gets_its_fields_as_words_and_no_shell_sees_them(tmp_path, hub, complaints):
    script = tmp_path / "tell me.py"
    script.write_text(
        "import json, pathlib, sys\n"
        "*words, picture = sys.argv[1:]\n"
        "size = len(pathlib.Path(picture).read_bytes())\n"
        f"pathlib.Path({str(tmp_path / 'told.json')!r}).write_text(json.dumps([*words, size]))\n"
    )
    line = f"{sys.executable} '{script}' {{time}} at={{onset}} '{{stream}}; rm -rf x' {{wall}} {{thumbnail}}"
    play(hub, CommandSink(line, hub, lambda key, number: b"picture", complaints.append), found())
    assert complaints == []
    assert json.loads((tmp_path / "told.json").read_text()) == [
        "3.250000",
        "at=3.000000",
        "cam; rm -rf x",
        f"{WALL:.6f}",
        7,
    ]


@pytest.mark.parametrize("path", [Path("clips of mine; rm -rf x") / "1.mp4", None])
def test_a_command_that_asks_for_the_clip_runs_when_that_is_settled(tmp_path, hub, complaints, path):
    told = tmp_path / "told.json"
    script = tmp_path / "tell.py"
    script.write_text(f"import json, sys\nopen({str(told)!r}, 'x').write(json.dumps(sys.argv[1:]))\n")
    line = f"{sys.executable} '{script}' {{number}} {{time}} {{wall}} clip={{clip}}"
    sink = CommandSink(line, hub, lambda key, number: None, complaints.append, clips=True)
    play(hub, sink, found(7), Filmed("cam", WALL, found(7), path))
    assert complaints == []
    assert sink.done == 1  # not with the centre
    assert json.loads(told.read_text()) == ["7", "3.250000", f"{WALL:.6f}", f"clip={path or ''}"]


def test_a_command_without_a_clip_in_it_runs_when_the_centre_is_known(hub, complaints):
    sink = CommandSink("true {number}", hub, lambda key, number: None, complaints.append, clips=True)
    play(hub, sink, found(7), Filmed("cam", WALL, found(7), None))
    assert (sink.done, complaints) == (1, [])


def test_a_command_that_hangs_is_killed_with_all_that_it_started(tmp_path, hub, complaints):
    marker = tmp_path / "still here"
    line = f"sh -c 'sleep 1.5 && touch \"{marker}\"'"
    sink = CommandSink(line, hub, lambda key, number: None, complaints.append, seconds=0.2)
    play(hub, sink, found())
    assert complaints == ["exec: sh was killed after 0.2 s"]
    time.sleep(1.6)
    assert not marker.exists()


def test_commands_run_a_few_at_once_and_what_is_too_much_is_dropped_and_told(tmp_path, hub, complaints):
    line = f"{sys.executable} -c \"import time; time.sleep(0.1); open(r'{tmp_path}/{{number}}', 'w')\""
    sink = CommandSink(line, hub, lambda key, number: None, complaints.append, at_once=2)
    sink.start()
    for number in range(400):
        hub.publish(found(number))
    time.sleep(0.5)
    hub.close()
    sink.finish(0.2)
    assert 0 < len(list(tmp_path.iterdir())) <= 20
    assert sink.lost > 100
    assert any("too slow" in complaint for complaint in complaints)
    assert any("left undone at the end" in complaint for complaint in complaints)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "--exec is empty"),
        ("echo 'x", "No closing quotation"),
        ("echo {when}", r"no field \{when\}; there are \{time\}"),
        ("echo at={clip}", r"\{clip\} is there only where clips are kept; add --clips FOLDER"),
        ("no-such-program-here {time}", "no program that can be run"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_at_the_start(hub, complaints, line, says):
    with pytest.raises(ConfigError, match=says):
        CommandSink(line, hub, lambda key, number: None, complaints.append)


def test_a_command_that_fails_is_told_with_its_status(hub, complaints):
    sink = CommandSink("sh -c 'exit 3'", hub, lambda key, number: None, complaints.append)
    play(hub, sink, found())
    assert complaints == ["exec: sh ended with status 3"]
    assert (sink.done, sink.failed) == (1, 1)


def test_a_web_hook_gets_each_record_once_in_order(hub, complaints):
    pytest.importorskip("httpx")
    with answering() as (url, got):
        play(
            hub,
            WebhookSink(url, hub, complaints.append),
            onset(),
            found(),
            StateChanged("cam", "live", WALL, 0, ""),
            Clip("cam", 1, 0, 3.0, WALL, Path("clips") / "1.mp4", 9.5),
        )
    assert [one["type"] for one in got] == ["onset", "boundary", "state", "clip"]
    assert got[1]["time"] == 3.25
    assert got[3] == {
        "type": "clip",
        "stream": "cam",
        "number": 1,
        "epoch": 0,
        "onset": 3.0,
        "path": str(Path("clips") / "1.mp4"),
        "seconds": 9.5,
        "wall": WALL,
    }
    assert complaints == []


def test_a_web_hook_is_tried_again_after_a_passing_trouble_and_not_after_a_refusal(hub, complaints):
    pytest.importorskip("httpx")
    with answering(503, 429, 204, 400) as (url, got):
        sink = WebhookSink(url, hub, complaints.append, first_delay=0.01)
        sink.start()
        hub.publish(found(1))
        hub.publish(found(2))
        hub.publish(found(3))
        until = time.monotonic() + 5
        while sink.done < 3 and time.monotonic() < until:
            time.sleep(0.01)
        hub.close()
        sink.finish(2)
    assert [one["number"] for one in got] == [1, 1, 1, 2, 3]
    assert sink.failed == 1
    (complaint,) = complaints
    assert "answered 400 (1 try)" in complaint
    assert "hunter2" not in complaint


def test_a_web_hook_that_is_not_there_is_told_without_its_credentials_and_ends_in_time(
    hub, complaints, free_port
):
    pytest.importorskip("httpx")
    url = f"http://me:hunter2@127.0.0.1:{free_port}/?token=hunter2"
    sink = WebhookSink(url, hub, complaints.append, first_delay=5)
    began = time.monotonic()
    play(hub, sink, found(1), found(2))
    assert time.monotonic() - began < 3
    assert complaints
    assert "hunter2" not in " ".join(complaints)


@pytest.mark.parametrize("url", ["ftp://host/x", "host/x", "http://", "http://[::1"])
def test_what_is_no_web_address_is_refused(hub, complaints, url):
    pytest.importorskip("httpx")
    with pytest.raises(ConfigError, match="--webhook"):
        WebhookSink(url, hub, complaints.append)


def test_a_folder_of_pictures_keeps_to_its_size_and_touches_nothing_else(tmp_path, hub, complaints):
    (tmp_path / "holiday.jpg").write_bytes(b"x" * 5_000_000)
    old = tmp_path / "20200101T000000.000Z-cam-1.jpg"
    old.write_bytes(b"x" * 400_000)
    sink = PictureSink(
        tmp_path, hub, lambda key, number: bytes(300_000), complaints.append, most_bytes=1024 * 1024
    )
    play(hub, sink, *(onset(number, WALL + number) for number in range(1, 6)))
    ours = sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("20"))
    assert [name.rsplit("-", 1)[1] for name in ours] == ["3.jpg", "4.jpg", "5.jpg"]
    assert ours[0].startswith("20261128T")
    assert not old.exists()
    assert (tmp_path / "holiday.jpg").exists()
    assert complaints == []


def test_a_folder_that_cannot_be_made_is_refused(tmp_path, hub, complaints):
    (tmp_path / "file").write_text("")
    with pytest.raises(OngebdError, match="cannot use"):
        PictureSink(tmp_path / "file" / "x", hub, lambda key, number: b"", complaints.append)


def test_lines_tell_boundaries_states_and_now_and_then_drops(hub, complaints):
    lines: list[str] = []
    play(
        hub,
        LineSink(lines.append, hub, {"cam": "Front", "yard": "Yard"}, complaints.append),
        StateChanged("cam", "reconnecting", WALL, 0, "no data\nfor 10 s"),
        found(3),
        *(Dropped("yard", WALL + n, 2, 2 * (n + 1)) for n in range(15)),
    )
    assert "cam   reconnecting, epoch 0: no data\\nfor 10 s" in lines[0]
    assert lines[0].startswith("# 20")
    assert "cam   boundary 3 at 0:00:03.250  onset 0:00:03.000  score 4.0" in lines[1]
    assert [line.split("yard  ")[1] for line in lines[2:]] == [
        "2 frames dropped, for the model is too slow for it (2 in all)",
        "20 frames dropped, for the model is too slow for it (22 in all)",
    ]


def test_a_reader_of_lines_that_goes_away_is_noticed(hub, complaints):
    def write(_line: str) -> None:
        raise BrokenPipeError

    sink = LineSink(write, hub, {"cam": "cam"}, complaints.append)
    play(hub, sink, found(1), found(2))
    assert sink.gone.is_set()
    assert complaints == []
