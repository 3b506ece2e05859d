"""The state of a training on the disk, so that one that was killed goes on as if it had not been."""

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

from ongebd.errors import ConfigError
from ongebd.lab.training.config import TrainConfig
from ongebd.lab.training.data_identity import DataIdentity

FORMAT = 1


@dataclass
class Progress:
    """How far a training has come.

    Attributes:
        epoch: Epochs done.
        step: Steps done of the epoch under way.
        loss_sum: Sum of the losses of those steps.
        history: What is known of each epoch done.
        best: The best value of the figure that chooses the model; below 0 before the first validation.
        best_epoch: The epoch that it belongs to.
    """

    epoch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)
    best: float = -1.0
    best_epoch: int = -1


@dataclass(frozen=True, slots=True)
class Resumed:
    """What a checkpoint gave.

    Attributes:
        progress: How far its training had come.
        knows_its_data: Whether it says on which data; those of older versions do not.
    """

    progress: Progress
    knows_its_data: bool


def save_checkpoint(
    path: Path,
    config: TrainConfig,
    data: DataIdentity,
    progress: Progress,
    model: nn.Module,
    optimizer: Optimizer,
) -> None:
    """Write a checkpoint, whole or not at all: a kill while writing leaves the one before.

    Raises:
        ConfigError: The disk is full, or the folder may not be written to; the checkpoint before is intact.
    """
    state = {
        "format": FORMAT,
        "config": config.to_dict(),
        "data": data.to_dict(),
        "progress": asdict(progress),
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "random": torch.get_rng_state(),
        "random_gpu": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
    }
    unfinished = path.with_suffix(".new")
    try:
        with unfinished.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except (OSError, RuntimeError) as problem:  # torch says RuntimeError where a disk is full
        unfinished.unlink(missing_ok=True)
        raise ConfigError(f"{path}: cannot be written ({problem}); the checkpoint before is intact") from None


def load_checkpoint(
    path: Path,
    config: TrainConfig,
    data: DataIdentity,
    model: nn.Module,
    optimizer: Optimizer,
    device: torch.device,
) -> Resumed:
    """Bring everything back to where a checkpoint was written, if recipe and data are those of then.

    Raises:
        ConfigError: It cannot be read, or was written by another recipe or on other data; the files in its
            folder are as they were.
    """
    state = _read(path, device)
    try:
        written = TrainConfig(**state["config"])
        then = DataIdentity.from_dict(state["data"]) if "data" in state else None
    except ConfigError as problem:
        raise ConfigError(
            f"{path}: has settings that are refused now ({problem}); name another --out"
        ) from None
    except (KeyError, TypeError) as problem:
        raise _damaged(path, problem) from None
    written.require_same_recipe(config, str(path))
    if then is not None:
        then.require_same(data, str(path))
    try:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"].cpu())
        if device.type == "cuda" and state["random_gpu"] is not None:
            torch.cuda.set_rng_state(state["random_gpu"].cpu())
        return Resumed(Progress(**state["progress"]), knows_its_data=then is not None)
    except Exception as problem:  # noqa: BLE001 - torch raises whatever does not fit makes it trip over
        raise ConfigError(
            f"{path}: does not fit this network ({_short(problem)}); give the store of then, or name another"
            " --out"
        ) from None


def _read(path: Path, device: torch.device) -> dict[str, Any]:
    try:
        state = torch.load(path, map_location=device, weights_only=True)
        if not isinstance(state, dict):
            raise TypeError(f"holds {type(state).__name__}")
        found = state["format"]
    except Exception as problem:  # noqa: BLE001 - torch raises whatever a damaged file makes it trip over
        raise _damaged(path, problem) from None
    if found != FORMAT:
        raise ConfigError(f"{path}: format {found}, and this version reads {FORMAT}; name another --out")
    return state


def _damaged(path: Path, problem: Exception) -> ConfigError:
    return ConfigError(
        f"{path}: cannot be read ({type(problem).__name__}: {_short(problem)}); name another --out"
    )


def _short(problem: Exception) -> str:
    return " ".join(str(problem).split())[:200]


def seed_everything(seed: int) -> None:
    """One seed for all generators: weights, dropout, and whatever a library draws."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - for libraries; our own draws have their own generators
    torch.manual_seed(seed)
