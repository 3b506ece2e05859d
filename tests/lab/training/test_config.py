"""The settings of a training, and the two files with the paper's."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from docs_site import settings_table

from ongebd.errors import ConfigError
from ongebd.lab.training.config import TrainConfig, read_config, write_config

CONFIGS = Path(__file__).resolve().parents[3] / "configs"


PAPER = {
    "window": 8,
    "layers": 3,
    "lr": 1e-4,
    "optimizer": "adamw",
    "batch": 512,
    "run": 1,
    "alpha": 0.5,
    "region": 9,
    "balanced": True,
    "validation_share": 0.2,
    "residual": False,
    "label_rule": "exact",
    "est": True,
    "rest": True,
    "obd": True,
    "metric": "cosine",
    "clip": None,
    "schedule": "constant",
    "delta": 21,
    "tau": 1.5,
    "min_error": 0.0,
    "min_gap": 0.0,
    "fps": None,
}


@pytest.mark.parametrize("name", ["kinetics-gebd", "tapos"])
def test_the_files_are_the_paper_s_and_so_are_the_defaults(name: str) -> None:
    config = read_config(CONFIGS / f"{name}.yaml")
    assert {key: getattr(config, key) for key in PAPER} == PAPER
    assert config.dataset == name
    assert config.model(2048) == TrainConfig().model(2048)
    assert [each for each in config.deviations() if each.split()[0] not in ("width", "ffn")] == []
    stream = config.stream(6.0, 1.5)
    assert (stream.min_gap, stream.min_error, stream.inliers_only, stream.head) == (0.0, 0.0, False, None)


def test_settings_that_are_not_the_paper_s_are_named() -> None:
    config = TrainConfig(run=64, label_rule="near", tau=None, out="x", seed=4, device="cpu")
    assert config.deviations() == ["label_rule near", "run 64", "tau None"]


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
        ("- 1", "setting: value"),
        ("a: 'b", "not YAML"),
        ("learning_rate: 1", "unknown setting 'learning_rate'"),
        ("residul: true", "did you mean residual"),
        ("epochs: 1.5", "epochs must be a whole number"),
        ("balanced: 7", "balanced must be true or false"),
        ("dataset: cats", "dataset must be one of auto"),
        ("near: .inf", "near must be a finite number"),
        ("lr: 0", "lr must be above 0"),
        ("seed: 10000000000000000000000", "seed must be at least 0 and at most"),
        # One setting doesn't fit another one, or only its user refuses it.
        ("{batch: 500, run: 64}", "multiple of run"),
        ("heads: 7", "multiple of heads"),
        ("dropout: 1", "dropout must be at least 0 and below 1"),
        ("{est: false, rest: false}", "set obd to false"),
        ("select_by: absolut 0.25", "select_by must be one of average"),
        # Only a stream would refuse these, after hours of training.
        ("warmup: 1", "warmup"),
        ("tau: 0", "tau must be above 0"),
        ("min_gap: -1", "min_gap must be at least 0"),
        ("min_error: 1.5", "min_error must be at least 0 and at most 1"),
        ("delta: 200000", "delta must be at least 2 and at most 100000"),
    ],
)
def test_a_mistake_in_a_file_is_one_line_before_any_training(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_config(tmp_path / "c.yaml")


_ODD = [
    *(object(), [], {}, b"", "odd", "nan", True, None),
    *(-1, 10**30, 1e308, -1e308, float("inf"), float("nan")),
]


@pytest.mark.parametrize("name", [field.name for field in fields(TrainConfig)])
def test_every_setting_takes_a_value_of_its_type_or_refuses_it_in_one_line(name: str, tmp_path: Path) -> None:
    """What is taken makes a stream, and can be written and read back."""
    refusals = []
    for value in _ODD:
        for make in (lambda v: TrainConfig(**{name: v}), lambda v: TrainConfig().changed({name: v})):
            try:
                config = make(value)
            except ConfigError as problem:
                refusals.append(str(problem))
                continue
            config.stream(24.0, config.tau or 1.0).runs()
            write_config(config, tmp_path / "c.yaml")
            assert read_config(tmp_path / "c.yaml") == config
    assert len(refusals) >= 2 * 5
    for line in refusals:
        assert "\n" not in line
        assert name in line or name == "method"


@pytest.mark.parametrize("word", ["off", '"off"', "no", "false"])
def test_a_word_that_yaml_takes_for_a_truth_value_is_the_word_where_it_is_an_option(
    tmp_path: Path, word: str
) -> None:
    (tmp_path / "c.yaml").write_text(f"compile: {word}\n")
    assert read_config(tmp_path / "c.yaml").compile == "off"  # YAML 1.1 reads all but the quoted as False
    with pytest.raises(ConfigError, match="compile must be one of auto"):
        TrainConfig().changed({"compile": True})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: No such file or directory; check the path"):
        read_config(tmp_path / "nowhere.yaml")


def test_every_setting_is_described_in_the_guide() -> None:
    table = list(settings_table())
    missing = [
        field.name for field in fields(TrainConfig) if not any(f"`{field.name}`" in row for row in table)
    ]
    assert not missing


@pytest.mark.parametrize(
    "text",
    [
        "epochs:\n  - &a0 [x,x]\n" + "".join(f"  - &a{i} [{f'*a{i - 1},' * 9}]\n" for i in range(1, 10)),
        "epochs: " + "[" * 5000 + "]" * 5000,
        "- " * 5000,
        "lr: 1\n" * 20_000,
        "epochs: " + "9" * 5000,
        "epochs: " + "1:" * 500 + "1",
        "lr: !!timestamp x",
        "lr: !!bool x",
        "lr: !!int ''",
        "lr: !!python/object/apply:os.system [id]",
    ],
)
def test_a_file_that_could_grow_or_nest_without_limit_is_refused_at_once(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bomb.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"^[^\n]{1,500}$"):
        read_config(path)
