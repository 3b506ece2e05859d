from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest

from ongebd.output import RunEnd, RunHeader, Writer
from ongebd.types import Boundary, Decision, Frame

FPS = 24


@pytest.fixture
def header() -> RunHeader:
    return RunHeader(
        "films/clip.mp4", "persistence", {"fps": 24.0, "tau": 3.0, "flag": None}, 64, 36, "0.1.0", rate="24"
    )


@pytest.fixture
def some() -> list[Boundary]:
    return [Boundary(3.25, 3.1666666667, 3.375, 6.08), Boundary(7.5, 7.5, 7.541666666, 4.0)]


def run_of(frames: int, positive: Sequence[int] = ()) -> Iterator[tuple[Frame, Decision]]:
    """Decisions in which each index of `positive` is a boundary of one frame."""
    hits = set(positive)
    picture = np.zeros((36, 64, 3), np.uint8)
    for i in range(frames):
        time, hit = Fraction(i, FPS), i in hits
        boundary = None
        if i - 1 in hits:
            before = (i - 1) / FPS
            boundary = Boundary(before, before, float(time), 5.0 + (i % 7))
        error = 0.4 if hit else 0.02 + 0.01 * (i % 3)
        yield (
            Frame(i, time, picture),
            Decision(i, float(time), error, 0.03, 0.01, 3.0, 0.06, hit, i >= 8, hit, boundary),
        )


@pytest.fixture
def play() -> Callable[..., RunEnd]:
    """Feed a synthetic run to a sink and close it."""

    def feed(sink: Writer, frames: int, positive: Sequence[int] = ()) -> RunEnd:
        found = 0
        for frame, decision in run_of(frames, positive):
            sink.decision(frame, decision)
            if decision.boundary:
                found += 1
                sink.boundary(decision.boundary)
        end = RunEnd(True, frames / FPS, frames, found)
        sink.close(end)
        return end

    return feed
