"""`ongebd detect --device cuda` against the CPU: as tensors here, and on a GPU where there is one."""

from __future__ import annotations

import pytest

import ongebd
from ongebd.cli import main
from ongebd.output import read_jsonl

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
pytest.importorskip("onnx", reason="the extra `train` is not installed")

from ongebd import backbones  # noqa: E402
from ongebd.detector.trained import write_about  # noqa: E402
from ongebd.estimator.anticipator import AnticipatorConfig, ConsistentEventAnticipator  # noqa: E402
from ongebd.pool.gpu import GpuRuntime  # noqa: E402

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(scope="module")
def films(tmp_path_factory, make_video, make_scene):
    """Pans with cuts, of several shapes: wide, tall and square."""
    folder, paths = tmp_path_factory.mktemp("films"), []
    for number, (width, height) in enumerate([(320, 180), (180, 240), (224, 224)]):
        shots = [make_scene(10 * number + n, width + 24, height) for n in range(2)]
        panned = [shot[:, n : n + width] for shot in shots for n in range(24)]
        paths.append(make_video(folder / f"film{number}.mp4", panned, rate=24))
    return paths


@pytest.fixture(scope="module")
def cea(tmp_path_factory):
    """The folder of an anticipator with random weights."""
    folder, backbone = tmp_path_factory.mktemp("cea"), backbones.get("efficientnet_lite0")
    torch.manual_seed(4)
    shape = AnticipatorConfig(dim=backbone.dim, width=64, ffn=64, heads=2, layers=2)
    ConsistentEventAnticipator(shape).save_pretrained(folder)
    settings = ongebd.load("window-mean").defaults
    write_about(folder, backbone=backbone.identity, settings=settings, summary="random")
    return folder


@pytest.mark.parametrize(
    ("model", "device"),
    [
        ("window-mean", "cpu"),
        *(pytest.param(model, "cuda", marks=needs_gpu) for model in ("immediate", "window-mean", "cea")),
    ],
)
def test_the_boundaries_are_those_of_the_cpu(model, device, films, cea, tmp_path, monkeypatch):
    if device == "cpu":
        films = films[:1]
        monkeypatch.setattr(
            "ongebd.pool.pool.open_runtime",
            lambda model, _device, _precision, **options: GpuRuntime(
                model, device="cpu", precision="float32", **options
            ),
        )
    name = str(cea) if model == "cea" else model
    found = {}
    for where in ("cpu", "cuda"):
        out = tmp_path / where
        arguments = ["--out", str(out), "--model", name, "--device", where, "-q"]
        assert main(["detect", *map(str, films), *arguments]) == 0
        found[where] = [read_jsonl(out / f"{film.stem}.jsonl") for film in films]
    apart = 0
    for ours, wanted in zip(found["cuda"], found["cpu"], strict=True):
        assert ours.end.frames == wanted.end.frames == 48
        assert ours.complete
        apart += lacking(ours, wanted) + lacking(wanted, ours)
    assert any(recording.boundaries for recording in found["cpu"])
    assert apart <= (device == "cuda"), "float16 may move one score over its threshold"


def lacking(one, other):
    """How many boundaries of a recording the other lacks within a frame."""
    onsets = [boundary.onset for boundary in other.boundaries]
    return sum(all(abs(b.onset - onset) > 1.01 / 24 for onset in onsets) for b in one.boundaries)
