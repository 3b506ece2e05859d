"""The last hour of a stream: its curve in bins, its boundaries with their clips, in bounded memory."""

from __future__ import annotations

import math
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.types import Boundary
from ongebd.watch import Found, Onset, Point, StateChanged
from ongebd.watch.history import BIN_SECONDS, BINS, FINE_SECONDS, History, Place, packed_past, packed_points
from ongebd.watch.records import Filmed


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


def curve(history):
    return packed_past(history.until(history.place, 0.0)[0])


@given(st.lists(st.tuples(st.floats(0.001, 9.0), st.floats(0.0, 2.0)), min_size=1, max_size=300))
def test_bins_keep_every_peak_and_every_point(steps):
    walls = 1_000_000 + np.cumsum([step for step, _ in steps])
    errors = [error for _, error in steps]
    packed = curve(kept(map(point, walls.tolist(), errors)))
    for width, bins in zip(BIN_SECONDS, packed["bins"], strict=True):
        if len(bins["n"]) < BINS:
            assert max(bins["u"]) == round(1e4 * max(errors))
            assert min(bins["l"]) == round(1e4 * min(errors))
            assert sum(bins["c"]) == len(errors)
        levels = zip(bins["l"], bins["e"], bins["u"], strict=True)
        assert all(low <= middle <= high for low, middle, high in levels)
        assert all(step > 0 for step in bins["n"])
        assert sum(bins["n"]) == math.floor(walls[-1] / width)


def test_days_of_a_stream_take_an_hours_memory():
    history = kept((point(1e9 + i / 4, 0.2) for i in range(50_000)), rate=4.0)
    packed = curve(history)
    assert len(packed["fine"]["t"]) == pytest.approx(4 * FINE_SECONDS, abs=2)
    assert [len(binned["n"]) for binned in packed["bins"]] == [BINS, pytest.approx(1201, abs=1)]
    assert len(history.news(Place()).rows) == 3600 * 4 + 1
    for number in range(3000):
        history.add_onset(onset(number))
        history.add_picture(number, bytes(100_000))
        history.add_state(StateChanged("cam", "live", 1e9, 0, ""))
    assert len(history.boundaries(0)) == 2000
    assert [history.picture(number) is None for number in (0, 2840, 2999)] == [True, False, False]


def test_a_new_epoch_and_a_clock_set_back_break_the_curve():
    history = kept(point(100.0 + i, 0.2, epoch=i // 2) for i in range(4))
    history.add_point(point(104.0, 0.5, epoch=1, ready=False))
    news = history.news(Place())
    assert packed_points(news.rows)["f"] == [2, 2, 6, 2, 1]
    later = history.news(Place(2, 0))
    assert packed_points(later.rows)["f"] == [6, 2, 1]
    history.add_point(point(50.0, 0.3, epoch=1))
    assert sum(curve(history)["fine"]["t"]) == 50_000
    assert sum(curve(history)["bins"][0]["n"]) == 100


def test_news_are_what_came_after_a_place_and_no_more():
    history = kept([point(1.0, 0.1)])
    for number in (1, 2, 3):
        history.add_onset(onset(number))
    place = history.place
    assert [len(news) for news in history.news(place)[1:]] == [0, 0, 0]
    history.add_centre(found(2))
    history.add_state(StateChanged("cam", "stalled", 2.0, 0, ""))
    history.settle_clip(1, clip(1))
    history.add_point(point(2.0, 0.3))
    news = history.news(place)
    assert len(news.rows) == 1
    assert [known.onset.number for known in news.boundaries] == [1, 2]
    assert [change.state for change in news.states] == ["stalled"]
    assert [len(after) for after in history.news(news.place)[1:]] == [0, 0, 0]
    rows, boundaries, states = history.until(place, 1e9)
    assert (len(rows), len(boundaries), states) == (1, 3, [])


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
