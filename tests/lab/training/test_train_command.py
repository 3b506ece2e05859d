"""`ongebd train` and `ongebd export`, from a store on the disk to a model that detects."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ongebd import backbones
from ongebd.cli import main
from ongebd.cli.train import SYMBOLS, _assignments
from ongebd.features.store import FeatureStore
from ongebd.lab.training.config import TrainConfig
from synthetic import SyntheticConfig, make_synthetic

SMALL = [*("width=16", "ffn=16", "heads=2", "layers=1", "run=32", "lr=0.003", "label_rule=exact")]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Features on the disk, and their labels in labels.csv beside them."""
    made, labels = make_synthetic(SyntheticConfig(videos=10, frames=70, dim=1280, event=(20, 30)))
    backbone = backbones.get("efficientnet_lite0").identity
    with FeatureStore.create(tmp_path / "features", backbone=backbone, dim=1280, fps=24.0) as store:
        for name, video in made.videos.items():
            store.add(name, video.features, video.times, video.epochs, video.duration, f"{name}.mp4")
    lines = ["id,duration,boundaries"]
    for name, label in labels.videos.items():
        lines.append(f"{name},{label.duration},{' '.join(map(str, label.boundaries[0]))}")
    (tmp_path / "labels.csv").write_text("\n".join(lines))
    return tmp_path / "features"


def run(store: Path, *more: str, settings: list[str] | None = None) -> int:
    chosen = [f"--set={setting}" for setting in (SMALL if settings is None else settings)]
    folder = store.parent
    places = ["--store", str(store), "--labels", str(folder / "labels.csv"), "--out", str(folder / "out")]
    return main(["train", *places, "--epochs", "1", "--batch", "128", *chosen, *more])


def test_from_features_to_a_model_that_detects(
    store: Path, capsys: pytest.CaptureFixture[str], make_video: Any, make_scene: Any
) -> None:
    assert run(store) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "the trained cea" in said.err
    out = store.parent / "out"
    report = json.loads((out / "report.json").read_text())
    assert list(report["anticipators"]) == ["cea", "window-mean", "persistence"]
    for result in report["anticipators"].values():
        assert result["best_threshold_chosen_on"] == "these validation videos"
    assert set(report["floors"]) == {"clock", "uniform", "random"}
    assert (out / "errors.png").read_bytes().startswith(b"\x89PNG")
    text = (out / "report.md").read_text()
    assert "errors.png" in text
    assert "window-mean, at the paper's τ" in text
    assert (out / "evaluation" / "report.md").exists()

    scenes = [np.asarray(make_scene(seed)) for seed in (1, 2)]
    video = make_video(store.parent / "cut.mp4", [scenes[i // 24] for i in range(48)], rate=24)
    assert main(["detect", str(video), "--model", str(out / "model"), "-q"]) == 0


def test_export_writes_the_file_again(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(store) == 0
    model = store.parent / "out" / "model"
    before = (model / "model.onnx").read_bytes()
    (model / "model.onnx").unlink()
    assert main(["export", str(model)]) == 0
    assert (model / "model.onnx").read_bytes() == before
    assert "wrote" in capsys.readouterr().err


def test_the_command_line_overrides_a_yaml_file(store: Path) -> None:
    file, out = store.parent / "c.yaml", store.parent / "out"
    file.write_text("epochs: 7\nresidual: true\n")
    assert run(store, str(file), settings=SMALL) == 0
    written = (out / "config.yaml").read_text()
    assert "epochs: 1\n" in written
    assert "residual: true\n" in written


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "residual"], "--set residual: use NAME=VALUE"),
        (["--set", "colour=red"], "unknown setting 'colour'"),
        (["--device", "abacus"], "--device abacus: unknown device; use cpu, cuda or cuda:0"),
        (["--set", "select_by=accuracy"], "select_by must be one of average"),
        (["--set", "validation_share=0.99"], "too few to train and to validate on"),
    ],
)
def test_a_mistake_is_one_line(
    store: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(store, *arguments) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("ongebd: ")
    assert message in said


def test_no_boundary_at_all_is_one_line(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = store.parent / "labels.csv"
    rows = labels.read_text().splitlines()
    labels.write_text("\n".join([rows[0], *(row[: row.rindex(",") + 1] for row in rows[1:])]))
    assert run(store) == 2
    assert "have no boundary in" in capsys.readouterr().err


def test_no_store_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith("ongebd: no store given: set --store")


_WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from ongebd.cli import main
sys.exit(main({arguments!r}))
"""


@pytest.mark.parametrize("module", ["torch", "yaml", "huggingface_hub"])
def test_a_missing_extra_is_named(store: Path, module: str) -> None:
    (store.parent / "c.yaml").write_text("epochs: 1\n")
    arguments = ["train", str(store.parent / "c.yaml"), "--store", str(store), "--labels", "l", "--out", "o"]
    program = _WITHOUT.format(module=module, arguments=arguments)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert re.fullmatch(rf'ongebd: {module} is not installed: .* install .*"torch.*\n', done.stderr)


@pytest.mark.parametrize("module", ["torch", "yaml", "huggingface_hub"])
def test_everything_else_runs_without_the_extra(module: str) -> None:
    program = _WITHOUT.format(module=module, arguments=["--help"])
    subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)


def test_detecting_imports_no_torch(tmp_path: Path, make_video: Any, make_scene: Any) -> None:
    video = make_video(tmp_path / "still.mp4", [np.asarray(make_scene(1))] * 10, rate=10)
    program = (
        "import sys\nfrom ongebd.cli import main\n"
        f"assert main(['detect', {str(video)!r}, '-q']) == 0\n"
        "assert 'torch' not in sys.modules\nassert 'huggingface_hub' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_papers_letters_name_settings() -> None:
    given = ["K=9", "L=8", "N=2", "α=0.5", "Δ=12", "τ=1.5", "min-gap=0"]
    found = TrainConfig().changed(_assignments(given))
    assert (found.region, found.window, found.layers, found.alpha) == (9, 8, 2, 0.5)
    assert (found.delta, found.tau, found.min_gap) == (12, 1.5, 0.0)
    assert set(SYMBOLS.values()) <= {field.name for field in fields(TrainConfig)}
