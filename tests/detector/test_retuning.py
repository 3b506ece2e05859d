"""Another sensitivity for a running stream: it acts from the next score on, and nothing is forgotten."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ongebd
from ongebd.baselines.pictures import Pictures
from ongebd.detector import Model, StreamConfig
from ongebd.detector.judge import ThresholdHead
from ongebd.errors import ConfigError

LIGHT = replace(ongebd.load("window-mean"), backbone=Pictures(4, 2))
RNG = np.random.default_rng(0)
FEATURES = RNG.uniform(1, 9, (120, LIGHT.backbone.dim)).astype(np.float32)


@settings(max_examples=30)
@given(st.integers(0, 119), st.floats(0.1, 0.9))
def test_retuning_changes_the_threshold_and_no_error_or_moment(when, sensitivity):
    plain, retuned = LIGHT.stream(), LIGHT.stream()
    wanted = LIGHT.configured(sensitivity=sensitivity)
    for index, feature in enumerate(FEATURES):
        if index == when:
            retuned.retune(wanted)
        one, other = (detector.update_feature(feature, index / 24) for detector in (plain, retuned))
        assert (one.error, one.mean, one.std, one.z) == (other.error, other.mean, other.std, other.z)
        if index == 0:  # nothing predicts it, so no head has judged it
            continue
        tau = wanted.tau if index >= when else LIGHT.defaults.tau
        spread = max(other.std, LIGHT.defaults.min_std)
        assert other.threshold == max(other.mean + tau * spread, LIGHT.defaults.min_error)


def test_a_head_with_hysteresis_keeps_whether_it_was_positive():
    model = ongebd.load("immediate")
    detector = model.stream()
    head = detector._judge.head
    assert isinstance(head, ThresholdHead)
    head.is_boundary = True
    detector.retune(model.configured(sensitivity=0.8))
    assert head.is_boundary
    assert head.threshold == model.configured(sensitivity=0.8).threshold
    assert detector.config.sensitivity == 0.8


def test_a_pool_retunes_a_stream_after_the_frames_before_and_no_other():
    with ongebd.StreamPool(LIGHT, max_pending=1000) as pool:
        streams = [pool.add(name=0), pool.add(name=1)]
        for index, feature in enumerate(FEATURES):
            if index == 50:
                streams[1].retune(sensitivity=0.8)
            for stream in streams:
                stream.submit_feature(feature, index / 24)
        assert pool.wait(60)
        results = pool.poll()
        assert streams[1].config.sensitivity == 0.8
        assert streams[0].config.sensitivity is None
    for number in (0, 1):
        wanted = LIGHT.stream()
        decisions = []
        for index, feature in enumerate(FEATURES):
            if index == 50 and number == 1:
                wanted.retune(LIGHT.configured(sensitivity=0.8))
            decisions.append(wanted.update_feature(feature, index / 24))
        assert [r.decision for r in results if r.stream.name == number and r.decision] == decisions
    assert [r.ended for r in results if r.ended] == ["retune"]


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
@pytest.mark.parametrize("head", [{}, {"head": "threshold", "threshold": 0.4}])
def test_a_gpus_runtime_retunes_like_a_detector(head):
    import torch

    from ongebd.backbones.torch_backbone import TorchBackbone
    from ongebd.baselines.naive import WindowMean
    from ongebd.pool.gpu import GpuRuntime

    torch.manual_seed(3)
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    backbone = TorchBackbone("tiny", network, dim=8, input_size=16, resize_size=20)
    model = Model("tiny", "", backbone, LIGHT.defaults, method=lambda config: WindowMean(config.window))
    detector = model.stream(StreamConfig(**head))
    knob = "threshold" if head else "tau"
    wanted = []
    with ongebd.StreamPool(model, runtime=GpuRuntime(model, device="cpu", precision="float32")) as pool:
        stream = pool.add(StreamConfig(**head))
        for index, feature in enumerate(RNG.uniform(1, 9, (60, 8)).astype(np.float32)):
            if index == 30:
                stream.retune(**{knob: 0.7})
                detector.retune(replace(detector.config, **{knob: 0.7}))
            stream.submit_feature(feature, index / 24)
            wanted.append(detector.update_feature(feature, index / 24))
        assert stream.config == detector.config
    decisions = [result.decision for result in pool.poll() if result.decision]
    for ours, other in zip(decisions, wanted, strict=True):
        assert ours.threshold == pytest.approx(other.threshold, rel=1e-6)
        assert ours.is_boundary == other.is_boundary


def test_only_the_knobs_may_change():
    detector = LIGHT.stream()
    with pytest.raises(ConfigError, match="only sensitivity, tau, threshold can change"):
        detector.retune(LIGHT.configured(delta=9))
    with ongebd.StreamPool(LIGHT) as pool:
        stream = pool.add()
        with pytest.raises(ConfigError, match="only sensitivity, tau, threshold can change"):
            stream.retune(delta=9)
        with pytest.raises(ConfigError, match="give at least one of sensitivity"):
            stream.retune()
        with pytest.raises(ConfigError, match="sensitivity must be"):
            stream.retune(sensitivity=2.0)
        with pytest.raises(ConfigError, match="tau"):
            stream.retune(tau=-1.0)
        assert stream.config == LIGHT.configured()
        stream.close()
        with pytest.raises(ConfigError, match="closed"):
            stream.retune(sensitivity=0.6)


def test_a_head_without_a_sensitivity_says_so():
    with ongebd.StreamPool(LIGHT, config=StreamConfig(head="threshold", threshold=0.4)) as pool:
        stream = pool.add()
        with pytest.raises(ConfigError, match="no sensitivity"):
            stream.retune(sensitivity=0.6)
