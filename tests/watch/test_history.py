"""The last minutes of a stream, in bounded memory; the hub that records pass through."""

from __future__ import annotations

import math
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.errors import ConfigError
from ongebd.types import Boundary
from ongebd.watch import Dropped, Found, Onset, Point, Retuned
from ongebd.watch.history import CURVE_SECONDS, History
from ongebd.watch.hub import Hub, Subscription
from ongebd.watch.records import Filmed
from waiting import until


def point(wall, error, *, epoch=0, ready=True):
    return Point("cam", epoch, wall, wall, error, 0.1, 0.02, 0.4, 0.0, error > 0.4, ready)


def onset(number):
    return Onset("cam", number, 0, float(number), 1e9 + number, 4.0, False)


def found(number):
    return Found("cam", number, 0, Boundary(number + 0.25, number, number + 0.5, 4.0), 1e9 + number, False)


def clip(number):
    return Path(f"{number}.mp4")


def kept(points, rate=24.0):
    history = History(rate)
    for one in points:
        history.add_point(one)
    return history


@given(st.lists(st.tuples(st.floats(0.04, 9.0), st.floats(0.0, 2.0)), min_size=1, max_size=300))
def test_the_curve_keeps_every_peak_of_its_minutes(steps):
    walls = (1_000_000 + np.cumsum([step for step, _ in steps])).tolist()
    errors = [error for _, error in steps]
    curve = kept(map(point, walls, errors)).curve(walls[-1])
    seconds: dict[int, float] = {}
    for wall, error in zip(walls, errors, strict=True):
        seconds[math.floor(wall)] = max(error, seconds.get(math.floor(wall), 0.0))
    assert len(curve["change"]) == len(curve["limit"]) == CURVE_SECONDS
    for second, value in enumerate(curve["change"], curve["from"]):
        assert value == (round(seconds[second], 4) if second in seconds else None)
    assert {value for value in curve["limit"] if value is not None} == {0.4}


def test_days_of_a_stream_take_some_minutes_memory():
    history = kept((point(1e9 + i / 4, 0.2) for i in range(50_000)), rate=4.0)
    curve = history.curve(1e9 + 12_500)
    assert curve["change"][1:-1] == [0.2] * (CURVE_SECONDS - 2)
    for number in range(3000):
        history.add_onset(onset(number))
        history.add_picture(number, bytes(100_000))
    assert len(history.boundaries(0)) == 2000
    assert [history.picture(number) is None for number in (0, 2840, 2999)] == [True, False, False]


def test_the_curve_has_gaps_where_no_frame_came_and_no_limit_before_it_means_something():
    history = kept([point(100.0, 0.2, ready=False), point(103.5, 0.3)])
    history.add_onset(onset(1))
    curve = history.curve(104.0)
    assert curve["change"][-5:] == [0.2, None, None, 0.3, None]
    assert curve["limit"][-5:] == [None, None, None, 0.4, None]
    assert history.curve(1e9 + 2)["marks"] == [1e9 + 1]
    assert set(history.curve(5000.0)["change"]) == {None}, "long ago"
    history.add_point(point(50.0, 0.5))  # the clock was set back
    assert history.curve(104.0)["change"][-56:-54] == [None, 0.5]


@st.composite
def lives(draw):
    """What happens to some boundaries, in a possible order; and how the clip of each ends."""
    ends = draw(st.lists(st.sampled_from(["written", "missed", "never"]), max_size=8))
    events = [("begin", number) for number in range(len(ends))]
    for number, end in enumerate(ends):
        for what in ["found"] if end == "never" else draw(st.permutations(["found", end])):
            begun = 1 + events.index(("begin", number))
            events.insert(draw(st.integers(begun, len(events))), (what, number))
    return ends, events


@given(lives())
def test_each_boundary_is_published_once_with_its_clip_or_without_in_any_order(life):
    ends, events = life
    history, known = History(1.0), set()
    published: list[Filmed] = []
    happens = {
        "begin": lambda number: history.add_onset(onset(number)),
        "found": lambda number: history.add_centre(found(number)),
        "written": lambda number: history.settle_clip(number, clip(number)),
        "missed": lambda number: history.settle_clip(number, None),
    }
    for what, number in events:
        published += filter(None, [happens[what](number)])
        known.add((what, number))
        whole = {n for n, end in enumerate(ends) if {("found", n), (end, n)} <= known}
        assert {one.found.number for one in published} == whole  # neither too early nor too late
    published += filter(None, [history.settle_clip(number, None) for number in [*range(len(ends))] * 2])
    assert sorted(one.found.number for one in published) == list(range(len(ends)))
    for one in published:
        number = one.found.number
        path = clip(number) if ends[number] == "written" else None
        assert one == Filmed(found(number), path)
    assert not any(history.settle_clip(number, clip(number)) for number in range(len(ends)))


def test_threads_that_report_centres_and_clips_at_the_same_time_lose_none_and_publish_none_twice():
    history, numbers, published = History(1.0), range(900), {}
    for number in numbers:
        history.add_onset(onset(number))

    def work(act):
        published[act] = [act(number) for number in numbers]

    acts = (lambda n: history.add_centre(found(n)), lambda n: history.settle_clip(n, clip(n)))
    threads = [threading.Thread(target=work, args=[act]) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    both = [one for each in published.values() for one in each if one]
    assert sorted((one.found.number, one.path) for one in both) == [(n, clip(n)) for n in numbers]


def retuned(number):
    return Retuned("cam", float(number), 0.5)


def test_each_subscriber_gets_the_kinds_that_it_asked_for_in_order():
    hub = Hub()
    all_of_them, some = hub.subscribe(), hub.subscribe(Dropped)
    hub.publish(retuned(1))
    hub.publish(Dropped("cam", 2.0, 1, 1))
    assert [all_of_them.get(0).wall, all_of_them.get(0).wall, all_of_them.get(0)] == [1.0, 2.0, None]
    assert [some.get(0).wall, some.get(0)] == [2.0, None]


def test_a_subscription_notices_each_record_that_is_dropped_and_no_other():
    hub, dropped = Hub(), []

    class Noting(Subscription):
        def missed(self, record):
            dropped.append(record)

    reader = hub.add(Noting((), limit=2))
    for number in range(5):
        hub.publish(retuned(number))
    assert dropped == [retuned(0), retuned(1), retuned(2)]
    hub.close()
    hub.publish(retuned(9))
    assert [reader.get(0), reader.get(0), reader.get(0)] == [retuned(3), retuned(4), None]
    assert len(dropped) == reader.lost == 3


def test_closing_wakes_who_waits_and_leaves_what_came():
    hub = Hub()
    subscription = hub.subscribe()
    got: list[object] = []
    thread = threading.Thread(target=lambda: got.append(subscription.get()))
    thread.start()
    until(lambda: subscription._news._waiters)
    hub.close()
    thread.join(60)
    assert got == [None]
    with hub.subscribe() as late:
        assert late.closed
    other = Hub()
    with other.subscribe() as kept:
        other.publish(retuned(1))
    other.publish(retuned(2))
    assert kept.closed
    assert [kept.get(0), kept.get(0)] == [retuned(1), None]


def test_a_limit_below_one_is_refused():
    with pytest.raises(ConfigError, match="limit"):
        Hub().subscribe(limit=0)
