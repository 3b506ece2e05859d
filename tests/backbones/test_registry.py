"""Backbones are found by name."""

from __future__ import annotations

import pytest

from ongebd import backbones
from ongebd.backbones import Backbone
from ongebd.errors import ConfigError


def test_the_default_is_in_the_registry() -> None:
    default: Backbone = backbones.get()
    assert default.name == backbones.DEFAULT == "efficientnet_lite0"
    assert default.name in backbones.names()


def test_the_same_object_comes_back_for_the_same_name_and_threads() -> None:
    assert backbones.get("efficientnet_lite0") is backbones.get("efficientnet_lite0", 1)
    assert backbones.get("efficientnet_lite0", 2) is not backbones.get("efficientnet_lite0", 1)


def test_an_unknown_name_lists_the_known_ones() -> None:
    known = "efficientnet_lite0, efficientnet_lite0_whole, resnet50, tsn-kinetics, tsn-sthv2"
    with pytest.raises(ConfigError, match=rf"^unknown backbone 'vgg'; choose from {known}$"):
        backbones.get("vgg")


@pytest.mark.parametrize("threads", [0, -1])
def test_threads_are_at_least_one(threads: int) -> None:
    with pytest.raises(ConfigError, match=f"at least 1 thread, not {threads}"):
        backbones.get("efficientnet_lite0", threads)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"weights": "w.pth"}, "leave out --weights"),
        ({"device": "cuda"}, "leave out --device"),
        ({"precision": "float16"}, "leave out --device and --precision"),
    ],
)
def test_the_default_takes_no_settings_of_torchs(options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=f"^efficientnet_lite0: .*{said}"):
        backbones.get("efficientnet_lite0", **options)
