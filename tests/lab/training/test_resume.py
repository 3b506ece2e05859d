"""A killed training continues as if nothing had happened."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ongebd.errors import ConfigError
from ongebd.lab.training.config import TrainConfig
from ongebd.lab.training.dataset import Dataset
from ongebd.lab.training.loop import CHECKPOINT, Trained, Watcher, train

from .conftest import make_small, small_config


class Killer(Watcher):
    """Dies after so many steps."""

    def __init__(self, after: int) -> None:
        self.left = after

    def step(self, epoch: int, step: int, steps: int, loss: float, windows_per_second: float) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def last_weights(config: TrainConfig) -> dict[str, torch.Tensor]:
    weights: dict[str, torch.Tensor] = torch.load(Path(config.out) / CHECKPOINT)["model"]
    return weights


def assert_same(one: Trained, other: Trained, *configs: TrainConfig) -> None:
    assert one.progress.history == other.progress.history
    pairs = [(one.model.state_dict(), other.model.state_dict())]
    if configs:  # the last weights too, not only those of the best epoch
        pairs.append((last_weights(configs[0]), last_weights(configs[1])))
    for kept, also in pairs:
        assert all(torch.equal(kept[name], also[name]) for name in kept)


@pytest.mark.parametrize("features_in", ["device", "host"])
def test_killed_and_resumed_gives_the_same_weights_bit_by_bit(
    config: TrainConfig, dataset: Dataset, tmp_path: Path, features_in: str
) -> None:
    config = replace(config, dropout=0.1, checkpoint_every=2, features_in=features_in)
    whole = train(config, dataset=dataset)
    broken = replace(config, out=str(tmp_path / "broken"))
    for after in (3, 4):  # dies in the first epoch, goes on, dies in the second
        with pytest.raises(KeyboardInterrupt):
            train(broken, dataset=dataset, resume=True, watcher=Killer(after))
    assert_same(train(broken, dataset=dataset, resume=True), whole, broken, config)


def test_a_finished_training_is_only_reported_again(config: TrainConfig, dataset: Dataset) -> None:
    first = train(config, dataset=dataset)
    assert_same(train(config, dataset=dataset, resume=True), first)


def test_a_finished_training_whose_model_is_gone_is_one_line(config: TrainConfig, dataset: Dataset) -> None:
    train(config, dataset=dataset)
    shutil.rmtree(Path(config.out) / "model")
    with pytest.raises(ConfigError, match="no trained anticipator"):
        train(config, dataset=dataset, resume=True)


def test_a_finished_training_can_be_made_longer(
    config: TrainConfig, dataset: Dataset, tmp_path: Path
) -> None:
    train(replace(config, epochs=1), dataset=dataset)
    longer = train(config, dataset=dataset, resume=True)
    assert_same(longer, train(replace(config, out=str(tmp_path / "at once")), dataset=dataset))


def test_a_folder_with_a_training_is_not_overwritten(config: TrainConfig, dataset: Dataset) -> None:
    config = replace(config, epochs=1)
    train(config, dataset=dataset)
    with pytest.raises(ConfigError, match="--resume"):
        train(config, dataset=dataset)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def moved_boundary(dataset: Dataset) -> Dataset:
    """The same frames and targets, but one annotator of a validation video now says something else."""
    name = dataset.validation[0].id
    label = dataset.labels.videos[name]
    other = replace(label, boundaries=(label.boundaries[0] + 0.001, *label.boundaries[1:]))
    return replace(dataset, labels=replace(dataset.labels, videos={**dataset.labels.videos, name: other}))


def moved_target(dataset: Dataset) -> Dataset:
    first = dataset.training[0]
    return replace(
        dataset, training=[replace(first, targets=np.roll(first.targets, 1)), *dataset.training[1:]]
    )


def shifted_times(dataset: Dataset) -> Dataset:
    first = dataset.training[0]
    return replace(dataset, training=[replace(first, times=first.times + 1e-6), *dataset.training[1:]])


def other_split(dataset: Dataset) -> Dataset:
    """Videos that were added to a store change who trains and who validates."""
    training, validation = dataset.training, dataset.validation
    return replace(
        dataset, training=[*training[1:], validation[0]], validation=[training[0], *validation[1:]]
    )


OTHER_DATA: dict[str, tuple[Callable[[Dataset], Dataset], str]] = {
    "backbone": (lambda data: replace(data, backbone="other@2"), r"backbone 'synthetic.*', not 'other@2'"),
    "rate": (lambda data: replace(data, fps=12.0), r"fps 24\.0, not 12\.0"),
    "size": (lambda data: make_small(small_config(Path("x")), dim=8), "dim 12, not 8"),
    "times": (shifted_times, "other data: videos '"),
    "split": (other_split, "other data: videos '.*; labels '"),
    "labels": (moved_boundary, "other data: labels '"),
    "targets": (moved_target, "other data: labels '"),
}


@pytest.mark.parametrize("what", OTHER_DATA)
def test_other_data_are_refused_and_nothing_is_written(
    config: TrainConfig, dataset: Dataset, what: str
) -> None:
    config = replace(config, epochs=1)
    train(config, dataset=dataset, report=False)
    before = files(Path(config.out))
    change, message = OTHER_DATA[what]
    with pytest.raises(ConfigError, match=message) as caught:
        train(replace(config, epochs=2), dataset=change(dataset), resume=True)
    assert "\n" not in str(caught.value)
    assert files(Path(config.out)) == before


@pytest.mark.parametrize("change", [{"lr": 0.5}, {"width": 32}, {"method": "miniroad"}])
def test_another_recipe_is_refused_and_nothing_is_written(
    config: TrainConfig, dataset: Dataset, change: dict[str, object]
) -> None:
    config = replace(config, epochs=1)
    train(config, dataset=dataset, report=False)
    before = files(Path(config.out))
    with pytest.raises(ConfigError, match=f"was trained with {next(iter(change))} "):
        train(replace(config, epochs=2, **change), dataset=dataset, resume=True)  # type: ignore[arg-type]
    assert files(Path(config.out)) == before


def test_data_that_lie_elsewhere_now_are_the_same(config: TrainConfig, dataset: Dataset) -> None:
    train(replace(config, epochs=1), dataset=dataset, report=False)
    moved = replace(config, store="elsewhere", labels="renamed")
    again = make_small(moved)  # other objects of the same values
    assert len(train(moved, dataset=again, resume=True, report=False).progress.history) == 2


@pytest.mark.parametrize("missing", ["config", "data", "progress", "model", "optimizer", "random", "format"])
def test_a_checkpoint_with_a_part_gone_is_one_line(
    config: TrainConfig, dataset: Dataset, missing: str
) -> None:
    train(replace(config, epochs=1), dataset=dataset, report=False)
    path = Path(config.out) / CHECKPOINT
    state = torch.load(path, weights_only=True)
    del state[missing]
    torch.save(state, path)
    with pytest.raises(ConfigError, match=r"checkpoint\.pt: .*name another --out") as caught:
        train(config, dataset=dataset, resume=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"not a checkpoint"])
def test_a_damaged_checkpoint_is_named(config: TrainConfig, dataset: Dataset, content: bytes) -> None:
    out = Path(config.out)
    out.mkdir()
    (out / CHECKPOINT).write_bytes(content)
    with pytest.raises(ConfigError, match=r"checkpoint\.pt: can't read"):
        train(config, dataset=dataset, resume=True)


def test_one_seed_gives_one_model_and_another_another(
    config: TrainConfig, dataset: Dataset, tmp_path: Path
) -> None:
    config = replace(config, epochs=1)
    first = train(config, dataset=dataset)
    repeated = replace(config, out=str(tmp_path / "again"))
    another = replace(config, out=str(tmp_path / "other"), seed=1)
    again, other = train(repeated, dataset=dataset), train(another, dataset=dataset)
    assert_same(first, again, config, repeated)
    assert not torch.equal(first.model.state_dict()["token"], other.model.state_dict()["token"])


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
config = TrainConfig(
    out=sys.argv[1], width=32, ffn=32, heads=2, layers=2, epochs=6, batch=64, run=32, dropout=0.1,
    device="cpu", checkpoint_every=1, label_rule="exact",
)
data = make_dataset(*make_synthetic(SyntheticConfig(videos=20, frames=120, dim=32)), config)
train(config, dataset=data, resume=True)
"""


@pytest.mark.slow
def test_a_process_that_is_killed_outright_goes_on_in_another(tmp_path: Path) -> None:
    program = [sys.executable, "-c", f"import sys\nsys.path.insert(0, {TESTS!r})\n{_PROGRAM}"]
    subprocess.run([*program, str(tmp_path / "whole")], check=True)
    for wait in (0.3, 1.0):
        process = subprocess.Popen([*program, str(tmp_path / "killed")])
        while not (tmp_path / "killed" / CHECKPOINT).exists():
            assert process.poll() is None
            time.sleep(0.02)
        time.sleep(wait)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run([*program, str(tmp_path / "killed")], check=True)
    whole, killed = (torch.load(tmp_path / name / CHECKPOINT)["model"] for name in ("whole", "killed"))
    assert all(torch.equal(whole[name], killed[name]) for name in whole)
