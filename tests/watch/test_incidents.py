"""Boundaries become incidents: nothing is lost, and each incident is told once, with its best picture."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from ongebd.detector import Model
from ongebd.types import Boundary, Frame
from ongebd.watch import Watcher
from ongebd.watch.history import Best
from ongebd.watch.incidents import GAP, LOOK, Incidents
from ongebd.watch.records import Incident, Onset, Point, Updated

from .conftest import QUICK, MadeReader, everything, opens

FPS = 8
ONCE = replace(QUICK, retries=1, first_delay=0.001, longest_delay=0.001)


def point(time: float) -> Point:
    return Point("door", 0, time, 1000 + time, 0, 0, 0, 0, 0, False, True)


def played(incidents: Incidents, arrivals: Iterable[tuple[float, float]], seconds: float) -> list[Incident]:
    """The records of a stream whose boundaries begin at these times, with these peaks."""
    due, told, closing = sorted(arrivals), [], []
    for frame in range(int(seconds * FPS) + 1):
        time = frame / FPS
        told += incidents.take(point(time))
        while due and due[0][0] <= time:
            peak = due.pop(0)[1]
            onset = Onset("door", 1 + len(closing), 0, time, 1000 + time, peak / 2, False)
            told += incidents.take(onset)
            closing.append((onset, peak))
        for onset, peak in closing:
            if onset.time == time - 1:
                boundary = Boundary(onset.time, onset.time, onset.time, onset.score, peak=peak, kind="event")
                told += incidents.take(Updated("door", onset.number, 0, boundary, 1000 + time))
    return told + incidents.end()


arrivals = st.lists(
    st.tuples(st.integers(0, 120 * FPS).map(lambda n: n / FPS), st.floats(0.1, 1)),
    max_size=30,
    unique_by=lambda one: one[0],
)


@given(arrivals)
def test_every_boundary_is_in_one_incident_that_is_told_in_time(arrivals: list[tuple[float, float]]) -> None:
    told = played(Incidents(), arrivals, 130)
    over = [one for one in told if one.state == "ended"]
    assert [one.number for one in over] == list(range(1, len(over) + 1))
    assert sum(one.count for one in over) == len(arrivals)
    for time, peak in arrivals:
        (mine,) = [one for one in over if one.start <= time <= (one.end or 0)]
        assert mine.peak >= peak / 2
    for one, following in pairwise(over):
        assert following.start - (one.end or 0) >= GAP
    for one in over:
        states = [record.state for record in told if record.number == one.number]
        assert states[0] == "started"
        assert states.count("started") == states.count("ended") == 1


@given(arrivals)
def test_an_incident_starts_no_later_than_its_picture_needs(arrivals: list[tuple[float, float]]) -> None:
    incidents = Incidents()
    times = {time for time, _ in arrivals}
    number = 0
    for frame in range(130 * FPS):
        time = frame / FPS
        for record in incidents.take(point(time)):
            if record.state == "started":
                assert time - record.start <= LOOK + 1 / FPS
        if time in times:
            number += 1
            incidents.take(Onset("door", number, 0, time, time, 0.5, False))


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
        assert watcher.join(10)
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
