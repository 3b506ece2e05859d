"""The ONNX file is the torch model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ongebd.errors import ConfigError
from ongebd.estimator.anticipator import AnticipatorConfig, ConsistentEventAnticipator
from ongebd.estimator.onnx_anticipator import OnnxAnticipator
from ongebd.estimator.torch_anticipator import TorchAnticipator
from ongebd.lab.training.onnx_export import export_onnx


def saved(folder: Path, **changes: object) -> tuple[OnnxAnticipator, TorchAnticipator]:
    torch.manual_seed(2)
    config = AnticipatorConfig(**{"dim": 40, "width": 32, "heads": 4, "ffn": 48, **changes})
    model = ConsistentEventAnticipator(config)
    for parameter in model.parameters():  # away from its beginning, biases included
        torch.nn.init.normal_(parameter, std=0.15)
    model.save_pretrained(folder)
    export_onnx(model, folder / "model.onnx")
    onnx = OnnxAnticipator(folder / "model.onnx", "cea", config.window)
    return onnx, TorchAnticipator(folder, "cea")


SHAPES: list[dict[str, object]] = [
    *({}, {"residual": True}, {"layers": 1}, {"window": 1}),
    *({"window": 16, "heads": 1}, {"dim": 1280, "width": 64}),
]


@pytest.mark.parametrize("changes", SHAPES, ids=str)
def test_it_anticipates_what_torch_does(changes: dict[str, object], tmp_path: Path) -> None:
    onnx, torch_one = saved(tmp_path, **changes)
    rng = np.random.default_rng(0)
    dim = torch_one.model.config.dim
    for known in {1, 2, onnx.window}:
        past = rng.random((min(known, onnx.window), dim), np.float32)
        ours, wanted = onnx.anticipate(past), torch_one.anticipate(past)
        assert ours.shape == (dim,)
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, wanted, atol=1e-5, rtol=0)


def test_the_default_size_agrees_too(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = ConsistentEventAnticipator(AnticipatorConfig.for_dim(1280)).eval()
    export_onnx(model, tmp_path / "model.onnx")
    past = np.random.default_rng(0).random((8, 1280), np.float32)
    with torch.no_grad():
        wanted = model(torch.from_numpy(past)[None])[0, 0].numpy()
    ours = OnnxAnticipator(tmp_path / "model.onnx", "cea", 8).anticipate(past)
    np.testing.assert_allclose(ours, wanted, atol=1e-5, rtol=0)


def test_a_short_window_repeats_its_first_feature(tmp_path: Path) -> None:
    onnx, torch_one = saved(tmp_path)
    short = np.random.default_rng(0).random((3, 40), np.float32)
    full = np.concatenate([np.repeat(short[:1], 5, axis=0), short])
    np.testing.assert_array_equal(onnx.anticipate(short), onnx.anticipate(full))
    np.testing.assert_array_equal(torch_one.anticipate(short), torch_one.anticipate(full))


def test_two_exports_are_byte_for_byte_the_same(tmp_path: Path) -> None:
    model = ConsistentEventAnticipator(AnticipatorConfig(dim=8, width=8, heads=2, ffn=8))
    export_onnx(model, tmp_path / "a.onnx")
    export_onnx(model, tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.onnx", "b.onnx"]


def test_a_classifier_is_not_exported(tmp_path: Path) -> None:
    model = ConsistentEventAnticipator(AnticipatorConfig(dim=8, width=8, heads=2, head="classifier"))
    with pytest.raises(ConfigError, match="classifier"):
        export_onnx(model, tmp_path / "model.onnx")


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"nonsense")
    with pytest.raises(ConfigError, match=r"model\.onnx: can't open"):
        OnnxAnticipator(tmp_path / "model.onnx", "cea", 8).anticipate(np.ones((1, 4), np.float32))
