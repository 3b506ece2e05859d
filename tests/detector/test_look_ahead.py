"""Methods that look ahead: verdicts come late, each for its frame, and none is lost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ongebd
from ongebd.detector import OnlineDetector, Seen, SourceRun, StreamConfig, load
from ongebd.types import Boundary

EAST, NORTH = np.float32([1, 0, 0, 0]), np.float32([0, 1, 0, 0])


class Late:
    """Scores a frame by its feature's second number, three frames later."""

    name, latency, state_bytes = "late", 3, 0

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.held: list[float] = []

    def update(self, feature, time):
        self.held.append(float(feature[1]))
        return self.held.pop(0) if len(self.held) > self.latency else None

    def flush(self):
        held, self.held = self.held, []
        return held


@pytest.fixture
def new_late(stub, stub_model) -> Callable[[], OnlineDetector]:
    config = stub_model.configured(StreamConfig(head="threshold", threshold=0.5, min_gap=0.0))
    return lambda: OnlineDetector(stub, Late(), config)


@pytest.fixture
def late(new_late) -> OnlineDetector:
    return new_late()


def feed(stream, features):
    return [stream.update_feature(f, n / 24) for n, f in enumerate(features)]


def test_the_first_verdicts_are_pending(late):
    assert late.latency == pytest.approx(3 / 24)
    decisions = feed(late, [EAST] * 6)
    assert [d.pending for d in decisions] == [True] * 3 + [False] * 3
    assert [d.index for d in decisions] == [0, 1, 2, 0, 1, 2]
    assert not any(d.onset or d.is_boundary or d.ready for d in decisions[:3])
    assert [d.index for d in late.drain()] == [3, 4, 5]
    assert late.drain() == []
    assert late.flush() is None


def test_a_verdict_has_its_frames_time_and_a_boundary_the_time_when_it_was_known(late):
    decisions = feed(late, [EAST] * 5 + [NORTH] * 2 + [EAST] * 6)
    (onset,) = [d for d in decisions if d.onset]
    assert (onset.index, onset.time) == (5, 5 / 24)
    (boundary,) = [d.boundary for d in decisions if d.boundary]
    assert boundary.onset == 5 / 24
    assert boundary.time == pytest.approx(5.5 / 24)
    assert boundary.decided == (7 + 3) / 24, "the first negative frame, and three more"


@pytest.mark.parametrize("drained", [True, False])
def test_boundaries_among_the_last_frames_are_not_lost(late, drained):
    feed(late, [EAST] * 5 + [NORTH, EAST, NORTH])
    found = [d.boundary for d in late.drain() if d.boundary] if drained else []
    while (boundary := late.flush()) is not None:
        found.append(boundary)
    assert [b.onset for b in found] == [5 / 24, 7 / 24]
    assert all(b.decided == 7 / 24 for b in found)


def test_a_reset_forgets_the_frames_that_wait(late):
    feed(late, [NORTH])
    late.reset()
    assert feed(late, [EAST])[0].index == 0
    assert [d.index for d in late.drain()] == [0]


@pytest.mark.parametrize("explicit", [False, True], ids=["by the clock", "by new_epoch"])
@given(epochs=st.lists(st.lists(st.booleans(), min_size=1, max_size=9), min_size=1, max_size=6))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_epochs_have_the_decisions_and_boundaries_of_separate_streams(new_late, explicit, epochs):
    stream, decisions, boundaries = new_late(), [], []
    wanted, wanted_boundaries, frames = [], [], 0

    def take(decision):
        if not decision.pending:
            decisions.append((decision.index, decision.time, decision.onset))
        if decision.boundary is not None:
            boundaries.append(decision.boundary)

    for place, epoch in enumerate(epochs):
        begin = 24 * (100 - place)  # the clock steps back by a second with each
        if place and explicit and (boundary := stream.new_epoch()) is not None:
            boundaries.append(boundary)
        alone = new_late()
        for n, north in enumerate(epoch):
            take(stream.update_feature(NORTH if north else EAST, (begin + n) / 24))
        decided = [
            alone.update_feature(NORTH if north else EAST, (begin + n) / 24) for n, north in enumerate(epoch)
        ]
        decided = [decision for decision in [*decided, *alone.drain()] if not decision.pending]
        wanted += [(decision.index + frames, decision.time, decision.onset) for decision in decided]
        wanted_boundaries += [decision.boundary for decision in decided if decision.boundary is not None]
        while (boundary := alone.flush()) is not None:
            wanted_boundaries.append(boundary)
        frames += len(epoch)
    for decision in stream.drain():
        take(decision)
    while (boundary := stream.flush()) is not None:
        boundaries.append(boundary)
    assert decisions == wanted
    assert boundaries == wanted_boundaries


def test_a_run_over_a_file_gives_each_frame_its_own_verdict(tmp_path, make_video, make_scene):
    pictures = [make_scene(seed, 160, 120) for seed in (1, 2) for _ in range(30)]
    film = make_video(tmp_path / "film.mp4", pictures, rate=24)
    with SourceRun(film, load("predictability")) as run:
        events = list(run)
    seen = [event for event in events if isinstance(event, Seen)]
    assert [event.frame.index for event in seen] == [event.decision.index for event in seen] == [*range(60)]
    assert all(float(event.frame.time) == event.decision.time for event in seen)
    (boundary,) = [event for event in events if isinstance(event, Boundary)]
    assert boundary.time == pytest.approx(30 / 24, abs=2 / 24)
    assert boundary.decided >= boundary.onset + 4 / 24
    assert run.detector.latency == pytest.approx(4 / 24)


def test_a_method_may_look_at_pixels(tmp_path, make_video, make_scene):
    pytest.importorskip("scenedetect", reason="the extra `peers` is not installed")
    pictures = [make_scene(seed, 160, 120) for seed in (1, 2) for _ in range(30)]
    film = make_video(tmp_path / "film.mp4", pictures, rate=24)
    for kind in ("adaptive", "content", "hash"):
        (boundary,) = ongebd.detect(film, f"scenedetect-{kind}").boundaries
        assert boundary.onset == pytest.approx(30 / 24)
    clock = ongebd.detect(film, "clock:1").boundaries
    assert [boundary.onset for boundary in clock] == [1.0, 2.0]
