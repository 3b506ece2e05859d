"""Heads on the same scores, and the sensitivity that sets the τ or threshold of each."""

from __future__ import annotations

from dataclasses import replace

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


WINDOW_MEAN, IMMEDIATE = load("window-mean"), load("immediate")
within = st.floats(0.001, 0.999)


@given(within, within)
def test_a_higher_sensitivity_never_raises_the_threshold(one, other):
    low, high = sorted((one, other))
    assert WINDOW_MEAN.configured(sensitivity=low).tau >= WINDOW_MEAN.configured(sensitivity=high).tau
    thresholds = [IMMEDIATE.configured(sensitivity=s).threshold for s in (low, high)]
    assert thresholds[0] >= thresholds[1] > 0
    assert thresholds[0] < 1


@pytest.mark.parametrize("name", ["window-mean", "persistence", "predictability", "immediate"])
def test_a_sensitivity_of_a_half_is_the_default(name):
    model = load(name)
    own, half = model.configured(), model.configured(sensitivity=0.5)
    assert (half.tau, half.threshold, half.head) == (own.tau, own.threshold, own.head)


def test_a_quarter_less_doubles_tau():
    taus = [WINDOW_MEAN.configured(sensitivity=s).tau for s in (0.25, 0.5, 0.75)]
    assert taus == [5.0, 2.5, 1.25]


@given(within, st.sampled_from([WINDOW_MEAN, IMMEDIATE]))
def test_settings_that_were_filled_may_be_filled_again(sensitivity, model):
    once = model.configured(sensitivity=sensitivity)
    assert model.configured(once) == once
    assert once.sensitivity == sensitivity
    assert model.configured(model.configured()) == model.configured()


def test_a_set_value_overrides_a_default_of_the_other_knob():
    pool = IMMEDIATE.configured(sensitivity=0.7)
    assert StreamConfig(threshold=0.4).filled(pool) == replace(pool, sensitivity=None, threshold=0.4)
    wanted = IMMEDIATE.configured(StreamConfig(sensitivity=0.2).filled(pool))
    assert wanted == IMMEDIATE.configured(sensitivity=0.2)
    assert IMMEDIATE.configured(threshold=0.4).sensitivity is None


@pytest.mark.parametrize(
    ("name", "asked", "message"),
    [
        ("immediate", {"sensitivity": 0.7, "threshold": 0.9}, "replaces threshold: set only one of them"),
        ("window-mean", {"sensitivity": 0.7, "tau": 9}, "replaces tau: set only one of them"),
        ("window-mean", {"sensitivity": 0.7, "threshold": 0.9}, "replaces threshold"),
        ("clock", {"sensitivity": 0.7}, "^clock has no sensitivity; leave it out or choose another model$"),
        (
            "window-mean",
            {"sensitivity": 0.7, "head": "threshold"},
            "window-mean with the head threshold has no",
        ),
        ("immediate", {"tau": 3}, "^immediate doesn't use tau; its head, hysteresis, uses threshold, rearm$"),
        ("immediate", {"window": 3}, "immediate doesn't use window"),
        ("immediate", {"head": "obd"}, "head obd needs tau, delta, warmup, min_std, min_error"),
        ("immediate", {"inliers_only": True}, "immediate doesn't use inliers_only"),
        ("window-mean", {"threshold": 0.9}, "its head, obd, uses tau, delta"),
        ("window-mean", {"rearm": 0.1}, "window-mean doesn't use rearm"),
        ("window-mean", {"head": "threshold", "threshold": 0.3, "delta": 9}, "window-mean doesn't use delta"),
        ("clock", {"tau": 99}, "clock doesn't use tau; its head, threshold, uses threshold"),
        ("immediate", {"min_std": 0.0}, "immediate doesn't use min_std"),
        ("immediate", {"sensitivity": 0}, "sensitivity must be"),
        ("immediate", {"sensitivity": float("nan")}, "sensitivity must be"),
        ("immediate", {"rearm": 0}, "rearm must be above 0 and at most 1"),
        ("immediate", {"threshold": 0}, "threshold must be above 0"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(name, asked, message):
    with pytest.raises(ConfigError, match=message) as refused:
        load(name).configured(**asked)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["immediate", "window-mean", "clock", "predictability"])
def test_a_streams_settings_can_be_reused(name):
    model = load(name)
    assert model.configured(model.configured()) == model.configured()


@pytest.mark.parametrize(
    ("name", "head", "used"),
    [
        ("immediate", None, "fps sensitivity min_gap max_run head threshold rearm"),
        (
            "persistence",
            None,
            "fps sensitivity tau delta warmup min_std min_error min_gap max_run head inliers_only",
        ),
        ("window-mean", "threshold", "fps window min_gap max_run head threshold"),
        ("clock", None, "fps min_gap max_run head threshold"),
    ],
)
def test_a_model_names_the_settings_that_it_uses(name, head, used):
    assert load(name).settings(head) == used.split()


def test_another_head_can_judge_the_scores_of_a_learned_model():
    values = {"tau": 3.0, "delta": 21, "warmup": 8, "min_std": 0.01, "min_error": 0.1}
    filled = IMMEDIATE.configured(head="obd", **values)
    assert filled.new_head().threshold == 0.1
    assert IMMEDIATE.configured(head="threshold").threshold == IMMEDIATE.defaults.threshold
