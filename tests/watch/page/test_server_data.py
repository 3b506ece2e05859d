"""What a page is told: the overview, the incidents, everything from now on; and what it may change."""

from __future__ import annotations

import io
import json
import time
from datetime import datetime
from importlib import import_module

import httpx
import numpy as np
import pytest
from PIL import Image

from ongebd.watch.server import serve
from ongebd.watch.sinks.kept import KeptIncidents
from waiting import until

from ..conftest import FixedClock


def messages(lines):
    """Server-sent events as (kind, data)."""
    kind = "message"
    for line in lines:
        if line.startswith("event: "):
            kind = line[7:]
        elif line.startswith("data: "):
            yield kind, json.loads(line[6:])
            kind = "message"


def followed(client):
    overview = client.get("/api/streams").json()
    return client.stream("GET", "/api/feed", params={"after": f"{overview['run']}-{overview['q']}"})


def heard(told, wanted):
    return until(lambda: wanted(next(told)[1]))


def incidents(server, **asked):
    return httpx.get(server.url + "api/incidents", params=asked).json()["incidents"]


def test_the_overview_tells_each_streams_state(watcher, served):
    watcher.add("door", "Front door")
    watcher.add("yard").change("reconnecting", "no answer within 10 s")
    began = time.time()
    overview = httpx.get(served(watcher).url + "api/streams").json()
    door, yard = overview["streams"]
    assert (door["key"], door["name"], door["state"], door["sensitivity"]) == (
        "door",
        "Front door",
        "live",
        0.5,
    )
    assert (yard["state"], yard["reason"]) == ("reconnecting", "no answer within 10 s")
    assert began <= overview["now"] + 0.001 <= time.time() + 0.002


def test_an_incident_comes_and_again_when_more_is_known(watcher, served):
    stream = watcher.add("cam")
    server = served(watcher)
    watcher.play()
    with httpx.Client(base_url=server.url) as client, followed(client) as feed:
        told = messages(feed.iter_lines())
        sent = stream.happen(stream.onset(score=99.0))
        for ended in (False, True):
            (one,) = heard(
                told, lambda data: [one for one in data.get("incidents", []) if one["peak"] == 99.0]
            )
            assert (one["stream"], one["name"], one["picture"], one["ended"]) == ("cam", "cam", True, ended)
            assert one["wall"] == sent.wall
            stream.happen(stream.onset(score=99.0, wall=sent.wall), "ended", number=sent.number)
        times = [next(told)[1]["now"] for _ in range(6)]
        assert times[-1] - times[0] > 1, "not a message for each frame"


def test_states_and_drops_are_told_at_once(watcher, served):
    stream = watcher.add("cam")
    server = served(watcher)
    with httpx.Client(base_url=server.url) as client, followed(client) as feed:
        told = messages(feed.iter_lines())
        stream.change("stalled", "no picture for 5 s")
        heard(told, lambda data: data.get("status", {}).get("cam", {}).get("reason") == "no picture for 5 s")
        stream.now.dropped = 7
        assert heard(told, lambda data: data.get("status", {}).get("cam", {}).get("dropped")) == 7


def test_the_sensitivity_acts_on_the_stream_and_is_told_to_all(watcher, served):
    stream = watcher.add("cam")
    server = served(watcher)
    with httpx.Client(base_url=server.url) as client, followed(client) as feed:
        told = messages(feed.iter_lines())
        answer = httpx.post(server.url + "api/streams/cam/sensitivity", json={"sensitivity": 0.8})
        assert answer.json() == {"sensitivity": 0.8}
        assert stream.now.sensitivity == 0.8
        heard(told, lambda data: data.get("status", {}).get("cam", {}).get("sensitivity") == 0.8)
        assert httpx.post(server.url + "api/streams/cam/quieten", json={"quieten": False}).json() == {
            "quieten": False
        }
        assert not stream.incidents.alerts.quieten
        heard(told, lambda data: data.get("status", {}).get("cam", {}).get("quieten") is False)
    for wrong, status in (("no/sensitivity", 404), ("cam/name", 404), ("cam/quieten", 422)):
        answer = httpx.post(f"{server.url}api/streams/{wrong}", json={"sensitivity": 0.8, "quieten": 0})
        assert answer.status_code == status


def test_a_server_leaves_nothing_behind_in_the_watcher(watcher):
    watcher.add("cam")
    kept = KeptIncidents(watcher, print)
    for given in (None, kept):
        with serve(watcher, port=0, kept=given) as server:
            assert httpx.get(server.url + "healthz").status_code == 200
        assert [one for one in watcher.hub._subscriptions if not one.closed] == [kept]


def test_incidents_are_found_by_camera_time_and_strength(watcher, served):
    for key in ("cam", "yard"):
        stream = watcher.add(key)
    server = served(watcher)
    for number in range(30):
        stream = watcher.streams["cam" if number % 2 else "yard"]
        stream.happen(stream.onset(1000.0 + number, score=float(number)), "ended", number=number)
    walls = [one["wall"] for one in incidents(server)]
    assert walls == [1029.0 - n for n in range(24)]
    assert [one["wall"] for one in incidents(server, before=walls[-1])] == [1005.0 - n for n in range(6)]
    assert {one["stream"] for one in incidents(server, stream="yard")} == {"yard"}
    assert len(incidents(server, since=1020)) == 10
    assert [one["wall"] for one in incidents(server, strength=2, stream="cam")] == [1029.0]
    assert incidents(server, stream="' OR 1=1 --") == []
    for wrong in ({"since": "x"}, {"before": ""}, {"strength": "1.5"}):
        assert httpx.get(server.url + "api/incidents", params=wrong).status_code == 422


def test_what_an_earlier_run_kept_is_there_with_its_pictures(watcher, served, tmp_path):
    stream = watcher.add("cam")
    before = KeptIncidents(watcher, print, tmp_path)
    before.start()
    stream.happen(stream.onset(), "ended")
    before.end()
    before.finish(lambda: 5.0)
    stream.history.__init__(24.0)
    server = served(watcher, kept=KeptIncidents(watcher, print, tmp_path))
    (one,) = incidents(server)
    for which in ("best", "onset"):
        answer = httpx.get(f"{server.url}api/incidents/{one['id']}/{which}")
        assert answer.headers["content-type"] == "image/jpeg"
        assert Image.open(io.BytesIO(answer.content)).size == (320, 180)


def test_a_client_goes_on_where_it_broke_off(watcher, served):
    stream = watcher.add("cam")
    server = served(watcher)
    with httpx.Client(base_url=server.url) as client:
        with followed(client) as feed:
            identities = (line[4:] for line in feed.iter_lines() if line.startswith("id: "))
            last = next(identities)
        sent = [stream.happen(stream.onset()) for _ in range(3)]
        with client.stream("GET", "/api/feed", headers={"Last-Event-ID": last}) as feed:
            heard: list[float] = []
            for kind, data in messages(feed.iter_lines()):
                assert kind == "message"
                heard += [one["wall"] for one in data.get("incidents", [])]
                if len(heard) >= 3:
                    break
    assert heard == [one.wall for one in sent]


def test_pictures_come_from_memory_with_their_type(watcher, served):
    stream = watcher.add("cam")
    server = served(watcher)
    stream.happen(stream.onset())
    stream.happen(stream.onset(picture=False))
    bare, pictured = incidents(server)
    url = f"{server.url}api/incidents/{pictured['id']}"
    assert httpx.get(f"{url}/onset").content == stream.history.picture(1)
    assert httpx.get(f"{url}/best").content != httpx.get(f"{url}/onset").content
    assert httpx.get(f"{url}/best").headers["content-type"] == "image/jpeg"
    assert httpx.get(f"{server.url}api/incidents/{bare['id']}/best").status_code == 404
    assert (pictured["picture"], bare["picture"]) == (True, False)


def test_a_live_picture_is_made_on_request_four_times_a_second_at_most(watcher, served, monkeypatch):
    app = import_module("ongebd.watch.server.app")
    stream, made = watcher.add("cam"), []
    real = app.jpeg
    monkeypatch.setattr(app, "jpeg", lambda frame: made.append(1) or real(frame))
    url = served(watcher).url + "api/streams/cam/picture"
    assert made == []
    with httpx.Client() as client:
        began = time.monotonic()
        answers = [client.get(url) for _ in range(60)]
        assert len(made) <= 2 + 4 * (time.monotonic() - began)
        assert Image.open(io.BytesIO(answers[0].content)).size == (320, 180)
        stream.newest_picture = np.zeros((90, 160, 3), np.uint8)
        until(lambda: Image.open(io.BytesIO(client.get(url).content)).size == (160, 90))
    watcher.streams["cam"].newest_picture = None
    watcher.add("dark").newest_picture = None
    assert httpx.get(url.replace("cam", "dark")).status_code == 204


def test_the_curve_is_that_of_the_last_ten_minutes(watcher, served):
    stream, now = watcher.add("cam"), time.time()
    watcher.clock = FixedClock(now)
    for i in range(24 * 700):
        stream.point(0.1, now - 700 + i / 24)
    stream.onset(now - 30)
    curve = httpx.get(served(watcher).url + "api/streams/cam/curve").json()
    assert curve["change"][:-2] == [0.1] * 598
    assert curve["marks"] == [pytest.approx(now - 30, abs=0.01)]
    assert datetime.fromtimestamp(curve["from"]) < datetime.fromtimestamp(now)


def test_static_files_are_told_unchanged_by_their_tag(standing):
    _, server = standing
    first = httpx.get(server.url + "page.js")
    again = httpx.get(server.url + "page.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
