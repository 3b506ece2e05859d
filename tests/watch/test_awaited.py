"""A boundary's centre and its clip come together whichever is first, and each boundary is told once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.types import Boundary
from ongebd.watch import Filmed, Found, awaited
from ongebd.watch.awaited import AwaitedClips


def found(number: int) -> Found:
    return Found("cam", number, 0, Boundary(number + 0.25, number, number + 0.5, 4.0), 1e9 + number, False)


def clip(number: int) -> Path:
    return Path(f"{number}.mp4")


@pytest.fixture
def told():
    return []


@st.composite
def lives(draw):
    """What happens to some boundaries, in an order that can be; and how the clip of each goes out."""
    ends = draw(st.lists(st.sampled_from(["written", "missed", "never"]), max_size=8))
    events = [("begin", number) for number in range(len(ends))]
    for number, end in enumerate(ends):
        for what in ["found"] if end == "never" else draw(st.permutations(["found", end])):
            begun = 1 + events.index(("begin", number))
            events.insert(draw(st.integers(begun, len(events))), (what, number))
    return ends, events


@given(lives())
def test_each_boundary_is_told_once_with_its_clip_or_without_in_any_order(life):
    ends, events = life
    told: list[Filmed] = []
    waiting = AwaitedClips(told.append)
    known: set[tuple[str, int]] = set()
    for what, number in events:
        match what:
            case "begin":
                waiting.begin(number)
            case "found":
                waiting.found(found(number))
            case "written":
                waiting.settle(number, clip(number))
            case "missed":
                waiting.settle(number, None)
        known.add((what, number))
        whole = {n for n, end in enumerate(ends) if {("found", n), (end, n)} <= known}
        assert {one.found.number for one in told} == whole  # neither too early nor too late
    waiting.give_up()
    waiting.give_up()
    assert sorted(one.found.number for one in told) == list(range(len(ends)))
    for one in told:
        number = one.found.number
        path = clip(number) if ends[number] == "written" else None
        assert one == Filmed("cam", 1e9 + number, found(number), path)


def test_what_comes_after_the_end_is_told_without_a_clip_or_ignored(told):
    waiting = AwaitedClips(told.append)
    for number in (1, 2):
        waiting.begin(number)
    waiting.found(found(1))
    waiting.give_up()
    waiting.settle(1, clip(1))
    waiting.found(found(2))
    waiting.settle(2, clip(2))
    assert [(one.found.number, one.path) for one in told] == [(1, None), (2, None)]


def test_where_nobody_writes_clips_the_oldest_are_told_without_and_none_is_lost(told, monkeypatch):
    monkeypatch.setattr(awaited, "_MOST", 3)
    waiting = AwaitedClips(told.append)
    for number in range(10):
        waiting.begin(number)
        waiting.found(found(number))
    assert [one.found.number for one in told] == list(range(7))
    waiting.settle(9, clip(9))
    waiting.give_up()
    assert [(one.found.number, one.path) for one in told[7:]] == [(9, clip(9)), (7, None), (8, None)]


def test_threads_that_tell_centres_and_clips_at_once_lose_none_and_tell_none_twice(told):
    waiting = AwaitedClips(told.append)
    numbers = range(900)
    for number in numbers:
        waiting.begin(number)

    def find() -> None:
        for number in numbers:
            waiting.found(found(number))

    def settle() -> None:
        for number in numbers:
            waiting.settle(number, clip(number))

    threads = [threading.Thread(target=work) for work in (find, settle)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted((one.found.number, one.path) for one in told) == [(n, clip(n)) for n in numbers]
