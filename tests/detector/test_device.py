"""`ongebd.load` and `ongebd.detect` on another device."""

from __future__ import annotations

import pickle
import sys

import pytest

import ongebd
from ongebd.backbones.cpu_runtime import GraphBackbone
from ongebd.detector.models import runtime_of
from ongebd.errors import ConfigError, MissingExtraError


@pytest.fixture(scope="module")
def film(tmp_path_factory, make_video, make_scene):
    scenes = [make_scene(1)] * 24 + [make_scene(2)] * 24
    return make_video(tmp_path_factory.mktemp("film") / "film.mp4", scenes, rate=24)


def test_a_device_may_name_a_runtime_of_the_cpu():
    assert runtime_of("cuda") == runtime_of("cpu") == (None, None)
    assert runtime_of("openvino") == ("openvino", "float32")
    assert runtime_of("openvino:bfloat16") == ("openvino", "bfloat16")


@pytest.mark.parametrize("model", ["window-mean", "immediate"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_openvino_computes_in_the_wanted_precision_or_refuses(film, model, precision):
    pytest.importorskip("openvino", reason="the extra `openvino` is not installed")
    usual = ongebd.detect(film, model).decisions
    try:
        ours = ongebd.detect(film, model, device=f"openvino:{precision}").decisions
    except ConfigError as problem:
        assert precision == "bfloat16"
        assert str(problem) == "this processor can't compute in bfloat16; use float32"  # noqa: PT017
        return
    assert len(ours) == len(usual)
    apart = max(abs(one.error - other.error) for one, other in zip(ours, usual, strict=True))
    assert apart < 1e-3 if (model, precision) == ("window-mean", "float32") else 1e-6 < apart < 0.3


def test_a_model_on_openvino_can_be_pickled():
    pytest.importorskip("openvino", reason="the extra `openvino` is not installed")
    model = ongebd.load("window-mean", device="openvino")
    again = pickle.loads(pickle.dumps(model))
    assert isinstance(model.backbone, GraphBackbone)
    assert isinstance(again.backbone, GraphBackbone)


def test_an_unsupported_precision_is_reported_before_a_source_is_opened(stub, monkeypatch):
    class Lacking(type(stub)):
        def embed(self, frames):
            raise ConfigError("this processor can't compute in bfloat16; use float32")

    monkeypatch.setattr("ongebd.detector.openvino.backbone_on_cpu_runtime", lambda *_: Lacking())
    with pytest.raises(ConfigError, match="this processor can't"):
        ongebd.detect("no such file.mp4", device="openvino:bfloat16")


@pytest.mark.parametrize(
    ("model", "device", "message"),
    [
        ("clock", "openvino", "^clock has no network that OpenVINO could run; drop device$"),
        ("immediate", "cuda", "^immediate doesn't run on cuda; drop device$"),
        ("immediate", "abacus", "^immediate doesn't run on abacus; drop device$"),
        ("immediate", "openvino:int8", "float32 or bfloat16, not in int8"),
    ],
)
def test_a_device_that_a_model_cannot_use_is_refused(model, device, message):
    with pytest.raises(ConfigError, match=message):
        ongebd.load(model, device=device)


def test_a_loaded_model_takes_no_device(stub_model):
    with pytest.raises(ConfigError, match=r"give the device to ongebd\.load"):
        ongebd.detect("film.mp4", stub_model, device="cuda")


def test_without_the_package_one_line_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(MissingExtraError, match=r"^openvino is not installed: .*install"):
        ongebd.load("immediate", device="openvino")
