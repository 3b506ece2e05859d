"""The clock alone, on stamps of every kind."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.video.timing import Clock

MS = Fraction(1, 1000)
stamps = st.one_of(st.none(), st.integers(-5000, 5000))


@given(st.lists(st.tuples(stamps, stamps, st.integers(0, 100)), max_size=60), st.booleans())
def test_time_starts_at_zero_and_never_decreases_whatever_the_stamps(frames, trust_pts):
    clock = Clock(trust_pts=trust_pts)
    times = [clock.tick(pts, dts, duration, MS).time for pts, dts, duration in frames]
    assert times == sorted(times)
    assert not times or times[0] == 0


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60), st.integers(-(10**9), 10**9))
def test_rising_stamps_are_kept_exactly_from_any_start(gaps, start):
    pts = [start + sum(gaps[:n]) for n in range(len(gaps))]
    clock = Clock()
    ticks = [clock.tick(stamp, None, 0, MS) for stamp in pts]
    assert [tick.time for tick in ticks] == [(stamp - pts[0]) * MS for stamp in pts]
    assert not any(tick.broke for tick in ticks)


def test_single_frames_without_a_stamp_follow_at_the_last_distance():
    clock = Clock()
    times = [clock.tick(pts, None, 0, MS).time for pts in (0, 40, 80, None, 160)]
    assert times == [n * 40 * MS for n in range(5)]
    assert clock.untimed == 0


def test_frames_are_untimed_only_where_nothing_tells_their_time():
    clock = Clock(Fraction(10))
    assert [clock.tick(None, None, 0, MS).time for _ in range(3)] == [0, Fraction(1, 10), Fraction(1, 5)]
    assert clock.untimed == 3


def test_a_new_epoch_keeps_its_own_distances():
    clock = Clock()
    ticks = [clock.tick(pts, pts, 0, MS) for pts in (1000, 1040, 1080, 0, 20, 40)]
    assert [tick.time / MS for tick in ticks] == [0, 40, 80, 120, 140, 160]
    assert [tick.broke for tick in ticks] == [
        None,
        None,
        None,
        "the clock stepped back by 1.08 s",
        None,
        None,
    ]


@pytest.mark.parametrize("jump", [3600_000, 10**12])
def test_a_jump_ahead_is_believed(jump):
    clock = Clock()
    assert [clock.tick(pts, None, 0, MS).time / MS for pts in (0, 40, 40 + jump)] == [0, 40, 40 + jump]
