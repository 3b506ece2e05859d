"""Thinning to a rate: on times alone, never twice the same frame, none invented."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.video.timing import Sampler, exact_rate

rates = st.fractions(Fraction(1, 2), 120, max_denominator=1001)
gaps = st.lists(st.fractions(0, 2, max_denominator=1000), min_size=1, max_size=120)


def taken(times, fps) -> list[int]:
    sampler = Sampler(Fraction(fps))
    return [n for n, time in enumerate(times) if sampler.take(Fraction(time))]


def rising(gaps) -> list[Fraction]:
    times = [Fraction(0)]
    for gap in gaps[:-1]:
        times.append(times[-1] + gap)
    return times


@given(gaps, rates)
def test_each_slot_that_has_a_frame_gives_one_and_the_first_frame_is_taken(gaps, fps):
    times = rising(gaps)
    sample = taken(times, fps)
    slots = Counter(floor(times[n] * fps + Fraction(1, 4)) for n in sample)
    assert sample[0] == 0
    assert max(slots.values()) == 1
    assert len(slots) == len({floor(time * fps + Fraction(1, 4)) for time in times})


@given(gaps, rates, st.integers(0, 119))
def test_the_future_does_not_change_what_was_taken(gaps, fps, cut):
    times = rising(gaps)
    assert taken(times[:cut], fps) == [n for n in taken(times, fps) if n < cut]


@given(rates, st.integers(0, 400))
def test_a_source_at_the_rate_keeps_every_frame_though_rounded_to_milliseconds(fps, count):
    exact = [n / fps for n in range(count)]
    assert taken(exact, fps) == [*range(count)]
    rounded = [Fraction(round(time * 1000), 1000) for time in exact]
    assert taken(rounded, fps) == [*range(count)]


@given(st.lists(st.floats(-0.2, 0.2), min_size=2, max_size=200))
def test_jitter_of_a_fifth_of_a_frame_loses_none(jitter):
    times = [max(Fraction(0), (n + Fraction(shift)) / 24) for n, shift in enumerate(jitter)]
    assert taken(times, 24) == [*range(len(times))]


def test_thirty_to_twenty_four_takes_four_of_five_all_along():
    sample = taken([Fraction(n, 30) for n in range(3000)], 24)
    assert len(sample) == 2400
    assert Counter(after - before for before, after in pairwise(sample)) == {1: 1799, 2: 600}


def test_a_slower_source_gives_each_frame_once_and_says_so_once(tmp_path, make_video, make_numbered, read):
    path = make_video(tmp_path / "slow.mp4", make_numbered(40), rate=10)
    video, frames = read(path, fps=24)
    assert [frame.time for frame in frames] == [Fraction(n, 10) for n in range(40)]
    (warning,) = video.warnings
    assert warning == ("the source has only 10 frames/s, fewer than 24; every frame is used once")


def test_a_faster_source_is_thinned_without_a_word(tmp_path, make_video, make_numbered, read, read_number):
    path = make_video(tmp_path / "fast.mp4", make_numbered(120), rate=60)
    video, frames = read(path, fps=24)
    assert len(frames) == 48
    assert [frame.index for frame in frames] == [*range(48)]
    assert all(read_number(frame.rgb) == frame.time * 60 for frame in frames)
    assert video.warnings == []
    assert video.decoded == 120


def test_a_24_fps_matroska_file_with_times_in_milliseconds_keeps_all(
    tmp_path, make_video, make_numbered, read
):
    for rate in (24, Fraction(24000, 1001)):
        path = make_video(tmp_path / "film.mkv", make_numbered(240), rate=rate)
        video, frames = read(path, fps=24.0)
        assert len(frames) == 240
        assert video.warnings == []


def test_the_first_frame_of_an_epoch_is_taken_always(tmp_path, make_video, make_numbered, read):
    part = make_video(tmp_path / "part.ts", make_numbered(5), rate=25)
    joined = tmp_path / "joined.ts"
    joined.write_bytes(part.read_bytes() * 4)
    _, frames = read(joined, fps=2)
    assert [(frame.epoch, frame.time * 25) for frame in frames] == [(0, 0), (1, 5), (2, 10), (3, 15)]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (24, Fraction(24)),
        (24.0, Fraction(24)),
        (1.0, Fraction(1)),
        (6.0, Fraction(6)),
        (0.001, Fraction(0.001)),
        (12.5, Fraction(25, 2)),
        (23.976, Fraction(24000, 1001)),
        (23.98, Fraction(24000, 1001)),
        (29.97, Fraction(30000, 1001)),
        (59.94, Fraction(60000, 1001)),
        (Fraction(299, 10), Fraction(299, 10)),
    ],
)
def test_a_rate_means_what_it_says_and_ntsc_rates_are_exact(given, meant):
    assert exact_rate(given) == meant


def sampled(steps, count=250, lost=lambda n: False) -> Sampler:
    sampler, time = Sampler(Fraction(24)), Fraction(0)
    for n in range(count):
        if not lost(n):
            sampler.take(time)
        time += steps[n % len(steps)]
    return sampler


@pytest.mark.parametrize(
    "steps", [(Fraction(1, 50), Fraction(1, 20)), (Fraction(1, 48),), (Fraction(1, 60),), (Fraction(1, 25),)]
)
def test_an_uneven_or_fast_source_is_not_slow(steps):
    assert not sampled(steps).shortfall


def test_a_source_of_the_full_rate_with_gaps_is_not_slow():
    assert not sampled((Fraction(1, 25),), lost=lambda n: n % 50 <= 8).shortfall


@pytest.mark.parametrize("rate", [1, 5, 10, 12, 15, 20, 23])
def test_a_slow_source_is_slow_whatever_was_lost(rate):
    sampler = sampled((Fraction(1, rate),), lost=lambda n: n % 50 <= 8)
    assert sampler.shortfall
    assert sampler.rate == pytest.approx(rate, rel=1e-3)
