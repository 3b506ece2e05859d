"""A small set to train on, in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ongebd.lab.training.config import TrainConfig
from ongebd.lab.training.dataset import Dataset, make_dataset
from ongebd.lab.training.loop import train
from synthetic import SyntheticConfig, make_synthetic


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def config(tmp_path: Path) -> TrainConfig:
    """A training of some seconds."""
    return small_config(tmp_path / "out")


def small_config(out: Path) -> TrainConfig:
    return TrainConfig(
        store="memory",
        labels="memory",
        out=str(out),
        width=16,
        ffn=16,
        heads=2,
        layers=2,
        epochs=2,
        batch=128,
        run=32,
        lr=3e-3,
        tau=None,
        device="cpu",
    )


@pytest.fixture(scope="session")
def train_small() -> Callable[..., Path]:
    """Trains for an epoch into a folder, which is returned; its model is in `model`."""

    def run(out: Path, backbone: str, dim: int) -> Path:
        config = replace(small_config(out), epochs=1)
        train(config, dataset=replace(make_small(config, dim=dim), backbone=backbone))
        return out

    return run


@pytest.fixture
def dataset(config: TrainConfig) -> Dataset:
    return make_small(config)


@pytest.fixture
def make() -> Callable[..., Dataset]:
    return make_small


def make_small(config: TrainConfig, **changes: Any) -> Dataset:
    given = {"videos": 10, "frames": 80, "dim": 12, "event": (20, 30), **changes}
    store, labels = make_synthetic(SyntheticConfig(**given))
    return make_dataset(store, labels, config)
