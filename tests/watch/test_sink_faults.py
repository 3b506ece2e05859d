"""Whatever a sink meets is told once, tried again, told when it is over, and touches no other sink."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path

import pytest

from ongebd.output.jsonl import JsonlWriter
from ongebd.types import Boundary
from ongebd.watch import Found, Onset, Patience
from ongebd.watch.records import Footage, Incident
from ongebd.watch.sinks.command import CommandSink
from ongebd.watch.sinks.folder import ClipSink, PictureSink
from ongebd.watch.sinks.jsonl import RecordSink
from ongebd.watch.sinks.lines import LineSink
from ongebd.watch.sinks.webhook import WebhookSink
from waiting import until

from .conftest import answering, sink_watcher

WALL = 1_795_852_800.25
NAMES = ("lines", "jsonl", "thumbnails", "clips", "exec", "webhook")
TROUBLES = [
    OSError(errno.ENOSPC, "No space left on device"),
    PermissionError(errno.EACCES, "Permission denied"),
    FileNotFoundError(errno.ENOENT, "No such file or directory"),
    UnicodeEncodeError("latin-1", "\u65e5", 0, 1, "ordinal not in range(256)"),
    RuntimeError("something else"),
]


class Place:
    """Wraps the function with which a sink writes, and fails while it is told to."""

    def __init__(self, real):
        self.real, self.problem = real, None

    def __call__(self, *arguments, **how):
        if self.problem is not None:
            raise self.problem
        return self.real(*arguments, **how)


def all_sinks(folder, watcher, url, lines, complain):
    return {
        "lines": LineSink(lines.append, watcher, complain),
        "jsonl": RecordSink(folder / "seen.jsonl", watcher, complain),
        "thumbnails": PictureSink(folder / "thumbnails", watcher, complain),
        "clips": ClipSink(folder / "clips", watcher, complain),
        "exec": CommandSink("true {number}", watcher, complain),
        "webhook": WebhookSink(url, watcher, complain),
    }


@pytest.mark.parametrize("problem", TROUBLES, ids=lambda problem: type(problem).__name__)
@pytest.mark.parametrize("name", NAMES)
def test_a_fault_is_told_once_tried_again_and_touches_no_other(tmp_path, monkeypatch, name, problem):
    pytest.importorskip("httpx")
    monkeypatch.setattr("ongebd.watch.sink._PAUSES", Patience(first_delay=0.02, longest_delay=0.02))
    for limited in (WebhookSink, ClipSink):
        monkeypatch.setattr(limited, "tries", 1_000_000)
    monkeypatch.setattr("ongebd.watch.sinks.folder.mp4_of", lambda _piece, _late: (b"clip", 1.0))
    complaints, lines, watcher = [], [], sink_watcher(clips=True, picture=b"picture")
    with answering() as (url, _):
        sinks = all_sinks(tmp_path, watcher, url, lines, complaints.append)
        sink = sinks[name]
        owner, attribute = {
            "lines": (sink, "_write"),
            "jsonl": (JsonlWriter, "write"),
            "exec": (subprocess, "Popen"),
            "webhook": (getattr(sink, "_client", None), "stream"),
        }.get(name, (Path, "write_bytes"))
        place = getattr(owner, attribute)
        faulty = Place(place)
        if name in ("thumbnails", "clips"):  # both write the same way
            there = f"/{name}/"
            monkeypatch.setattr(
                owner, attribute, lambda path, data: (faulty if there in str(path) else place)(path, data)
            )
        elif name == "jsonl":
            monkeypatch.setattr(owner, attribute, lambda *arguments: faulty(*arguments))
        else:
            monkeypatch.setattr(owner, attribute, faulty)

        def publish(number):
            onset = Onset("cam", number, 0, 3.0, WALL + number, 2.5, True)
            watcher.hub.publish(onset)
            watcher.footage.publish(Footage(onset, object()))
            watcher.hub.publish(Found("cam", number, 0, Boundary(3.25, 3.0, 3.5, 4.0), WALL + number, True))
            when = 3.0, None, WALL + number, None
            watcher.hub.publish(Incident("cam", number, "started", number, 0, *when, 0.5, 1, "event", True))

        for one in sinks.values():
            one.start()
        publish(1)
        until(lambda: all(one.done >= 1 and not one._waiting for one in sinks.values()))
        faulty.problem, passing = problem, isinstance(problem, OSError) and name != "lines"
        publish(2)
        until(lambda: complaints and all(o.done >= 2 for o in sinks.values() if o is not sink))
        publish(3)
        until(lambda: passing or (sink.done >= 3 and not sink._waiting))
        faulty.problem = None
        publish(4)
        until(lambda: "works again" in complaints[-1] and not any(one._waiting for one in sinks.values()))
        for one in sinks.values():
            one.end()
        for one in sinks.values():
            one.finish(lambda: 5.0)
    assert len(complaints) == 2, complaints
    assert complaints[0].startswith(f"{name}: ")
    assert complaints[1].startswith(f"{name}: works again; records lost: ")
    assert complaints[0].endswith("; trying again") == passing
    assert (sink.failed == 0) == passing
    assert all(one.failed == 0 for one in sinks.values() if one is not sink)
    for other in ("thumbnails", "clips"):
        assert len(list((tmp_path / other).iterdir())) == (4 if passing or other != name else 2)
