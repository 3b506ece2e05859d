"""The methods that need no training: a clock, and the original paper's predictability made to stream."""

from __future__ import annotations

import numpy as np
import pytest

from ongebd.baselines.naive import Clock
from ongebd.baselines.predictability import Predictability
from ongebd.errors import ConfigError

NOTHING = np.zeros(1, np.float32)


@pytest.mark.parametrize(("period", "fps"), [(1.0, 24), (1.5, 29.97), (2.0, 6), (0.1, 50)])
def test_the_clock_strikes_once_a_period(period, fps):
    clock = Clock(period)
    times = 3.0 + np.arange(round(10 * fps)) / fps
    struck = [time - times[0] for time in times if clock.update(NOTHING, time)]
    assert len(struck) == int((times[-1] - times[0]) / period + 1e-6)
    for number, time in enumerate(struck, start=1):
        assert -1e-4 <= time - number * period < 1 / fps + 1e-4, "with the first frame at or after it"


def test_the_clock_strikes_once_if_frames_are_rarer_than_its_period():
    clock = Clock(0.5)
    assert [clock.update(NOTHING, time) for time in (0.0, 2.0, 4.0)] == [None, 1.0, 1.0]
    clock.reset()
    assert clock.update(NOTHING, 9.0) is None
    assert clock.flush() == []


@pytest.mark.parametrize("period", [0.0, -1.0, np.inf, np.nan])
def test_a_clock_needs_a_period(period):
    with pytest.raises(ConfigError, match="the clock's period must be a number of seconds above 0"):
        Clock(period)


def whole(features: np.ndarray, before: int, after: int) -> list[float | None]:
    """The score of every frame, from all of them."""
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    out: list[float | None] = [None]
    for place in range(1, len(unit)):
        earlier = unit[max(0, place - before) : place].mean(axis=0)
        later = unit[place : place + after].mean(axis=0)
        out.append(float(((earlier - later) ** 2).sum() / 4))
    return out


@pytest.mark.parametrize("count", [1, 2, 4, 5, 6, 40])
@pytest.mark.parametrize("after", [1, 5])
def test_scores_come_late_and_each_is_that_of_its_frame(count, after):
    features = np.random.default_rng(count).random((count, 7)).astype(np.float32) + 0.1
    scorer = Predictability(before=4, after=after)
    assert scorer.latency == after - 1
    updates = [scorer.update(feature, 0.0) for feature in features]
    assert updates[: scorer.latency] == [None] * min(count, scorer.latency)
    scores = updates[scorer.latency :] + scorer.flush()
    assert len(scores) == count
    assert scores[0] is None
    np.testing.assert_allclose(scores[1:], whole(features.astype(np.float64), 4, after)[1:], atol=1e-12)


def test_predictability_peaks_at_the_change_and_forgets_it():
    east, north = np.float32([1, 0]), np.float32([0, 9])
    scorer = Predictability(before=8, after=5)
    for _ in range(2):
        updates = [scorer.update(feature, 0.0) for feature in [east] * 20 + [north] * 20]
        scores = np.array(updates[4:] + scorer.flush(), dtype=np.float64)
        assert np.nanargmax(scores) == 20
        assert scores[20] == pytest.approx(0.5)
        scorer.reset()
    assert scorer.state_bytes == 0
