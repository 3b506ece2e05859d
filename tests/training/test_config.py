"""The settings of a training, and the two files with the paper's."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from ongebd.errors import ConfigError
from ongebd.training.config import TrainConfig, read_config, write_config

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


@pytest.mark.parametrize("name", ["kinetics-gebd", "tapos"])
def test_the_files_hold_what_the_paper_states(name: str) -> None:
    config = read_config(CONFIGS / f"{name}.yaml")
    stated = {
        "window": 8,
        "layers": 3,
        "lr": 1e-4,
        "batch": 512,
        "alpha": 0.5,
        "region": 9,
        "balanced": True,
        "delta": 21,
        "validation_share": 0.2,
        "residual": False,
        "est": True,
        "rest": True,
        "obd": True,
        "metric": "cosine",
    }
    assert {key: getattr(config, key) for key in stated} == stated
    assert config.dataset == name
    assert config.model(2048).width == 1024


def test_a_file_is_read_back_as_written(tmp_path: Path) -> None:
    config = TrainConfig(residual=True, tau=1.5, lr=3e-4, width=64, out="o")
    write_config(config, tmp_path / "c.yaml")
    assert read_config(tmp_path / "c.yaml") == config


def test_yaml_numbers_without_a_point_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("lr: 1e-4\nepochs: 3.0\n")  # YAML 1.1 reads 1e-4 as text
    config = read_config(tmp_path / "c.yaml")
    assert (config.lr, config.epochs) == (1e-4, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("learning_rate: 1", "unknown setting 'learning_rate'"),
        ("residul: true", "did you mean residual"),
        ("epochs: many", "epochs must be of type int"),
        ("epochs: 1.5", "epochs must be of type int"),
        ("balanced: 7", "balanced must be true or false"),
        ("dataset: cats", "dataset must be one of auto"),
        ("- 1", "setting: value"),
        ("a: [", "not YAML"),
        ("batch: 500", "multiple of run"),
        ("validation_share: 0", "validation_share"),
        ("{est: false, rest: false}", "set obd to false"),
        ("lr: 0", "lr must be above 0"),
        ("warmup: 1", "warmup"),
        ("heads: 7", "multiple of heads"),
    ],
)
def test_a_mistake_in_a_file_is_said_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_config(tmp_path / "c.yaml")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: cannot be read"):
        read_config(tmp_path / "nowhere.yaml")


def test_text_from_the_command_line_becomes_the_settings_type() -> None:
    changes = {"residual": "true", "tau": "2.5", "width": "none", "run": "16", "metric": "l2"}
    config = TrainConfig(width=8, heads=1).changed(changes)
    assert (config.residual, config.tau, config.width, config.run, config.metric) == (
        True,
        2.5,
        None,
        16,
        "l2",
    )


def test_every_setting_is_described_in_the_guide() -> None:
    guide = (Path(__file__).resolve().parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    missing = [field.name for field in fields(TrainConfig) if f"`{field.name}`" not in guide]
    assert not missing
