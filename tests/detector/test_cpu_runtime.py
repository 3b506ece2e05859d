"""`ongebd.detect` by another CPU runtime, or in another precision."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

import ongebd
from ongebd.detector.openvino import as_asked, asked_runtime
from ongebd.errors import ConfigError, MissingExtraError


@pytest.fixture(scope="module")
def film(tmp_path_factory, make_video, make_scene):
    scenes = [make_scene(1)] * 24 + [make_scene(2)] * 24
    return make_video(tmp_path_factory.mktemp("film") / "film.mp4", scenes, rate=24)


def test_unasked_a_model_stays_the_one_it_is():
    model = ongebd.load("window-mean")
    assert as_asked(model, None, None) is model
    assert asked_runtime(None, None) == (None, None)
    assert asked_runtime(None, "bfloat16") == ("onnxruntime", "bfloat16")


def test_what_runs_already_so_decides_to_the_same_bits(film):
    usual = ongebd.detect(film, "window-mean")
    assert ongebd.detect(film, "window-mean", runtime="onnxruntime", precision="float32") == usual
    assert [boundary.onset for boundary in usual.boundaries] == [1.0]


@pytest.mark.parametrize("model", ["window-mean", "immediate"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_openvino_computes_in_what_is_asked_for_or_says_that_it_cannot(film, model, precision):
    pytest.importorskip("openvino", reason="the extra `openvino` is not installed")
    usual = ongebd.detect(film, model).decisions
    try:
        ours = ongebd.detect(film, model, runtime="openvino", precision=precision).decisions
    except ConfigError as problem:
        assert precision == "bfloat16"
        assert str(problem) == "this processor can't compute in bfloat16; use float32"  # noqa: PT017
        return
    assert len(ours) == len(usual)
    apart = max(abs(one.error - other.error) for one, other in zip(ours, usual, strict=True))
    assert apart < 1e-3 if precision == "float32" else 1e-6 < apart < 0.3


def test_what_the_processor_lacks_is_told_before_a_source_is_opened(stub_model, monkeypatch):
    class Lacking(type(stub_model.backbone)):
        def embed(self, frames):
            raise ConfigError("this processor can't compute in bfloat16; use float32")

    lacking = replace(stub_model, backbone=Lacking())
    monkeypatch.setattr("ongebd.detector.openvino.on_cpu_runtime", lambda *_: lacking)
    with pytest.raises(ConfigError, match="this processor can't"):
        ongebd.detect("no such file.mp4", stub_model, runtime="openvino", precision="bfloat16")


def test_a_model_without_a_network_is_refused(film):
    with pytest.raises(ConfigError, match="clock has no network that another runtime could run"):
        ongebd.detect(film, "clock", runtime="onnxruntime")


def test_without_the_package_one_line_says_so(film, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(MissingExtraError, match=r"^openvino is not installed: pip install"):
        ongebd.detect(film, "immediate", runtime="openvino")
