"""Incidents that are kept: over restarts, for so many days and bytes, and through trouble with the disk."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ongebd.errors import OngebdError
from ongebd.watch import Clip, Patience
from ongebd.watch.history import Best, History
from ongebd.watch.sinks.kept import FILE, KeptIncidents
from waiting import until

from .conftest import sink_watcher
from .test_messages import WALL, incident, running

DAY = 86_400


@pytest.fixture
def watcher(monkeypatch):
    monkeypatch.setattr("ongebd.watch.sink._PAUSES", Patience(first_delay=0.02, longest_delay=0.02))
    made = sink_watcher()
    made.streams = {key: SimpleNamespace(name=key.title(), history=History(1.0)) for key in ("cam", "yard")}
    return made


def publish(watcher, number, state="started", *, stream="cam", size=100, **changes):
    history = watcher.streams[stream].history
    history.add_picture(number, b"o" * size)
    history.add_picture(Best(number), b"b" * size)
    watcher.hub.publish(incident(number, state, stream, **{"wall": WALL + number, **changes}))


def keep(watcher, folder, complain=print, **limits):
    return running(KeptIncidents(watcher, complain, folder, **limits))


def numbers(rows):
    return [int(row["id"].rpartition("-")[2]) for row in rows]


def test_incidents_and_their_pictures_survive_a_restart(watcher, tmp_path):
    with keep(watcher, tmp_path / "deep" / "kept") as first:
        for number in (1, 2, 3):
            publish(watcher, number)
            publish(watcher, number, "ended", peak=0.9, held="repeats" if number == 2 else None)
        publish(watcher, 4)
    for stream in watcher.streams.values():
        stream.history = History(1.0)
    again = KeptIncidents(watcher, print, tmp_path / "deep" / "kept")
    rows = again.rows()
    assert numbers(rows) == [4, 3, 2, 1]
    assert [row["held"] for row in rows] == [None, None, "repeats", None]
    assert all(row["ended"] and row["picture"] and row["name"] == "Cam" for row in rows)
    assert rows[1]["peak"] == 0.9
    assert again.picture(rows[0]["id"], "best") == b"b" * 100
    assert again.picture(rows[0]["id"], "onset") == b"o" * 100
    assert again.picture("nobody", "best") is None
    assert first.run != again.run


def test_they_are_found_by_camera_time_and_strength(watcher, tmp_path):
    for folder in (None, tmp_path):
        with keep(watcher, folder) as kept:
            for number in range(1, 21):
                publish(watcher, number, "ended", peak=number / 20, stream="cam" if number % 2 else "yard")
            assert numbers(kept.rows()) == list(range(20, 0, -1))
            assert numbers(kept.rows("yard", most=2)) == [20, 18]
            assert numbers(kept.rows(since=WALL + 18)) == [20, 19, 18]
            assert numbers(kept.rows(before=WALL + 3)) == [2, 1]
            assert numbers(kept.rows("cam", strength=2)) == [19]
            assert numbers(kept.rows("cam", strength=1)) == [19, 17, 15, 13, 11]
            publish(watcher, 19, "ended", peak=19 / 20, stream="cam", held="rate")
            assert numbers(kept.rows(since=WALL + 18, alerts=True)) == [20, 18]
    later = KeptIncidents(watcher, print, tmp_path)
    assert numbers(later.rows(since=WALL + 18, alerts=True)) == [20, 18]
    assert numbers(later.rows(since=WALL + 18)) == [20, 19, 18]


def test_a_clip_belongs_to_the_incident_that_begins_with_its_boundary(watcher, tmp_path):
    with keep(watcher, tmp_path) as kept:
        publish(watcher, 1, first=1, count=3)
        publish(watcher, 2, first=4)
        kept.news()
        for boundary in (1, 2, 9):
            watcher.hub.publish(Clip("cam", boundary, 0, 3.0, WALL, Path(f"{boundary}.mp4"), 9.5))
        (told,) = kept.news()
        assert (told["id"], told["clip"]) == (f"{kept.run}-cam-1", "1.mp4")
        assert kept.news() == []
    again = KeptIncidents(watcher, print, tmp_path)
    assert [again.clip(row["id"]) for row in again.rows()] == [None, Path("1.mp4")]


def test_old_ones_and_those_that_are_too_much_go(watcher, tmp_path):
    with keep(watcher, tmp_path, days=2):
        publish(watcher, 1, wall=WALL - 3 * DAY)
        publish(watcher, 2, wall=WALL - DAY)
    assert numbers(KeptIncidents(watcher, print, tmp_path).rows()) == [2]
    with keep(watcher, tmp_path, most_bytes=1 << 20):
        for number in range(3, 103):
            publish(watcher, number, size=20_000)
    assert (tmp_path / FILE).stat().st_size < 1.3 * (1 << 20)
    left = numbers(KeptIncidents(watcher, print, tmp_path).rows(most=500))
    assert left == list(range(102, 102 - len(left), -1))
    assert len(left) > 10


def test_only_memory_is_bounded_and_touches_no_disk(watcher, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with keep(watcher, None) as kept:
        for number in range(3000):
            publish(watcher, number, size=10)
        assert len(kept.rows(most=5000)) == 1000
        assert len(kept.news()) == 1000
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"my diary, of years", None])
def test_a_file_of_someone_else_is_refused_and_untouched(watcher, tmp_path, content):
    path = tmp_path / FILE
    if content is None:
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE diary (text)")
        database.close()
    else:
        path.write_bytes(content * 100)
    before = path.read_bytes()
    with pytest.raises(OngebdError, match="name another folder"):
        KeptIncidents(watcher, print, tmp_path)
    assert path.read_bytes() == before


def test_a_folder_that_is_gone_and_comes_back_loses_nothing(watcher, tmp_path):
    folder, complaints = tmp_path / "kept", []
    with keep(watcher, folder, complaints.append) as kept:
        publish(watcher, 1)
        until(lambda: kept.done == 1)
        folder.rename(tmp_path / "elsewhere")
        folder.write_text("a file is in its place")
        for number in range(2, 30):
            publish(watcher, number)
        until(lambda: complaints)
        assert numbers(kept.rows(most=50)) == list(range(29, 0, -1)), "the page shows them all the same"
        assert kept.picture(f"{kept.run}-cam-7", "best") == b"b" * 100
        folder.unlink()
        (tmp_path / "elsewhere").rename(folder)
        until(lambda: kept.done == 29)
    assert "can't keep incidents in" in complaints[0]
    assert complaints[1:] == ["keep: works again; records lost: 0"]
    assert numbers(KeptIncidents(watcher, print, folder).rows(most=50)) == list(range(29, 0, -1))


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of 400 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(place)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user or container can't mount a file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=False)


def test_a_full_disk_that_gets_room_again_loses_nothing(watcher, small_disk):
    complaints = []
    filler = small_disk / "filler"
    with keep(watcher, small_disk, complaints.append) as kept:
        publish(watcher, 1)
        until(lambda: kept.done == 1)
        filler.write_bytes(b"x" * 300_000)
        for number in range(2, 12):
            publish(watcher, number, size=10_000)
            time.sleep(0.01)
        until(lambda: complaints)
        assert numbers(kept.rows()) == list(range(11, 0, -1))
        filler.unlink()
        until(lambda: kept.done == 11)
    assert "full" in complaints[0]
    assert complaints[1:] == ["keep: works again; records lost: 0"]
    assert numbers(KeptIncidents(watcher, print, small_disk).rows()) == list(range(11, 0, -1))
