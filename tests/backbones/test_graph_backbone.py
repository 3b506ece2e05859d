"""Backbones run by another CPU runtime, or in another precision."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ongebd import backbones
from ongebd.backbones.cpu_runtime import GraphBackbone, on_cpu_runtime
from ongebd.detector import load
from ongebd.errors import ConfigError, MissingExtraError


def apart(ours: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(ours - wanted) / np.linalg.norm(wanted))


@pytest.mark.parametrize("name", ["efficientnet_lite0", "efficientnet_lite0_whole"])
class TestOpenVino:
    @pytest.fixture(autouse=True)
    def _installed(self):
        pytest.importorskip("openvino", reason="the extra `openvino` is not installed")

    @pytest.fixture
    def pictures(self, name, make_scene) -> np.ndarray:
        return np.stack([backbones.get(name).crop(make_scene(seed)) for seed in range(3)])

    def test_the_features_are_those_of_onnxruntime_to_rounding(self, name, pictures):
        plain, ours = backbones.get(name), on_cpu_runtime(backbones.get(name), "openvino")
        within = 0.08 if "whole" in name else 1e-4  # rounding decides between two of int8's steps
        assert apart(ours.embed(pictures)[:, :1280], plain.embed(pictures)[:, :1280]) < within
        assert ours.identity == plain.identity
        assert (ours.dim, ours.input_size, ours.view) == (plain.dim, plain.input_size, plain.view)

    def test_bfloat16_where_the_processor_has_it_and_never_unasked(self, name, pictures):
        plain = backbones.get(name)
        ours = on_cpu_runtime(backbones.get(name), "openvino", "bfloat16")
        assert ours.identity == f"{plain.identity.replace('+', '')}+bfloat16" or "whole" in name
        try:
            found = ours.embed(pictures)
        except ConfigError as problem:
            assert "can't compute in bfloat16" in str(problem)  # noqa: PT017 - either is right
            return
        wanted = plain.embed(pictures)
        assert found.dtype == np.float32
        assert 1e-4 < apart(found[:, :1280], wanted[:, :1280]) < 0.3

    def test_the_same_bits_in_any_company_and_thread(self, name, pictures):
        ours = on_cpu_runtime(backbones.get(name), "openvino")
        together = ours.embed(pictures)
        with ThreadPoolExecutor(3) as threads:
            alone = list(threads.map(lambda n: ours.embed(pictures[n : n + 1])[0], [0, 1, 2] * 3))
        assert all((feature == together[n % 3]).all() for n, feature in enumerate(alone))
        assert ours.embed(pictures[:0]).shape == (0, ours.dim)


@pytest.mark.parametrize(
    ("runtime", "precision", "said"),
    [
        ("tensorrt", "float32", "runtime must be onnxruntime or openvino, not 'tensorrt'"),
        ("onnxruntime", "bfloat16", "onnxruntime computes in float32 only, not in bfloat16"),
        ("openvino", "int8", "the CPU computes in float32 or bfloat16, not in int8"),
    ],
)
def test_unknown_runtimes_and_precisions_are_refused(runtime, precision, said):
    with pytest.raises(ConfigError, match=said):
        on_cpu_runtime(backbones.get(), runtime, precision)


def test_without_the_package_one_line_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(MissingExtraError, match=r'^openvino is not installed: .*install "openvino\S*"$'):
        GraphBackbone(backbones.get(), "openvino")


def test_a_backbone_without_a_network_stays_as_it_is():
    plain, clock = backbones.get(), load("clock").backbone
    assert on_cpu_runtime(plain) is plain
    assert on_cpu_runtime(clock) is clock


class TestTorchNetworks:
    @pytest.fixture(autouse=True)
    def _torch(self):
        pytest.importorskip("torch")
        pytest.importorskip("onnx")

    def test_a_resnet50s_graph_gives_its_features(self, make_scene):
        from ongebd.lab.benchmark.random_weights import resnet50_backbone

        plain = resnet50_backbone()
        ours = on_cpu_runtime(plain, "onnxruntime")
        picture = plain.crop(make_scene(0))[None]
        assert apart(ours.embed(picture), plain.embed(picture)) < 1e-4

    def test_another_network_has_no_graph(self):
        import torch

        from ongebd.backbones.torch_backbone import TorchBackbone

        own = TorchBackbone("own", torch.nn.Conv2d(3, 4, 1), dim=4, input_size=8, resize_size=8)
        with pytest.raises(ConfigError, match="own: can't run on another runtime"):
            on_cpu_runtime(own)

    def test_an_anticipator_by_openvino(self, tmp_path):
        pytest.importorskip("openvino", reason="the extra `openvino` is not installed")
        from ongebd.estimator.anticipator import AnticipatorConfig, ConsistentEventAnticipator
        from ongebd.estimator.onnx_anticipator import OnnxAnticipator
        from ongebd.lab.training.onnx_export import export_onnx

        shape = AnticipatorConfig(dim=16, width=16, ffn=16, heads=2, layers=2)
        export_onnx(ConsistentEventAnticipator(shape).eval(), tmp_path / "model.onnx")
        wanted = OnnxAnticipator(tmp_path / "model.onnx", "cea", 8)
        ours = OnnxAnticipator(tmp_path / "model.onnx", "cea", 8, openvino="float32")
        past = np.random.default_rng(0).random((8, 16), np.float32)
        for length in (1, 5, 8):
            assert ours.anticipate(past[:length]) == pytest.approx(wanted.anticipate(past[:length]), abs=1e-4)
        missing = OnnxAnticipator(tmp_path / "gone.onnx", "cea", 8, openvino="float32")
        with pytest.raises(ConfigError, match=r"gone\.onnx: No such file"):
            missing.anticipate(past)
