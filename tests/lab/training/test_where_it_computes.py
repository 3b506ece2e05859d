"""A trained model's device and threads: each part takes those that it can."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from ongebd import backbones
from ongebd.baselines.methods import make_network, network_shape
from ongebd.baselines.miniroad import MiniRoad
from ongebd.baselines.weights import save_network
from ongebd.detector import load
from ongebd.detector.trained import write_about
from ongebd.estimator.anticipator import ConsistentEventAnticipator

IN_THE_WHEEL = [name for name in backbones.names() if not backbones.takes_device(name)]


@pytest.fixture
def baseline(tmp_path: Path) -> Callable[[str], Path]:
    def make(backbone: str) -> Path:
        folder, found = tmp_path / f"on {backbone}", backbones.get(backbone)
        shape = network_shape("miniroad", {"hidden": 8, "embedding": 8}, dim=found.dim)
        save_network(folder, make_network("miniroad", shape))
        settings = load("window-mean").defaults
        write_about(folder, backbone=found.identity, settings=settings, summary="made for a test")
        return folder

    return make


@pytest.mark.parametrize("backbone", IN_THE_WHEEL)
def test_a_device_is_for_the_network_where_the_backbone_has_none(
    baseline: Callable[[str], Path], train_small: Callable[..., Path], tmp_path: Path, backbone: str
) -> None:
    found = backbones.get(backbone)
    trained = train_small(tmp_path / "out", found.identity, found.dim) / "model"
    for folder in (baseline(backbone), trained):
        # PyTorch's device without memory stands for a GPU, which not every machine has.
        assert load(str(folder), device="meta").backbone is found


def test_what_takes_a_device_is_what_pytorch_runs() -> None:
    assert IN_THE_WHEEL == ["efficientnet_lite0", "efficientnet_lite0_whole"]
    assert not backbones.takes_device("no such backbone")


@pytest.mark.parametrize("threads", [1, 2])
def test_a_frame_is_computed_in_as_many_threads_as_asked_for(
    baseline: Callable[[str], Path],
    train_small: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    threads: int,
) -> None:
    seen: list[int] = []

    def watched(kind: type, name: str) -> None:
        original = getattr(kind, name)

        def counting(self: object, *args: object) -> object:
            seen.append(torch.get_num_threads())
            return original(self, *args)

        monkeypatch.setattr(kind, name, counting)

    found = backbones.get("efficientnet_lite0")
    trained = train_small(tmp_path / "out", found.identity, found.dim) / "model"
    watched(MiniRoad, "step")
    watched(ConsistentEventAnticipator, "forward")
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3 - threads)
        for folder in (baseline("efficientnet_lite0"), trained):
            (folder / "model.onnx").unlink(missing_ok=True)
            stream = load(str(folder), threads=threads).stream()
            for frame in range(3):
                stream.update_feature(np.ones(found.dim, np.float32), frame / 24)
            assert torch.get_num_threads() == 3 - threads
    finally:
        torch.set_num_threads(before)
    assert len(seen) >= 4
    assert set(seen) == {threads}
