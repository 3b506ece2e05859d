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
from ongebd.training.config import TrainConfig

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


def save_checkpoint(
    path: Path, config: TrainConfig, progress: Progress, model: nn.Module, optimizer: Optimizer
) -> None:
    """Write a checkpoint, whole or not at all: a kill while writing leaves the one before.

    Raises:
        ConfigError: The disk is full, or the folder may not be written to; the checkpoint before is intact.
    """
    state = {
        "format": FORMAT,
        "config": config.to_dict(),
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
    path: Path, config: TrainConfig, model: nn.Module, optimizer: Optimizer, device: torch.device
) -> Progress:
    """Bring everything back to where a checkpoint was written.

    Raises:
        ConfigError: It cannot be read, or was written by another recipe.
    """
    try:
        state = torch.load(path, map_location=device, weights_only=True)
        if state["format"] != FORMAT:
            raise ConfigError(f"{path}: format {state['format']}, and this version reads {FORMAT}")
        written = TrainConfig(**state["config"])
    except ConfigError:
        raise
    except Exception as problem:  # noqa: BLE001 - torch raises whatever a damaged file makes it trip over
        raise ConfigError(f"{path}: cannot be read ({type(problem).__name__}: {problem})") from None
    written.require_same_recipe(config, str(path))
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["random"].cpu())
    if device.type == "cuda" and state["random_gpu"] is not None:
        torch.cuda.set_rng_state(state["random_gpu"].cpu())
    return Progress(**state["progress"])


def seed_everything(seed: int) -> None:
    """One seed for all generators: weights, dropout, and whatever a library draws."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - for libraries; our own draws have their own generators
    torch.manual_seed(seed)
