"""One head or another on the same scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.detector import StreamConfig, load
from ongebd.detector.judge import ThresholdHead
from ongebd.errors import ConfigError
from ongebd.estimator import BoundaryDiscriminator

FULL = load("window-mean").defaults


def test_the_discriminator_is_the_head_where_none_is_named():
    assert isinstance(StreamConfig().filled(FULL).new_head(), BoundaryDiscriminator)
    assert isinstance(StreamConfig(head="obd").filled(FULL).new_head(), BoundaryDiscriminator)


def test_a_fixed_threshold():
    head = StreamConfig(head="threshold", threshold=0.3).filled(FULL).new_head()
    assert isinstance(head, ThresholdHead)
    assert [head.update(score).is_boundary for score in (0.1, 0.3, 0.31, 5)] == [False, False, True, True]
    assert (head.z, head.threshold, head.ready) == (5, 0.3, True)
    head.reset()
    assert (head.z, head.ready, head.is_boundary) == (0, False, False)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"head": "magic"}, "head must be one of hysteresis, obd, threshold, not 'magic'"),
        ({"head": "threshold"}, "head threshold needs threshold"),
        ({"head": "threshold", "threshold": float("nan")}, "threshold must be a finite number"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        load("window-mean").stream(**settings)


def test_two_heads_judge_the_same_errors(detector):
    """The same errors, decided by two heads."""
    east, north = np.float32([1, 0, 0, 0]), np.float32([1, 1, 0, 0])
    features = [east] * 30 + [north] * 30
    by_head = {}
    for head in ({}, {"head": "threshold", "threshold": 0.01}):
        stream = detector(**head)
        decisions = [stream.update_feature(f, n / 24) for n, f in enumerate(features)]
        by_head[stream.config.head] = decisions
    assert [d.error for d in by_head[None]] == [d.error for d in by_head["threshold"]]
    assert [d.index for d in by_head[None] if d.onset] == [30]
    assert [d.index for d in by_head["threshold"] if d.onset] == [30]
    assert sum(d.is_boundary for d in by_head["threshold"]) > sum(d.is_boundary for d in by_head[None])


@given(st.lists(st.floats(0, 1), max_size=60), st.floats(0.01, 0.99), st.floats(0.01, 1))
def test_hysteresis_begins_above_the_threshold_and_ends_below_its_share(scores, threshold, rearm):
    head, before = ThresholdHead(threshold, rearm), False
    for score in scores:
        now = head.update(score).is_boundary
        assert now == (score >= rearm * threshold if before else score > threshold)
        assert (head.z, head.threshold, head.ready) == (score, threshold, True)
        before = now
    head.reset()
    assert not head.is_boundary
    assert not head.ready
