"""Segments as long and as many as people want; fewer are always a part of more."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.detector.detection import Detection
from ongebd.detector.segments import Choice, Selection, segments_of, selected
from ongebd.errors import ConfigError
from ongebd.types import Boundary, Decision

END = 120.0
scores = st.integers(1, 5).map(float)  # many are equal
found = st.lists(st.tuples(st.integers(1, 1199).map(lambda n: n / 10), scores), max_size=40, unique=True).map(
    lambda some: [Boundary(time, time, time, score) for time, score in sorted(some)]
)
lengths = st.lists(st.floats(0.1, 150), min_size=2, max_size=5).map(sorted)


def times(boundaries):
    return {(one.time, one.score) for one in boundaries}


def told(boundaries, **wanted):
    choice = Choice(Selection(**wanted), 0.0, "a stream")
    return [one for boundary in boundaries for one in choice.take(boundary)] + choice.rest(END)


@given(found, lengths)
def test_a_longer_minimum_only_removes_and_no_segment_is_shorter(boundaries, shortest):
    several = [selected(boundaries, 0, END, Selection(min_length=one)) for one in shortest]
    for more, fewer in pairwise(several):
        assert times(fewer) <= times(more)
    for seconds, kept in zip(shortest, several, strict=True):
        edges = [0.0, *(one.time for one in kept), END]
        assert not kept or min(b - a for a, b in pairwise(edges)) >= seconds


@given(found, st.floats(0, 30))
def test_more_chapters_contain_fewer_and_are_the_strongest(boundaries, shortest):
    kept = selected(boundaries, 0, END, Selection(min_length=shortest))
    several = [selected(boundaries, 0, END, Selection(min_length=shortest, chapters=n)) for n in range(1, 42)]
    for number, chosen in enumerate(several):
        assert len(chosen) == min(number, len(kept))
        left = times(kept) - times(chosen)
        assert not chosen or not left or min(one.score for one in chosen) >= max(score for _, score in left)
    assert all(times(fewer) <= times(more) for fewer, more in pairwise(several))


@given(found, lengths)
def test_a_higher_rate_of_a_file_only_adds_and_is_kept(boundaries, rates):
    several = [selected(boundaries, 0, END, Selection(max_per_minute=rate)) for rate in rates]
    assert all(times(fewer) <= times(more) for fewer, more in pairwise(several))
    assert all(len(one) <= max(1, rate * 2) for one, rate in zip(several, rates, strict=True))


@given(found, lengths)
def test_a_stream_keeps_the_minimum_length_and_its_results_are_nested(boundaries, shortest):
    several = [told(boundaries, min_length=one) for one in shortest]
    assert all(times(fewer) <= times(more) for more, fewer in pairwise(several))
    for seconds, kept in zip(shortest, several, strict=True):
        edges = [0.0, *(one.time for one in kept)]
        assert all(b - a >= seconds for a, b in pairwise(edges))


@given(found, lengths)
def test_a_stream_tells_above_its_rate_only_what_is_stronger_than_what_was_told_lately(boundaries, rates):
    several = [told(boundaries, max_per_minute=rate) for rate in rates]
    assert all(times(fewer) <= times(more) for fewer, more in pairwise(several))
    for rate, kept in zip(rates, several, strict=True):
        for earlier, later in pairwise(kept):
            assert later.time - earlier.time >= 90 / rate or later.score > earlier.score


@given(found, st.integers(0, 40), st.floats(1, 30), st.floats(0.5, 20))
def test_a_stream_decides_at_once_from_what_came_before(boundaries, cut, shortest, rate):
    wanted = {"min_length": shortest, "max_per_minute": rate}
    whole, early = told(boundaries, **wanted), told(boundaries[:cut], **wanted)
    assert early == whole[: len(early)]


@pytest.mark.parametrize("rate", [0.5, 2.0, 5.0])
def test_a_busy_stream_of_an_hour_keeps_its_rate_on_average(rate):
    drawn = Random(1)
    busy = [Boundary(n, n, n, drawn.random()) for n in range(1, 3600)]
    assert 0.7 < len(told(busy, max_per_minute=rate)) / (60 * rate) < 1.2


def test_the_weaker_of_two_neighbours_gives_way():
    some = [Boundary(t, t, t, s) for t, s in ((10.0, 1.0), (12.0, 3.0), (30.0, 2.0))]
    assert [one.time for one in selected(some, 0, 60, Selection(min_length=5))] == [12.0, 30.0]


def test_boundaries_are_ranked_by_their_peaks():
    some = [
        Boundary(10.0, 10.0, 10.0, 0.9, peak=0.95, kind="event"),
        Boundary(20.0, 20.0, 20.0, 0.3, peak=1.3, kind="gradual"),
        Boundary(20.5, 20.5, 20.5, 0.8, peak=0.8, kind="event"),
        Boundary(30.0, 30.0, 30.0, 0.2, peak=1.4, kind="cut"),
    ]
    chosen = [[one.time for one in selected(some, 0, 60, Selection(chapters=n))] for n in (2, 3, 4, 5)]
    assert chosen == [[30], [20, 30], [10, 20, 30], [10, 20, 30]], "no chapter is shorter than a second"


@pytest.mark.parametrize("stream", ["the feed", None])
def test_a_boundary_is_updated_after_the_next_one_came(stream):
    early, late = (Boundary(t, t, t, 1.0, peak=1.0) for t in (10.0, 10.5))
    choice = Choice(Selection(min_length=0.1), 0.0, stream)
    given = [*choice.take(early), *choice.take(late)]
    known = [replace(early, peak=9.0), replace(late, peak=3.0)]
    assert [choice.closes(one) for one in known] == [stream is not None] * 2
    assert [one.peak for one in given or choice.rest(20.0)] == ([1.0, 1.0] if stream else [9.0, 3.0])


def test_a_stream_has_no_chapters():
    with pytest.raises(ConfigError, match="the feed: chapters need a file"):
        Choice(Selection(chapters=3), 0.0, "the feed")


@pytest.mark.parametrize("wanted", [{"min_length": -1.0}, {"chapters": 0}, {"chapters": 2.5}, {"scenes": 3}])
def test_a_selection_that_makes_no_sense_is_refused_in_one_line(wanted):
    with pytest.raises(ConfigError, match=next(iter(wanted))):
        Detection([], [], 3.0).selected(**wanted)


@given(found)
def test_segments_cover_the_video_and_each_has_a_key_frame_within(boundaries):
    decisions = [Decision(n, n / 4, n * 7 % 5 / 5, 0, 0, 0, 0, False) for n in range(480)]
    segments = segments_of(boundaries[::-1], decisions, 0.0, END)
    assert (segments[0].start, segments[-1].end) == (0.0, END)
    assert all(a.end == b.start == b.boundary.time for a, b in pairwise(segments))
    assert all(one.start <= one.keyframe < one.end for one in segments)


def test_every_selection_chooses_from_all_that_was_found():
    some = [Boundary(t, t, t, t) for t in (10.0, 20.0, 30.0)]
    fewer = Detection(some, [], 60.0).selected(chapters=2)
    assert fewer.boundaries == some[2:]
    assert fewer.selected(chapters=3).boundaries == some[1:]
    assert fewer.selected().boundaries == fewer.found == some
