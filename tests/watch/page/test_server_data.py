"""What a page is told: the overview, the past, everything from now on; and what it may change."""

from __future__ import annotations

import json
import math
import time

import httpx
import pytest

from ongebd.watch.history import FINE_SECONDS


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


def until(told, wanted):
    deadline = time.monotonic() + 5
    for _, data in told:
        if found := wanted(data):
            return found
        assert time.monotonic() < deadline, "it was not told in time"
    raise AssertionError("the feed ended")


def times(packed):
    total, seconds = 0, []
    for step in packed:
        total += step
        seconds.append(total / 1000)
    return seconds


def test_the_overview_tells_each_streams_state(watcher, served):
    watcher.add("door", "Front door")
    watcher.add("yard").change("reconnecting", "no answer within 10 s")
    overview = httpx.get(served(watcher).url + "api/streams").json()
    door, yard = overview["streams"]
    assert (door["key"], door["name"], door["state"], door["sensitivity"]) == (
        "door",
        "Front door",
        "live",
        0.5,
    )
    assert (yard["state"], yard["reason"]) == ("reconnecting", "no answer within 10 s")
    assert abs(overview["now"] - time.time()) < 5


def test_points_come_in_batches_and_a_boundary_within_a_second(watcher, served):
    stream = watcher.add("cam")
    server = served(watcher)
    watcher.play()
    with httpx.Client(base_url=server.url) as client, followed(client) as feed:
        told = messages(feed.iter_lines())
        began, count, batches = time.monotonic(), 0, 0
        while time.monotonic() - began < 1.5:
            _, data = next(told)
            batches += 1
            count += len(data.get("points", {}).get("cam", {"t": []})["t"])
        assert batches <= 1.5 * 12 + 2, "not a message for each frame"
        assert count > 1.5 * 24 * 0.6, "but every frame"
        began = time.monotonic()
        onset = stream.onset()
        event = until(told, lambda data: [one for one in data.get("events", []) if one["n"] == onset.number])[
            0
        ]
        assert time.monotonic() - began < 1
        assert (event["s"], event["img"], "c" in event) == ("cam", True, False)
        stream.find(onset)
        event = until(told, lambda data: [one for one in data.get("events", []) if one["n"] == onset.number])[
            0
        ]
        assert event["c"] == pytest.approx(onset.time + 0.1, abs=0.002)
        assert event["w"] == pytest.approx(onset.wall, abs=0.002)


def test_states_and_drops_are_told_at_once(watcher, served):
    stream = watcher.add("cam")
    server = served(watcher)
    with httpx.Client(base_url=server.url) as client, followed(client) as feed:
        told = messages(feed.iter_lines())
        stream.change("stalled", "no picture for 5 s")
        change = until(told, lambda data: data.get("states"))[0]
        assert (change["s"], change["state"], change["reason"]) == ("cam", "stalled", "no picture for 5 s")
        stream.now.dropped = 7
        assert until(told, lambda data: data.get("status", {}).get("cam", {}).get("dropped")) == 7


def test_the_sensitivity_acts_on_the_stream_and_is_told_to_all(watcher, served):
    stream = watcher.add("cam")
    server = served(watcher)
    with httpx.Client(base_url=server.url) as client, followed(client) as feed:
        told = messages(feed.iter_lines())
        answer = httpx.post(server.url + "api/streams/cam/sensitivity", json={"sensitivity": 0.8})
        assert answer.json() == {"sensitivity": 0.8}
        assert stream.now.sensitivity == 0.8
        until(told, lambda data: data.get("status", {}).get("cam", {}).get("sensitivity") == 0.8)
    assert httpx.post(server.url + "api/streams/no/sensitivity", json={"sensitivity": 0.8}).status_code == 404


def test_the_past_reaches_back_before_the_server_and_goes_on_with_the_feed(watcher, served):
    stream = watcher.add("cam", rate=24.0)
    now = time.time()
    for i in range(24 * 120):
        stream.point(0.1, now - 120 + i / 24)
    stream.find(stream.onset(now - 30))
    server = served(watcher)
    marks = [0.2, 0.21, 0.22]
    for mark in marks:
        stream.point(mark)
        time.sleep(0.1)
    with httpx.Client(base_url=server.url) as client:
        past = client.get("/api/streams/cam/past").json()
        place = f"{past['run']}-{past['q']}"
        later = [0.3, 0.31]
        for mark in later:
            stream.point(mark)
        with client.stream("GET", "/api/feed", params={"after": place}) as feed:
            heard: list[int] = []
            told = messages(feed.iter_lines())
            while len(heard) < len(later):
                heard += next(told)[1].get("points", {}).get("cam", {"e": []})["e"]
    whole = past["fine"]["e"] + heard
    assert [value for value in whole if value != 1000] == [round(1e4 * mark) for mark in marks + later]
    seconds = times(past["fine"]["t"])
    assert now - seconds[0] == pytest.approx(FINE_SECONDS, abs=1)
    assert [width["w"] for width in past["bins"]] == [0.5, 3.0]
    assert sum(past["bins"][1]["c"]) == pytest.approx(24 * 120 + len(marks), abs=1)
    (event,) = past["events"]
    assert event["n"] == 1
    assert event["c"] == pytest.approx(event["t"] + 0.1, abs=0.002)
    assert past["states"][0]["state"] == "live"


def test_a_client_goes_on_where_it_broke_off(watcher, served):
    stream = watcher.add("cam")
    server = served(watcher)
    with httpx.Client(base_url=server.url) as client:
        with followed(client) as feed:
            identities = (line[4:] for line in feed.iter_lines() if line.startswith("id: "))
            last = next(identities)
        onsets = [stream.onset() for _ in range(3)]
        time.sleep(0.3)
        with client.stream("GET", "/api/feed", headers={"Last-Event-ID": last}) as feed:
            numbers: list[int] = []
            for kind, data in messages(feed.iter_lines()):
                assert kind == "message"
                numbers += [event["n"] for event in data.get("events", [])]
                if len(numbers) >= 3:
                    break
    assert numbers == [onset.number for onset in onsets]


def test_a_thumbnail_comes_from_memory_with_its_type(watcher, served):
    stream = watcher.add("cam")
    onset, bare = stream.onset(), stream.onset(picture=False)
    server = served(watcher)
    answer = httpx.get(f"{server.url}api/streams/cam/thumbnails/{onset.number}")
    assert answer.headers["content-type"] == "image/jpeg"
    assert answer.content == stream.history.picture(onset.number)
    assert httpx.get(f"{server.url}api/streams/cam/thumbnails/{bare.number}").status_code == 404


def test_the_hour_of_a_stream_is_small_and_quick(watcher, served):
    stream = watcher.add("cam")
    now = time.time()
    for i in range(24 * 3600):
        stream.point(0.1 + 0.05 * math.sin(i), now - 3600 + i / 24)
    server = served(watcher)
    deadline = time.monotonic() + 10
    while not httpx.get(server.url + "api/streams").json()["q"] and time.monotonic() < deadline:
        time.sleep(0.05)
    past = httpx.get(server.url + "api/streams/cam/past", headers={"Accept-Encoding": "identity"})
    assert len(past.content) < 150_000
    packed = httpx.get(server.url + "api/streams/cam/past")
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.json()["bins"] == past.json()["bins"]
    assert int(packed.headers["content-length"]) < 60_000
    assert len(past.json()["bins"][1]["n"]) == pytest.approx(1200, abs=2)


def test_static_files_are_told_unchanged_by_their_tag(standing):
    _, server = standing
    first = httpx.get(server.url + "page.js")
    again = httpx.get(server.url + "page.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
