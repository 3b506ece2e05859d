"""A trained model is loaded from its folder and runs in the stream like any other."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ongebd
from ongebd import backbones
from ongebd.errors import ConfigError, MissingExtraError
from ongebd.lab.training.config import TrainConfig
from ongebd.lab.training.dataset import Dataset, make_dataset
from ongebd.lab.training.loop import train
from synthetic import SyntheticConfig, make_synthetic

BACKBONE = backbones.get("efficientnet_lite0")


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory: pytest.TempPathFactory, train_small: Callable[..., Path]) -> Path:
    """A model trained on (made) features of the default backbone's size."""
    return train_small(tmp_path_factory.mktemp("training"), BACKBONE.identity, BACKBONE.dim)


@pytest.fixture
def folder(trained_once: Path, tmp_path: Path) -> Path:
    """A copy of it, to be broken."""
    shutil.copytree(trained_once, tmp_path / "out")
    return tmp_path / "out" / "model"


def change(file: Path, **values: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def test_it_streams_on_the_cpu_with_its_own_settings(folder: Path) -> None:
    model = ongebd.load(str(folder))
    assert model.name == "out", "the folder of the training"
    assert "trained on 8 videos" in model.summary
    about = json.loads((folder / "ongebd.json").read_text())
    detector = model.stream()
    assert detector.config.tau == about["settings"]["tau"]
    assert (detector.config.fps, detector.config.delta) == (24.0, 21)
    features = np.random.default_rng(0).random((30, BACKBONE.dim), np.float32)
    decisions = [detector.update_feature(feature, i / 24) for i, feature in enumerate(features)]
    assert decisions[-1].ready
    assert all(0 < decision.error < 1 for decision in decisions[1:])
    assert model.stream(tau=9.0).config.tau == 9.0


def test_onnxruntime_and_torch_give_the_same_errors(folder: Path) -> None:
    features = np.random.default_rng(0).random((20, BACKBONE.dim), np.float32)
    errors = []
    for runs_torch in (False, True):
        if runs_torch:
            (folder / "model.onnx").unlink()
        detector = ongebd.load(str(folder)).stream()
        errors.append([detector.update_feature(f, i / 24).error for i, f in enumerate(features)])
    np.testing.assert_allclose(errors[0], errors[1], atol=1e-5)


def test_pictures_go_through_it(folder: Path) -> None:
    detector = ongebd.load(str(folder)).stream()
    picture = np.random.default_rng(0).integers(0, 255, (60, 80, 3), dtype=np.uint8)
    detector.update(picture, 0.0)
    assert detector.update(picture, 0.1).error > 0


def test_no_torch_is_imported_for_it(folder: Path) -> None:
    program = (
        "import sys, numpy as np, ongebd\n"
        f"detector = ongebd.load({str(folder)!r}).stream()\n"
        f"feature = np.ones({BACKBONE.dim}, np.float32)\n"
        "detector.update_feature(feature, 0.0); detector.update_feature(feature, 0.1)\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_without_its_onnx_file_torch_runs_it(folder: Path) -> None:
    (folder / "model.onnx").unlink()
    detector = ongebd.load(str(folder)).stream()
    detector.update_feature(np.ones(BACKBONE.dim, np.float32), 0.0)


def test_without_its_onnx_file_and_torch_the_extra_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "model.onnx").unlink()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r'^torch is not installed: .*install .*"torch\S*"$'):
        ongebd.load(str(folder))


def test_another_window_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="window of 8 frames, not 5"):
        ongebd.load(str(folder)).stream(window=5)


def test_another_backbone_is_refused(folder: Path) -> None:
    change(folder / "ongebd.json", backbone="efficientnet_lite0@000000000000")
    with pytest.raises(ConfigError, match="was trained on features of efficientnet_lite0@000000000000"):
        ongebd.load(str(folder))


def test_another_feature_size_is_refused(folder: Path) -> None:
    change(folder / "config.json", dim=64)
    with pytest.raises(ConfigError, match="features of 64 numbers"):
        ongebd.load(str(folder))


@pytest.mark.parametrize("file", ["ongebd.json", "config.json"])
def test_a_damaged_file_is_named(folder: Path, file: str) -> None:
    (folder / file).write_text("{")
    with pytest.raises(ConfigError, match=file):
        ongebd.load(str(folder))


def test_the_training_folder_points_to_the_model_in_it(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"did you mean .*model"):
        ongebd.load(str(folder.parent))


def test_an_unknown_name_brings_the_nearest_one_to_mind() -> None:
    with pytest.raises(ConfigError, match="did you mean window-mean"):
        ongebd.load("windowmean")


def test_a_device_for_a_model_that_needs_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="window-mean doesn't run on cuda"):
        ongebd.load("window-mean", device="cuda")


def test_a_model_trained_as_the_paper_says_decides_as_it_says_and_only_at_its_rate(
    config: TrainConfig, make: Callable[..., Dataset], tmp_path: Path
) -> None:
    config = replace(config, tau=TrainConfig().tau, epochs=1)
    dataset = replace(make(config, dim=1280), backbone="efficientnet_lite0")
    train(config, dataset=dataset)
    model = ongebd.load(tmp_path / "out" / "model")
    video = dataset.validation[0]
    stream = model.stream()
    found = [
        stream.update_feature(feature, time)
        for feature, time in zip(video.features.astype(np.float32), video.times, strict=True)
    ]
    errors = [each.error for each in found][1:]
    for place, decision in enumerate(found[1:]):
        queue = errors[max(0, place - 21) : place]  # Eq. 5; only the start, from the ninth error on, is ours
        wanted = len(queue) >= 8 and errors[place] - np.mean(queue) > 1.5 * np.std(queue)
        assert decision.is_boundary == wanted
    assert sum(decision.is_boundary for decision in found) > 1
    line = r"was trained at 24 frames a second, not 6: leave fps out, or train another model"
    with pytest.raises(ConfigError, match=line):
        model.stream(fps=6.0)


def test_features_at_another_rate_than_the_data_set_s_are_refused_unless_they_are_meant(
    config: TrainConfig,
) -> None:
    store, labels = make_synthetic(SyntheticConfig(videos=10, frames=60, dim=8, event=(15, 25)))
    tapos = replace(labels, dataset="tapos")
    line = r"at 24 frames a second, but tapos is 6: extract with --fps 6, or .* --set fps=24"
    with pytest.raises(ConfigError, match=line):
        make_dataset(store, tapos, config)
    assert make_dataset(store, tapos, replace(config, fps=24.0)).fps == 24
