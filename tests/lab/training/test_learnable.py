"""Trainings learn known changes, and the report shows what weighting does to errors."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ongebd
from ongebd.data.labelled import label_videos
from ongebd.detector.trained import read_about, read_shape
from ongebd.errors import ConfigError
from ongebd.lab.evaluation import relative_distance
from ongebd.lab.training.batches import DeviceFeatures
from ongebd.lab.training.config import TrainConfig, read_config
from ongebd.lab.training.dataset import Dataset, make_dataset
from ongebd.lab.training.loop import Watcher, train
from ongebd.lab.training.scores import errors_of_model
from ongebd.lab.training.validation import judge, predictions_at
from synthetic import SyntheticConfig, make_synthetic

CPU = torch.device("cpu")
LEARNABLE = Path(__file__).resolve().parents[3] / "configs" / "learnable.yaml"


class Listener(Watcher):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


def set_up(out: Path, features: SyntheticConfig, **changes: Any) -> tuple[TrainConfig, Dataset]:
    config = replace(read_config(LEARNABLE), store="made", labels="made", out=str(out), **changes)
    return config, make_dataset(*make_synthetic(features), config)


def test_est_rest_and_obd_find_the_changes_to_two_frames(tmp_path: Path) -> None:
    config, dataset = set_up(tmp_path / "out", SyntheticConfig(videos=40, gradual=0.3))
    assert config.est
    assert config.rest
    assert config.obd
    trained = train(config, dataset=dataset)

    # On videos that neither the weights nor τ have seen.
    store, labels = make_synthetic(SyntheticConfig(videos=20, gradual=0.3, seed=99))
    videos = label_videos(store, labels).videos
    errors = errors_of_model(trained.model, videos, DeviceFeatures(videos, CPU))
    settings = read_about(tmp_path / "out" / "model").settings
    assert settings.tau is not None
    predictions = predictions_at(judge(videos, errors, settings), settings.tau, settings)
    two_frames = 2.01 / 24 / 10  # of videos of ten seconds
    score = relative_distance(labels, predictions, [two_frames], min_consistency=None)
    assert score.f1[0] >= 0.95
    elsewhere = np.concatenate([e[~v.targets] for e, v in zip(errors, videos, strict=True)])
    assert np.nanmean(elsewhere) < 0.04


ROWS = [  # EST, REST, OBD: the paper's table of components
    (False, False, False),
    (True, False, False),
    (False, True, False),
    (True, True, False),
    (True, False, True),
    (False, True, True),
    (True, True, True),
]


@pytest.mark.parametrize(("est", "rest", "obd"), ROWS)
def test_each_row_of_the_component_ablation_runs(
    config: TrainConfig, dataset: Dataset, est: bool, rest: bool, obd: bool, make: Callable[..., Dataset]
) -> None:
    config = replace(config, est=est, rest=rest, obd=obd, epochs=1)
    trained = train(config, dataset=make(config))
    assert trained.report is not None
    own = trained.report.results[0]
    assert own.name == ("cea" if est or rest else "classifier")
    assert 0 <= own.figures["average"] <= 1
    assert (own.at_paper_tau is None) == (not obd)
    model = Path(config.out) / "model"
    if est or rest:
        settings = read_about(model).settings
        assert (settings.head, settings.threshold) == ((None, None) if obd else ("threshold", own.threshold))
    else:
        with pytest.raises(ConfigError, match="classifier"):
            ongebd.load(str(model))


def test_without_any_loss_there_is_nothing_for_the_discriminator(config: TrainConfig) -> None:
    with pytest.raises(ConfigError, match="set obd to false"):
        replace(config, est=False, rest=False, obd=True)


@pytest.mark.parametrize("metric", ["l1", "l2", "kl"])
def test_the_other_distances_train(config: TrainConfig, dataset: Dataset, metric: Any) -> None:
    trained = train(replace(config, metric=metric, epochs=1, min_error=0.0, min_std=0.0), dataset=dataset)
    assert all(value.isfinite().all() for value in trained.model.state_dict().values())
    assert read_shape(Path(config.out) / "model").metric == metric


@pytest.mark.slow
def test_balanced_weighting_drives_errors_toward_one_half_and_the_report_warns(tmp_path: Path) -> None:
    elsewhere, said = {}, {}
    for name, changes in {
        "balanced": {"balanced": True, "residual": False},
        "unweighted": {"balanced": False, "residual": False},
        "unweighted, residual": {},
    }.items():
        listener = Listener()
        features = SyntheticConfig(videos=40, gradual=0.0)
        config, dataset = set_up(tmp_path / name, features, epochs=12, validate_every=4, **changes)
        report = train(config, dataset=dataset, watcher=listener).report
        assert report is not None
        elsewhere[name] = report.results[0].mean_elsewhere
        said[name] = any("given up anticipating" in line for line in listener.lines)
        text = (tmp_path / name / "report.md").read_text()
        assert said[name] == ("given up anticipating" in text)
    assert 0.3 < elsewhere["balanced"] < 0.55
    assert elsewhere["unweighted"] < 0.1
    assert elsewhere["unweighted, residual"] < 0.04
    assert said == {"balanced": True, "unweighted": False, "unweighted, residual": False}


TESTS = str(Path(__file__).resolve().parents[2])
_PROGRAM = """
import sys
from pathlib import Path
import torch
from synthetic import SyntheticConfig, make_synthetic
from ongebd.lab.training.config import TrainConfig
from ongebd.lab.training.dataset import make_dataset
from ongebd.lab.training.loop import train

torch.set_num_threads(1)
out = Path(sys.argv[1])
config = TrainConfig(
    out=str(out), width=16, ffn=16, heads=2, layers=2, epochs=2, batch=128, run=32, device="cpu",
    label_rule="exact",
)
data = make_dataset(*make_synthetic(SyntheticConfig(videos=12, frames=80, dim=12)), config)
train(config, dataset=data)
"""


@pytest.mark.slow
def test_two_processes_train_what_one_does(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"import sys\nsys.path.insert(0, {TESTS!r})\n{_PROGRAM}")
    together = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    quiet = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, str(program), str(tmp_path / "one")], check=True, env=quiet)
    subprocess.run([*together, str(program), str(tmp_path / "two")], check=True, env=quiet)
    one, two = (torch.load(tmp_path / name / "checkpoint.pt")["model"] for name in ("one", "two"))
    for name in one:
        if name.endswith("key_value.bias"):
            continue  # a key's bias changes nothing: its gradient is rounding, and Adam makes steps of it
        torch.testing.assert_close(one[name], two[name], atol=2e-4, rtol=1e-3)
