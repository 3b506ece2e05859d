"""Boundaries become incidents: nothing is lost, and each incident is told once, with its best picture."""

from __future__ import annotations

import io
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from ongebd.detector import Model
from ongebd.errors import ConfigError
from ongebd.types import Boundary, Frame
from ongebd.watch import Watcher
from ongebd.watch.history import Best
from ongebd.watch.incidents import GAP, LONGEST, LOOK, REPEATS, Alerts, Incidents
from ongebd.watch.records import Digest, Incident, Onset, Point, Updated

from .conftest import QUICK, MadeReader, everything, opens

FPS = 8
ONCE = replace(QUICK, retries=1, first_delay=0.001, longest_delay=0.001)


WALL = datetime(2026, 11, 28, 8).timestamp()
ALL = Alerts(alerts_per_hour=10_000, alerts_per_day=10_000)


def played(
    incidents: Incidents,
    arrivals: Iterable[tuple[float, float]],
    seconds: float,
    looks: Mapping[float, int] | None = None,
    fps: float = FPS,
) -> list[tuple[float, Incident]]:
    """When which records come of a stream whose boundaries begin at these times, with these peaks."""
    due, told, closing = sorted(arrivals), list[tuple[float, Incident]](), list[tuple[Onset, float]]()
    time, look = 0.0, None
    for frame in range(int(seconds * fps) + 1):
        time = frame / fps
        now = incidents.take(Point("door", 0, time, WALL + time, 0, 0, 0, 0, 0, False, True))
        told += [(time, one) for one in now if isinstance(one, Incident)]
        while due and due[0][0] <= time:
            start, peak = due.pop(0)
            onset = Onset("door", 1 + len(closing), 0, time, WALL + time, peak / 2, False)
            incidents.take(onset)
            closing.append((onset, peak))
            look = None if looks is None else np.eye(64, dtype=np.float32)[looks[start]]
        if incidents.looks(time):
            incidents.improves(0.0, look)
        for onset, peak in closing:
            if onset.time + 1 <= time < onset.time + 1 + 1 / fps:
                boundary = Boundary(onset.time, onset.time, onset.time, onset.score, peak=peak, kind="event")
                incidents.take(Updated("door", onset.number, 0, boundary, WALL + time))
    return told + [(time, one) for one in incidents.end() if isinstance(one, Incident)]


arrivals = st.lists(
    st.tuples(st.integers(0, 120 * FPS).map(lambda n: n / FPS), st.floats(0.1, 1)),
    max_size=30,
    unique_by=lambda one: one[0],
)


@given(arrivals)
def test_every_boundary_is_in_one_incident_that_is_told_in_time(arrivals: list[tuple[float, float]]) -> None:
    told = [one for _, one in played(Incidents(ALL), arrivals, 130)]
    over = [one for one in told if one.state == "ended"]
    assert [one.number for one in over] == list(range(1, len(over) + 1))
    assert sum(one.count for one in over) == len(arrivals)
    for time, peak in arrivals:
        (mine,) = [one for one in over if one.start <= time <= (one.end or 0)]
        assert mine.peak >= peak / 2
    for one, following in pairwise(over):
        assert following.start - (one.end or 0) >= GAP or following.start - one.start >= LONGEST
    for one in over:
        states = [record.state for record in told if record.number == one.number]
        assert states[0] == "started"
        assert states.count("started") == states.count("ended") == 1


@given(arrivals)
def test_an_incident_starts_no_later_than_its_picture_needs(arrivals: list[tuple[float, float]]) -> None:
    for time, record in played(Incidents(ALL), arrivals, 130):
        assert record.state != "started" or time - record.start <= LOOK + 1 / FPS


def alerts_of(told: Iterable[tuple[float, Incident]]) -> dict[int, float]:
    """When each incident was told as an alert, by its number."""
    first = dict[int, float]()
    for time, record in told:
        if record.held is None:
            first.setdefault(record.number, time)
    return first


@settings(max_examples=6)
@given(st.integers(0, 9), st.sampled_from([5.0, 30.0, 60.0]))
def test_no_arrival_of_200_visits_is_lost_to_the_cooldown(seed: int, cooldown: float) -> None:
    chance = random.Random(seed)
    visits, time = list[tuple[float, float]](), 5.0
    for _ in range(200):  # whoever comes is weaker than whoever leaves
        visits += [(round(time), chance.uniform(0.3, 0.6)), (round(time + 3), chance.uniform(0.6, 1))]
        time += chance.choice([8, 15, 40])
    told = played(Incidents(replace(ALL, cooldown=cooldown)), visits, time + 100, fps=1)
    alerts, over = alerts_of(told), [one for _, one in told if one.state == "ended"]
    assert len(alerts) <= 1.5 * len(over)
    for arrival, peak in visits:
        (mine,) = [one for one in over if one.start <= arrival <= (one.end or 0)]
        assert mine.peak >= peak / 2
        assert alerts[mine.number] <= mine.start + cooldown + LOOK + 1


def test_a_stronger_incident_is_told_within_the_cooldown_and_a_weaker_one_after_it() -> None:
    incidents = Incidents(replace(ALL, cooldown=60))
    told = played(incidents, [(5, 0.6), (20, 0.5), (40, 0.9), (90, 0.4)], 200)
    alerts = alerts_of(told)
    assert [round(alerts[number]) for number in sorted(alerts)] == [7, 42, 102]
    counts = {one.number: one.count for _, one in told if one.state == "ended"}
    assert counts == {1: 1, 2: 2, 3: 1}


@settings(max_examples=4)
@example(4, 1)
@given(st.integers(0, 9), st.sampled_from([1, 2, 10, 15]))
def test_alerts_an_hour_are_never_more_and_the_last_ones_stand_out(seed: int, most: int) -> None:
    chance = random.Random(seed)
    busy = [(float(time), chance.uniform(0.3, 0.9)) for time in range(5, 3 * 3600, 20)] + [(9010.0, 0.99)]
    incidents = Incidents(replace(ALL, alerts_per_hour=most))
    told = played(incidents, busy, 3 * 3600, fps=1)
    starts = {one.number: one.start for _, one in told}
    alerts = sorted(starts[number] for number in alerts_of(told))
    assert all(sum(start < one <= start + 3600 for one in alerts) <= most for start in (0.0, *alerts))
    assert len(alerts) >= 2 * most
    late = {one.peak for _, one in told if one.held is None and one.start > 7200}
    assert all(peak > 0.5 for peak in late) or most > 10


def test_what_repeats_is_held_after_a_while_and_news_again_when_it_was_gone() -> None:
    lights = {30.0 + 60 * minute: 0 for minute in (*range(60), *range(180, 200))}
    visits = {55.0 + 600 * ten: 1 + ten for ten in range(20)}
    looks, peaks = lights | visits, {**dict.fromkeys(lights, 0.7), **dict.fromkeys(visits, 0.5)}
    told = played(Incidents(replace(ALL, alerts_per_hour=60)), peaks.items(), 12_300, looks, fps=1)
    over = [one for _, one in told if one.state == "ended"]
    assert not any(one.held for one in over if one.start in visits)
    held = [one.start for one in over if one.held == "repeats"]
    assert held == [one for one in lights if REPEATS * 60 < one < 3600 or one > 180 * 60 + REPEATS * 60]
    loud = played(Incidents(replace(ALL, quieten=False)), peaks.items(), 12_300, looks, fps=1)
    assert not any(one.held for _, one in loud)


def test_the_days_alerts_are_capped_and_a_digest_tells_of_the_rest() -> None:
    incidents = Incidents(replace(ALL, alerts_per_day=3))
    told = played(incidents, [(60.0 * n, n / 10) for n in range(1, 8)], 500)
    assert len(alerts_of(told)) == 3
    midnight = datetime.fromtimestamp(WALL + 86_400).replace(hour=0).timestamp() - WALL
    (digest,) = incidents.take(Point("door", 0, midnight, WALL, 0, 0, 0, 0, 0, False, True))
    assert digest == Digest("door", WALL + 420, "2026-11-28", 3, {"cap": 4}, (7, 6, 5, 4))
    assert incidents.digest() == []


def test_outside_the_active_hours_incidents_are_held() -> None:
    for hours, held in (("22:00-06:00", "hours"), ("07:30-08:30", None), ("08:30-08:00", "hours")):
        told = played(Incidents(replace(ALL, active=hours)), [(5, 0.5)], 20)
        assert {one.held for _, one in told} == {held}
    with pytest.raises(ConfigError, match="active must be hours of the day such as 22:00-06:00, not 25:00"):
        Alerts(active="25:00")


def test_the_best_picture_is_the_sharpest_and_most_different_one(light_model: Model) -> None:
    empty, blurred, sharp = (np.full((60, 80, 3), (200, 10, 10), np.uint8) for _ in range(3))
    blurred[:, :, :2] = sharp[:, :, :2] = 10, 90
    sharp[10:50, 20:60] = 250 * (np.indices((40, 40)).sum(0) % 2)[..., None]
    shown = [empty] * 60 + [blurred] * 10 + [sharp] * 10 + [empty] * 100
    frames = [Frame(n, Fraction(n, 24), one, preview=one) for n, one in enumerate(shown)]
    watcher = Watcher(
        ["door=rtsp://made/1"],
        model=light_model,
        opener=opens(MadeReader(frames)),
        patience=ONCE,
        max_pending=1000,
    )
    with watcher.hub.subscribe(Incident) as told, watcher:
        assert watcher.join(60)
        records = everything(told)
    first = next(one for one in records if one.start >= 2)
    history = watcher.streams["door"].history
    assert first.has_picture
    best, onset = (
        np.asarray(Image.open(io.BytesIO(history.picture(of) or b"")))[:, :, 1].std()
        for of in (Best(first.number), first.first)
    )
    assert onset < 50 < best
    newest = {one.number: one.state for one in records}
    assert list(newest.values()) == ["ended"] * len(newest)
