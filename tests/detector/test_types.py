"""Arguments of the Python API are checked, each error is one of ours; and what can be pickled."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import asdict, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import ongebd
from ongebd.detector import StreamConfig, load
from ongebd.errors import ConfigError, FeatureError

NUMBERS = ("fps", "tau", "min_std", "min_error", "min_gap", "max_run", "threshold")
WHOLE = ("delta", "window", "warmup")
FEATURE = np.float32([1, 0, 0, 0])


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("bad", ["24", True, [1], 1j, Decimal(1), 10**400, np.zeros(2)], ids=str)
def test_a_setting_that_is_not_a_number_is_refused_by_name(name, bad):
    for use in (lambda: StreamConfig(**{name: bad}), lambda: load().stream(**{name: bad})):
        wanted = "have fewer digits" if type(bad) is int else "be a number"
        with pytest.raises(ConfigError, match=f"^{name} must {wanted}"):
            use()


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("bad", [1.5, 8.0, "8", True, Fraction(8), [8]], ids=str)
def test_a_setting_that_is_not_a_whole_number_is_refused_by_name(name, bad):
    with pytest.raises(ConfigError, match=f"^{name} must be a whole number"):
        load().stream(**{name: bad})


@pytest.mark.parametrize(
    "bad",
    [{"inliers_only": "no"}, {"inliers_only": 1}, {"head": 3}, {"window": 4097}, {"delta": 10**20}],
    ids=str,
)
def test_other_settings_are_checked_too(bad):
    (name,) = bad
    with pytest.raises(ConfigError, match=f"^{name} must be"):
        load().stream(**bad)
    with pytest.raises(ConfigError, match=f"^{name} must be"):
        replace(StreamConfig(), **bad)


def test_numbers_of_any_type_are_kept_as_plain_ones():
    config = StreamConfig(fps=Fraction(25, 2), tau=np.float32(2.5), window=np.int64(4), delta=21, max_run=1)
    assert json.loads(json.dumps(asdict(config)))["fps"] == 12.5
    assert {type(getattr(config, name)) for name in ("fps", "tau", "max_run")} == {float}
    assert type(config.window) is int


@pytest.mark.parametrize("bad", [{"fps": 3}, "fast", 3], ids=str)
def test_a_config_is_a_stream_config(bad):
    with pytest.raises(ConfigError, match="config must be a StreamConfig"):
        load().stream(bad)
    with pytest.raises(ConfigError, match="config must be a StreamConfig"):
        ongebd.detect("clip.mp4", config=bad)


@pytest.mark.parametrize("bad", [None, "", b"window-mean", 3, ["window-mean"]], ids=str)
def test_a_model_is_given_by_its_name(bad):
    for use in (load, lambda name: ongebd.detect("clip.mp4", name)):
        with pytest.raises(ConfigError, match="a model is a name or a folder"):
            use(bad)


@pytest.mark.parametrize("bad", [None, "1", "x", True, [1], 1j, float("nan"), float("-inf")], ids=str)
def test_a_time_is_a_number(detector, bad):
    stream = detector()
    picture = np.ones((8, 8, 3), np.uint8)
    for use in (stream.due, lambda t: stream.update(picture, t), lambda t: stream.update_feature(FEATURE, t)):
        with pytest.raises(ConfigError, match="frame 0: its time must be a number"):
            use(bad)
    assert stream.update_feature(FEATURE, np.float32(0)).index == 0


@pytest.mark.parametrize("bad", [None, "abc", {}, [["a"]], pytest.param(object(), id="object")], ids=str)
def test_a_feature_is_an_array_of_numbers(detector, bad):
    with pytest.raises(FeatureError, match=r"frame 0 at 0\.000 s: the feature"):
        detector().update_feature(bad, 0)


@pytest.mark.parametrize(
    "settings", [{"tau": "2"}, {"delta": 2.5}, {"warmup": "8"}, {"min_std": None}], ids=str
)
def test_the_discriminator_by_itself_is_as_strict(settings):
    (name,) = settings
    with pytest.raises(ConfigError, match=f"^{name} must be"):
        ongebd.BoundaryDiscriminator(**settings)


@pytest.mark.parametrize("name", ["window-mean", "persistence", "clock:2", "predictability"])
def test_a_model_can_be_pickled(name):
    model = load(name)
    again = pickle.loads(pickle.dumps(model))
    assert (again.name, again.defaults, again.backbone.identity) == (
        model.name,
        model.defaults,
        model.backbone.identity,
    )
    assert again.stream().config == model.stream().config


def test_a_changed_model_cannot_be_pickled(stub):
    with pytest.raises(ConfigError, match=r"only a model from ongebd\.load"):
        pickle.dumps(replace(load(), backbone=stub))


@pytest.mark.parametrize("copying", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_detector_cannot_be_copied(detector, copying):
    with pytest.raises(ConfigError, match="can't be copied or pickled; start another"):
        copying(detector())
