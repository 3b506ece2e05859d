"""The state of a training on disk, so that a killed training continues as if nothing had happened."""

from __future__ import annotations

import os
import random
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer

from ongebd.common.writing import write_whole
from ongebd.errors import ConfigError
from ongebd.lab.training.config import TrainConfig
from ongebd.lab.training.dataset import DataIdentity

FORMAT = 1


@dataclass
class Progress:
    """How far a training has come.

    Attributes:
        epoch: Finished epochs.
        step: Finished steps of the current epoch.
        loss_sum: Sum of the losses of those steps.
        history: Loss and figures of each finished epoch.
        best: The best value of the figure that chooses the model; below 0 before the first validation.
        best_epoch: Its epoch.
    """

    epoch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)
    best: float = -1.0
    best_epoch: int = -1


def save_checkpoint(
    path: Path,
    config: TrainConfig,
    data: DataIdentity,
    progress: Progress,
    model: nn.Module,
    optimizer: Optimizer,
) -> None:
    """Write a checkpoint whole; an interrupted write leaves the previous one.

    Raises:
        ConfigError: The disk is full, or the folder isn't writable.
    """
    state = {
        "format": FORMAT,
        "config": asdict(config),
        "data": asdict(data),
        "progress": asdict(progress),
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "random": torch.get_rng_state(),
        "random_gpu": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
    }
    try:
        with write_whole(path) as part, part.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
    except (OSError, RuntimeError) as problem:  # torch raises RuntimeError on a full disk
        raise ConfigError(f"{path}: can't write ({problem}); the previous checkpoint is intact") from None


def load_checkpoint(
    path: Path,
    config: TrainConfig,
    data: DataIdentity,
    model: nn.Module,
    optimizer: Optimizer,
    device: torch.device,
) -> Progress:
    """Restore model, optimiser and random generators, if recipe and data are the checkpoint's own.

    Raises:
        ConfigError: The checkpoint can't be read, or has another recipe or other data. No file is changed.
    """
    try:
        state = torch.load(path, map_location=device, weights_only=True)
        found, written, trained_on = state["format"], state["config"], DataIdentity(**state["data"])
    except Exception as problem:  # noqa: BLE001 - a damaged file makes torch raise anything
        reason = f"{type(problem).__name__}: {_short(problem)}"
        raise ConfigError(f"{path}: can't read ({reason}); name another --out") from None
    if found != FORMAT:
        raise ConfigError(f"{path}: format {found}, but this version reads {FORMAT}; name another --out")
    try:
        then = TrainConfig(**written)
    except (ConfigError, TypeError) as problem:
        raise ConfigError(f"{path}: its settings are invalid now ({problem}); name another --out") from None
    then.require_same_recipe(config, str(path))
    trained_on.require_same(data, str(path))
    try:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"].cpu())
        if device.type == "cuda" and state["random_gpu"] is not None:
            torch.cuda.set_rng_state(state["random_gpu"].cpu())
        return Progress(**state["progress"])
    except Exception as problem:  # noqa: BLE001 - torch raises anything if something doesn't fit
        raise ConfigError(
            f"{path}: does not fit this network ({_short(problem)}); name another --out"
        ) from None


def _short(problem: Exception) -> str:
    return " ".join(str(problem).split())[:200]


def seed_everything(seed: int) -> None:
    """Seed all generators: weights, dropout, and what libraries draw."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - for libraries; our own draws have their own generators
    torch.manual_seed(seed)
