"""The state of a training on disk, so that a killed training continues as if nothing had happened."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from ongebd.common.settings import differences
from ongebd.common.writing import write_whole
from ongebd.errors import ConfigError
from ongebd.lab.training.config import MAY_CHANGE, TrainConfig
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


@dataclass(frozen=True)
class Checkpoint:
    """A file with the state of a training: its recipe, data, network and optimiser."""

    path: Path
    config: TrainConfig
    data: DataIdentity
    model: nn.Module
    optimizer: Optimizer

    def save(self, progress: Progress) -> None:
        """Write the file whole; an interrupted write leaves the previous one.

        Raises:
            ConfigError: The disk is full, or the folder isn't writable.
        """
        state = {
            "format": FORMAT,
            "config": asdict(self.config),
            "data": asdict(self.data),
            "progress": asdict(progress),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "random_gpu": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
        }
        try:
            with write_whole(self.path) as part, part.open("wb") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())
        except (OSError, RuntimeError) as problem:  # torch raises RuntimeError on a full disk
            raise ConfigError(
                f"{self.path}: can't write ({problem}); the previous checkpoint is intact"
            ) from None

    def load(self, device: torch.device) -> Progress:
        """Restore network, optimiser and random generators, if recipe and data are the same.

        Raises:
            ConfigError: The file can't be read, or has another recipe or other data. No file is changed.
        """
        where = f"{self.path}: "
        try:
            state = torch.load(self.path, map_location=device, weights_only=True)
            if state["format"] != FORMAT:
                raise ConfigError(f"format {state['format']}, but this version reads {FORMAT}")
            then, data = TrainConfig(**state["config"]), DataIdentity(**state["data"])
        except Exception as problem:  # noqa: BLE001 - a damaged file makes torch raise anything
            reason = f"{type(problem).__name__}: {_short(problem)}"
            raise ConfigError(f"{where}can't read ({reason}); name another --out") from None
        if changes := differences(then, self.config, MAY_CHANGE):
            raise ConfigError(f"{where}was trained with {changes}; name another --out")
        if changes := differences(data, self.data):
            advice = "give the original store and labels, or name another --out"
            raise ConfigError(f"{where}was trained on other data: {changes}; {advice}")
        try:
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            torch.set_rng_state(state["random"].cpu())
            if device.type == "cuda" and state["random_gpu"] is not None:
                torch.cuda.set_rng_state(state["random_gpu"].cpu())
            return Progress(**state["progress"])
        except Exception as problem:  # noqa: BLE001 - torch raises anything if something doesn't fit
            raise ConfigError(
                f"{where}doesn't fit this network ({_short(problem)}); name another --out"
            ) from None


def _short(problem: Exception) -> str:
    return " ".join(str(problem).split())[:200]
