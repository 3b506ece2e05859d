"""TSN's checkpoints as mmaction2 writes them: the same network under other names, and more besides."""

from __future__ import annotations

import contextlib
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
# ruff: noqa: E402 - without torch, what follows cannot be imported

from ongebd import backbones
from ongebd.backbones.resnet50 import ResNet50
from ongebd.errors import ConfigError


def mmaction_name(key: str) -> str:
    """torchvision's name as mmaction2 has it, where a convolution and its normalisation are one module."""
    *front, module, tensor = key.split(".")
    if front and front[-1] == "downsample":
        return ".".join(["backbone", *front, {"0": "conv", "1": "bn"}[module], tensor])
    kind, number = module.rstrip("0123456789"), module[-1]
    return ".".join(["backbone", *front, f"conv{number}", kind, tensor])


@pytest.fixture(scope="module")
def network_state() -> dict[str, Any]:
    torch.manual_seed(0)
    return ResNet50().state_dict()


def checkpoint_of(state: dict[str, Any], classes: int) -> dict[str, Any]:
    tensors = {mmaction_name(key): tensor for key, tensor in state.items()}
    tensors["cls_head.fc_cls.weight"] = torch.zeros(classes, 2048)
    tensors["cls_head.fc_cls.bias"] = torch.zeros(classes)
    return {"meta": {"epoch": 100, "time": "Tue Sep 6"}, "state_dict": tensors}


@pytest.mark.parametrize(
    ("name", "classes", "zipped"), [("tsn-kinetics", 400, True), ("tsn-sthv2", 174, False)]
)
def test_every_tensor_finds_its_place(
    network_state: dict[str, Any], tmp_path: Path, name: str, classes: int, zipped: bool
) -> None:
    path, plain = tmp_path / "tsn.pth", tmp_path / "plain.pth"
    torch.save(checkpoint_of(network_state, classes), path, _use_new_zipfile_serialization=zipped)
    torch.save(network_state, plain)
    tsn, same = backbones.get(name, weights=path), backbones.get("resnet50", weights=plain)
    assert tsn.name == name
    assert tsn.identity == same.identity.replace("resnet50", name)
    assert (tsn.dim, tsn.input_size, tsn.resize_size) == (2048, 224, 256)
    pictures = np.random.default_rng(0).integers(0, 256, (1, 224, 224, 3), dtype=np.uint8)
    np.testing.assert_array_equal(tsn.embed(pictures), same.embed(pictures))


def test_what_a_training_framework_left_in_the_file_does_not_matter_and_is_not_run(
    network_state: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mmengine's logs need mmengine to be unpickled; a stranger's file could hold anything."""
    module = types.ModuleType("mmengine_of_this_test")

    class HistoryBuffer:
        def __init__(self) -> None:
            self.history = np.arange(5.0)

    HistoryBuffer.__module__, HistoryBuffer.__qualname__ = module.__name__, "HistoryBuffer"
    module.HistoryBuffer = HistoryBuffer
    monkeypatch.setitem(sys.modules, module.__name__, module)

    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.write_text, (tmp_path / "trapped", "it was run")

    checkpoint = checkpoint_of(network_state, 400)
    checkpoint["message_hub"] = {"log_scalars": {"loss": HistoryBuffer()}}
    torch.save(checkpoint, tmp_path / "tsn.pth")
    torch.save(checkpoint | {"more": Trap()}, tmp_path / "trap.pth")
    monkeypatch.delitem(sys.modules, module.__name__)

    assert backbones.get("tsn-kinetics", weights=tmp_path / "tsn.pth").dim == 2048
    with contextlib.suppress(ConfigError):
        backbones.get("tsn-kinetics", weights=tmp_path / "trap.pth")
    assert not (tmp_path / "trapped").exists()


def test_a_checkpoint_of_the_other_set_is_refused(network_state: dict[str, Any], tmp_path: Path) -> None:
    torch.save(checkpoint_of(network_state, 174), tmp_path / "tsn.pth")
    with pytest.raises(ConfigError, match=r"doesn't fit tsn-kinetics: it has 174 classes, not 400 or"):
        backbones.get("tsn-kinetics", weights=tmp_path / "tsn.pth")


def test_a_checkpoint_of_torchvision_is_refused_by_the_keys_it_lacks(
    network_state: dict[str, Any], tmp_path: Path
) -> None:
    torch.save(network_state, tmp_path / "w.pth")
    with pytest.raises(
        ConfigError, match=r"doesn't fit tsn-sthv2: it lacks conv1\.weight, .* more; give mmaction2's"
    ):
        backbones.get("tsn-sthv2", weights=tmp_path / "w.pth")


@pytest.mark.parametrize("name", ["tsn-kinetics", "tsn-sthv2"])
def test_without_a_checkpoint_one_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"{name}: needs --weights FILE: mmaction2's tsn_imagenet.*\.pth"):
        backbones.get(name)
