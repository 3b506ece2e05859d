"""Clips of boundaries: what they contain, when they are written, and the programs that wait for them."""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path

import av
import pytest

from ongebd.cli import main
from ongebd.errors import ConfigError
from ongebd.watch import Clip, ClipLength, Found, Onset, Watcher
from ongebd.watch import watcher as room
from ongebd.watch.records import Filmed, Footage
from ongebd.watch.sinks.command import CommandSink
from ongebd.watch.sinks.folder import CappedFolder, ClipSink
from waiting import NEVER, until

from .conftest import QUICK, answering, everything, feeding

WALL = 1_795_852_800.25
NAME = re.compile(r"\d{8}T\d{6}\.\d{3}Z-[a-z0-9-]+-\d+\.mp4")


@pytest.fixture(scope="module")
def film(make_video, make_scene, tmp_path_factory):
    """Four scenes of two seconds, a keyframe every half second."""
    pictures = [make_scene(n // 50, 96, 64) for n in range(200)]
    return make_video(tmp_path_factory.mktemp("films") / "film.mp4", pictures, options={"g": "12"})


def watching(model, source, folder, *, before=1.0, after=1.0):
    length = ClipLength(before=before, after=after)
    watcher = Watcher([source], model=model, patience=QUICK, clips=length)
    complaints: list[str] = []
    watcher.attach(ClipSink(folder, watcher, complaints.append))
    return watcher, complaints


def seen_in(path: Path):
    """Codec, length, and the mean colour of the first and the last picture."""
    with av.open(str(path)) as container:
        pictures = list(container.decode(video=0))
        codec = container.streams.video[0].codec_context.codec.canonical_name
    first, last = (pictures[n].to_ndarray(format="rgb24").mean((0, 1)) for n in (0, -1))
    return codec, pictures[-1].time - pictures[0].time, first, last


def test_each_boundary_has_a_clip_from_before_its_onset_until_after_it(film, light_model, tmp_path):
    watcher, complaints = watching(light_model, f"door={film}", tmp_path)
    with watcher.hub.subscribe(Onset, Clip) as told, watcher:
        assert watcher.join(60)
        watcher.stop()
        records = everything(told)
    onsets = {r.number: r for r in records if isinstance(r, Onset)}
    clips = {r.number: r for r in records if isinstance(r, Clip)}
    assert complaints == []
    assert [onset.time for onset in onsets.values()] == pytest.approx([2, 4, 6], abs=0.1)
    assert clips.keys() == onsets.keys()
    for number, clip in clips.items():
        assert (clip.time, clip.wall, clip.epoch) == (onsets[number].time, onsets[number].wall, 0)
        assert watcher.streams["door"].history.clip(number) == clip.path
        assert NAME.fullmatch(clip.path.name)
        codec, seconds, first, last = seen_in(clip.path)
        assert codec == "h264"
        assert 1.9 <= seconds <= 2.6  # it begins at a keyframe
        assert clip.seconds == pytest.approx(seconds + 1 / 25, abs=0.01)
        assert abs(first - last).max() > 5  # another scene
    assert sorted(tmp_path.iterdir()) == sorted(clip.path for clip in clips.values())


@pytest.mark.parametrize("codec", ["libx264", "mpeg2video"])
def test_a_feed_that_is_killed_within_a_clip_leaves_a_whole_short_one(
    light_model, free_port, tmp_path, codec
):
    source = f"cam=tcp://127.0.0.1:{free_port}"
    watcher, complaints = watching(light_model, source, tmp_path, after=30)
    with watcher:
        stream = watcher.streams["cam"]
        with feeding(free_port, codec=codec):
            until(lambda: stream.status().boundaries >= 2)
            assert list(tmp_path.iterdir()) == []  # they still grow
        until(lambda: stream.history.clip(2) is not None)
    assert complaints == []
    for number in (1, 2):
        found, seconds, *_ = seen_in(stream.history.clip(number))
        assert (found, 0.3 < seconds < 30) == ("h264", True)


def test_the_end_of_a_watch_is_the_end_of_its_clips_and_the_records_know_them(
    light_model, free_port, tmp_path
):
    watcher, complaints = watching(light_model, f"cam=tcp://127.0.0.1:{free_port}", tmp_path, after=30)
    with feeding(free_port), watcher.hub.subscribe(Clip) as told, watcher:
        until(lambda: watcher.streams["cam"].status().boundaries >= 1)
        watcher.stop()
        clips = everything(told)
    assert complaints == []
    assert [clip.number for clip in clips] == list(range(1, len(clips) + 1))
    assert all(seen_in(clip.path)[0] == "h264" for clip in clips)


def test_a_break_within_a_connection_ends_a_clip_and_the_next_is_of_the_new_picture(
    light_model, make_video, make_scene, tmp_path
):
    parts = []
    for name, size in (("small", (96, 64)), ("large", (192, 128))):
        pictures = [make_scene(n // 50, *size) for n in range(100)]
        parts.append(make_video(tmp_path / f"{name}.ts", pictures, options={"g": "10"}).read_bytes())
    both = tmp_path / "both.ts"
    both.write_bytes(b"".join(parts))
    watcher, complaints = watching(light_model, str(both), tmp_path / "clips", before=1.5, after=9)
    with watcher.hub.subscribe(Clip) as told, watcher:
        assert watcher.join(60)
        watcher.stop()
        clips = everything(told)
    assert complaints == []
    assert [clip.epoch for clip in clips] == [0, 1]
    for clip, size in zip(clips, ((96, 64), (192, 128)), strict=True):
        with av.open(str(clip.path)) as container:
            pictures = list(container.decode(video=0))
        assert {(picture.width, picture.height) for picture in pictures} == {size}
        assert len(pictures) > 60


def test_clips_of_several_epochs_are_cut_from_their_own_connection(light_model, free_port, tmp_path):
    source = f"cam=tcp://127.0.0.1:{free_port}"
    watcher, complaints = watching(light_model, source, tmp_path, before=5, after=0.2)
    with watcher.hub.subscribe(Clip) as told, watcher:
        stream = watcher.streams["cam"]
        for size in ((96, 64), (160, 128)):
            clips = stream.status().boundaries
            with feeding(free_port, width=size[0], height=size[1]):
                until(lambda clips=clips: stream.status().boundaries >= clips + 1)
            until(lambda: stream.status().state == "reconnecting")
        watcher.stop()
        records = everything(told)
    assert complaints == []
    assert {record.epoch for record in records} == {0, 1}
    for record in records:
        with av.open(str(record.path)) as container:
            stream = container.streams.video[0]
            assert (stream.width, stream.height) == ((96, 64), (160, 128))[record.epoch]


@pytest.mark.parametrize("wrong", [{"before": -1}, {"after": 61}, {"before": 0.2, "after": 0.2}])
def test_a_length_out_of_range_is_refused(wrong):
    with pytest.raises(ConfigError, match="clip"):
        ClipLength(**wrong)


# Programs that are told of clips.


@pytest.fixture
def note(tmp_path):
    """A command that writes its other words into a file named by its first; and the folder of those."""
    folder = tmp_path / "told"
    folder.mkdir()
    script = tmp_path / "note.py"
    script.write_text(
        "import json, os, sys\n"
        "number, clip, onset = sys.argv[1:]\n"
        "size = os.path.getsize(clip) if clip else None\n"
        f"path = os.path.join({str(folder)!r}, number)\n"
        "with open(f'{path}.part', 'x') as file:\n"
        "    json.dump([clip, onset, size], file)\n"
        "os.rename(f'{path}.part', path)\n"
    )
    return f"{sys.executable} '{script}' {{number}} '{{clip}}' {{onset}}", folder


def noted(folder: Path):
    """Of each number: its clip, onset, and the clip's size when the command ran."""
    return {int(path.name): json.loads(path.read_text()) for path in folder.iterdir() if not path.suffix}


def with_command(source, model, folder, line, *, after=0.5):
    """With clips, and with a command that is run for each boundary."""
    watched = Watcher([source], model=model, patience=QUICK, clips=ClipLength(before=0.5, after=after))
    complaints: list[str] = []
    clips = ClipSink(folder, watched, complaints.append)
    command = CommandSink(line, watched, complaints.append)
    watched.attach(clips)
    watched.attach(command)
    return watched, complaints


def test_the_command_is_run_once_for_each_boundary_with_a_clip_that_is_whole(film, tmp_path, note, capfd):
    line, folder = note
    seen = tmp_path / "seen.jsonl"
    arguments = ["--clips", str(tmp_path / "clips"), "--clip-after", "0.5", "--jsonl", str(seen)]
    assert main(["watch", f"door={film}", "-m", "window-mean", "-q", *arguments, "--exec", line]) == 0
    assert capfd.readouterr().err == ""
    lines = [json.loads(line) for line in seen.read_text().splitlines()]
    clips = {one["number"]: one for one in lines if one["type"] == "clip"}
    onsets = {one["number"]: one["onset"] for one in lines if one["type"] == "boundary"}
    told = noted(folder)
    assert told.keys() == clips.keys() == onsets.keys() == {1, 2, 3}
    for number, (path, onset, size) in told.items():
        assert (path, float(onset)) == (clips[number]["path"], onsets[number])
        assert Path(path).stat().st_size == size
        with av.open(path) as container:
            assert len(list(container.decode(video=0))) > 20


def test_the_web_hook_is_told_each_clip_after_its_onset_in_the_words_of_the_records(film, tmp_path, capfd):
    pytest.importorskip("httpx")
    seen = tmp_path / "seen.jsonl"
    arguments = ["--clips", str(tmp_path / "clips"), "--clip-after", "0.5", "--jsonl", str(seen)]
    with answering() as (url, got):
        assert main(["watch", str(film), "-m", "window-mean", "-q", *arguments, "--webhook", url]) == 0
    assert capfd.readouterr().err == ""
    lines = [json.loads(line) for line in seen.read_text().splitlines()]
    posted = [line for line in lines if line["type"] in ("onset", "boundary", "incident", "clip", "state")]
    assert sorted(got, key=json.dumps) == sorted(posted, key=json.dumps)
    kinds = [(one["type"], one["number"]) for one in got if one["type"] != "state"]
    for number in (1, 2, 3):
        assert kinds.count(("clip", number)) == 1
        assert kinds.index(("onset", number)) < kinds.index(("clip", number))


@pytest.mark.parametrize("asks", [True, False])
def test_only_a_command_that_asks_for_the_clip_waits_until_it_is_written(
    film, light_model, tmp_path, note, monkeypatch, asks
):
    let_go, write = threading.Event(), CappedFolder.write
    monkeypatch.setattr(CappedFolder, "write", lambda *what: let_go.wait(NEVER) and write(*what))
    line, folder = note
    line = line if asks else line.replace("{clip}", "")
    watched, complaints = with_command(str(film), light_model, tmp_path / "clips", line)
    with watched:
        assert watched.join(60)  # every centre is known
        if not asks:
            until(lambda: len(noted(folder)) == 3)
        assert len(noted(folder)) == (0 if asks else 3)
        let_go.set()
        until(lambda: len(noted(folder)) == 3)
    assert complaints == []
    assert all(bool(clip) is asks for clip, _, _ in noted(folder).values())


def no_keyframe(monkeypatch):
    handle = ClipSink.handle
    none = lambda sink, it: handle(sink, Footage(it.onset, None))  # noqa: E731
    monkeypatch.setattr(ClipSink, "handle", none)
    return "clips: no clip of boundary 1 of film: no key frame arrived"


def full_disk(monkeypatch):
    def write(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(CappedFolder, "write", write)
    return "clips: [Errno 28] No space left on device; trying again"


@pytest.mark.parametrize("trouble", [no_keyframe, full_disk])
def test_where_a_clip_cannot_be_made_the_command_runs_without(
    film, light_model, tmp_path, note, monkeypatch, trouble
):
    complaint = trouble(monkeypatch)
    line, folder = note
    watched, complaints = with_command(str(film), light_model, tmp_path / "clips", line)
    with watched:
        until(lambda: len(noted(folder)) == 3)
    assert complaints == [complaint, "clips: records lost: 3"]
    assert [clip for clip, _, _ in noted(folder).values()] == ["", "", ""]


def test_where_clips_are_dropped_for_they_are_too_many_the_commands_run_without(
    film, light_model, tmp_path, note, monkeypatch
):
    begun, let_go, write = threading.Event(), threading.Event(), CappedFolder.write

    def slow(*what):
        begun.set()
        return let_go.wait(NEVER) and write(*what)

    monkeypatch.setattr(CappedFolder, "write", slow)
    line, folder = note
    monkeypatch.setattr("ongebd.watch.sinks.folder._MOST_WAITING", 1)
    watched, complaints = with_command(str(film), light_model, tmp_path / "clips", line)
    publish = watched.footage.publish
    monkeypatch.setattr(
        watched.footage, "publish", lambda it: (it.onset.number == 1 or begun.wait(NEVER), publish(it))
    )
    with watched:
        until(lambda: noted(folder).keys() == {2})  # 1 is being written, 3 has taken its place
        let_go.set()
        until(lambda: len(noted(folder)) == 3)
    assert complaints == ["clips: can't keep up: dropped 1 record"]
    assert [bool(noted(folder)[number][0]) for number in (1, 2, 3)] == [True, False, True]


def test_at_the_end_of_the_watch_commands_that_wait_run_with_the_clips_that_are_whole_by_then(
    light_model, free_port, tmp_path, note
):
    line, folder = note
    source = f"cam=tcp://127.0.0.1:{free_port}"
    watched, complaints = with_command(source, light_model, tmp_path / "clips", line, after=30)
    with feeding(free_port), watched.hub.subscribe(Found, Clip) as told, watched:
        until(lambda: watched.streams["cam"].status().boundaries >= 2)
        assert noted(folder) == {}
        watched.stop()
        records = everything(told)
    assert complaints == []
    paths = {record.number: str(record.path) for record in records if isinstance(record, Clip)}
    assert {number: clip for number, (clip, _, _) in noted(folder).items()} == paths
    assert {record.number for record in records if isinstance(record, Found)} == paths.keys()
    assert len(paths) >= 2


def test_at_the_end_of_the_watch_commands_whose_clips_are_not_written_in_time_run_without(
    film, light_model, tmp_path, note, monkeypatch
):
    begun, let_go = threading.Event(), threading.Event()
    monkeypatch.setattr(CappedFolder, "write", lambda *_: begun.set() or (let_go.wait(NEVER) and Path("x")))
    line, folder = note
    watched, complaints = with_command(str(film), light_model, tmp_path / "clips", line)
    monkeypatch.setattr(room, "_STOP_SECONDS", 0.1)
    with watched.hub.subscribe(Filmed) as filmed, watched:
        assert watched.join(60)
        assert begun.wait(60)
        assert filmed.get(0) is None
        finish = CommandSink.finish
        monkeypatch.setattr(CommandSink, "finish", lambda sink, _: finish(sink, lambda: 60.0))
        watched.stop()
        told = everything(filmed)
    let_go.set()
    assert complaints == ["clips: out of time: skipped 2 records"]
    assert {number: clip for number, (clip, _, _) in noted(folder).items()} == {1: "", 2: "", 3: ""}
    assert [one.path for one in told] == [None] * 3


def test_a_watch_without_clips_tells_nothing_of_them(film, light_model):
    watched = Watcher([str(film)], model=light_model)
    with watched.hub.subscribe(Filmed, Clip) as told, watched.hub.subscribe(Onset) as onsets, watched:
        assert watched.join(60)
        watched.stop()
    assert len(everything(onsets)) == 3
    assert everything(told) == []
