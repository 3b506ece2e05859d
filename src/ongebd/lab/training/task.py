"""What is trained: the paper's anticipator or one of the online baselines, behind one interface.

The loop knows neither. A task says which network, which loss and which optimiser, how frames are scored for
validation, and how the result is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from ongebd.baselines.methods import make_network, network_shape
from ongebd.baselines.network import OnlineNetwork, parameter_count
from ongebd.baselines.weights import load_network, save_network
from ongebd.data.labelled import LabelledVideo
from ongebd.data.numbers import FloatArray
from ongebd.data.windows import stretches
from ongebd.detector.trained import write_about
from ongebd.errors import ConfigError
from ongebd.estimator.anticipator import ConsistentEventAnticipator
from ongebd.lab.training.batches import Features
from ongebd.lab.training.config import ESTIMATOR, TrainConfig
from ongebd.lab.training.dataset import Dataset
from ongebd.lab.training.errors_of_videos import errors_of_model
from ongebd.lab.training.layout import network_settings
from ongebd.lab.training.model_folder import save_model
from ongebd.lab.training.objective import Objective

# Streams that are scored beside each other, and their frames together: memory does not grow with length.
_STREAMS, _FRAMES = 16, 8192


class Task(Protocol):
    """One method's part of a training."""

    name: str
    """What it is called in the report."""
    balanced: bool
    """Whether boundaries are weighted by the batch's balance."""

    def network(self, dim: int) -> nn.Module:
        """A new network for features of D numbers."""

    def optimizer(self, network: nn.Module, device: torch.device) -> torch.optim.Optimizer:
        """Its optimiser."""

    def objective(self, network: nn.Module) -> nn.Module:
        """Its loss, called as `ongebd.lab.training.objective.Objective` is."""

    def scores(
        self, network: nn.Module, videos: Sequence[LabelledVideo], features: Features, device: torch.device
    ) -> list[FloatArray]:
        """The score of each frame of each video, (T,); NaN for the first of each stretch."""

    def save(self, folder: Path, network: nn.Module, dataset: Dataset, threshold: float) -> None:
        """Write the model's folder, with a threshold that was chosen on the validation videos."""

    def load(self, folder: Path) -> nn.Module:
        """The network in a folder."""

    def about(self, network: nn.Module) -> dict[str, Any]:
        """The network in numbers."""


def task_of(config: TrainConfig) -> Task:
    """The task that a configuration names."""
    return EstimatorTask(config) if config.method == ESTIMATOR else BaselineTask(config)


class EstimatorTask:
    """The Consistent Event Anticipator, or without its losses the ablation's classifier.

    Args:
        config: The training's.
    """

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.name = "classifier" if config.is_baseline else "cea"
        self.balanced = config.balanced

    def network(self, dim: int) -> nn.Module:
        """See `Task`."""
        return ConsistentEventAnticipator(self.config.model(dim))

    def optimizer(self, network: nn.Module, device: torch.device) -> torch.optim.Optimizer:
        """See `Task`."""
        return torch.optim.AdamW(
            network.parameters(),
            lr=self.config.lr,
            weight_decay=self.config.weight_decay,
            fused=device.type == "cuda",
        )

    def objective(self, network: nn.Module) -> nn.Module:
        """See `Task`."""
        return Objective(_anticipator(network), self.config)

    def scores(
        self, network: nn.Module, videos: Sequence[LabelledVideo], features: Features, device: torch.device
    ) -> list[FloatArray]:
        """See `Task`."""
        return errors_of_model(_anticipator(network), videos, features, device)

    def save(self, folder: Path, network: nn.Module, dataset: Dataset, threshold: float) -> None:
        """See `Task`."""
        save_model(folder, _anticipator(network), self.config, dataset, threshold)

    def load(self, folder: Path) -> nn.Module:
        """See `Task`."""
        return ConsistentEventAnticipator.from_pretrained(folder)

    def about(self, network: nn.Module) -> dict[str, Any]:
        """See `Task`."""
        return {"parameters": parameter_count(network), **_anticipator(network).config.to_dict()}


class BaselineTask:
    """One of the online baselines, with its own loss and, unless told otherwise, its authors' optimiser.

    Args:
        config: The training's.
    """

    balanced: bool = False  # as published

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.name = config.method

    def network(self, dim: int) -> nn.Module:
        """See `Task`."""
        shape = network_shape(self.config.method, network_settings(self.config), dim=dim)
        return make_network(self.config.method, shape)

    def optimizer(self, network: nn.Module, device: torch.device) -> torch.optim.Optimizer:
        """See `Task`."""
        recipe = _online(network).recipe
        if not self.config.own_recipe:
            # AdamW: in Adam a weight decay of that size is a pull of the gradient that silences the network.
            config = self.config
            recipe = replace(recipe, optimizer="adamw", lr=config.lr, weight_decay=config.weight_decay)
        kinds: dict[str, Callable[..., torch.optim.Optimizer]] = {
            "adam": torch.optim.Adam,
            "adamw": torch.optim.AdamW,
        }
        optimizer = kinds[recipe.optimizer](
            network.parameters(), lr=recipe.lr, weight_decay=recipe.weight_decay, fused=device.type == "cuda"
        )
        if (largest := recipe.clip) is not None:
            parameters = list(network.parameters())
            optimizer.register_step_pre_hook(lambda _optimizer, _args, _kwargs: _clip(parameters, largest))
        return optimizer

    def objective(self, network: nn.Module) -> nn.Module:
        """See `Task`."""
        return BaselineObjective(_online(network))

    @torch.no_grad()
    def scores(
        self, network: nn.Module, videos: Sequence[LabelledVideo], features: Features, device: torch.device
    ) -> list[FloatArray]:
        """See `Task`; each stretch is one stream, and streams of like length run beside each other."""
        del device
        was_training = network.training
        network.eval()
        ends = np.cumsum([len(video) for video in videos])
        spans = [
            (int(end) - len(video) + first, int(end) - len(video) + last)
            for video, end in zip(videos, ends, strict=True)
            for first, last in stretches(video.epochs)
        ]
        groups = beside_each_other(spans)
        out = np.full(int(ends[-1]) if len(ends) else 0, np.nan)
        # A shorter stream goes on with its last frame: methods are online, so that nothing before changes.
        rows = (
            np.stack(
                [
                    np.minimum(first + np.arange(group[-1][1] - group[-1][0]), last - 1)
                    for first, last in group
                ]
            )
            for group in groups
        )
        for group, frames in zip(groups, features.stream(rows), strict=True):
            chances = network(frames.float()).float().sigmoid().double().cpu().numpy()  # (S, T)
            for (first, last), each in zip(group, chances, strict=True):
                out[first + 1 : last] = each[1 : last - first]
        network.train(was_training)
        return np.split(out, ends[:-1])

    def save(self, folder: Path, network: nn.Module, dataset: Dataset, threshold: float) -> None:
        """See `Task`."""
        config = self.config
        tau = (threshold if config.tau is None else config.tau) if config.obd else 1.5
        settings = config.stream(dataset.fps, tau)
        what = f"τ = {tau:g} of the discriminator"
        if not config.obd:
            settings = replace(settings, head="threshold", threshold=threshold)
            what = f"a threshold of {threshold:.4g}"
        chosen = "given" if config.obd and config.tau is not None else "chosen on the validation videos"
        summary = (
            f"{config.method} trained on {len(dataset.training)} videos of {dataset.labels.dataset};"
            f" {what} was {chosen}"
        )
        try:
            save_network(folder, _online(network))
            write_about(folder, backbone=dataset.backbone, settings=settings, summary=summary)
        except OSError as problem:
            raise ConfigError(f"{folder}: cannot be written ({problem.strerror})") from None

    def load(self, folder: Path) -> nn.Module:
        """See `Task`."""
        return load_network(folder)

    def about(self, network: nn.Module) -> dict[str, Any]:
        """See `Task`."""
        shape: Any = _online(network).shape
        return {"method": self.name, "parameters": parameter_count(network), **asdict(shape)}


def beside_each_other(spans: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Stretches (first, end) in groups of like length, the longest of each last; the longer, the fewer."""
    groups: list[list[tuple[int, int]]] = []
    for span in sorted(spans, key=lambda span: span[1] - span[0]):
        room = min(_STREAMS, _FRAMES // (span[1] - span[0]))
        if groups and len(groups[-1]) < room:
            groups[-1].append(span)
        else:
            groups.append([span])
    return groups


class BaselineObjective(nn.Module):
    """A baseline's loss over a batch of runs.

    Args:
        network: The baseline.
    """

    def __init__(self, network: OnlineNetwork[Any]) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, frames: Tensor, targets: Tensor, lead: Tensor, weight: Tensor, count: Tensor
    ) -> tuple[Tensor, Tensor]:
        """As `Objective.forward`, with losses in place of errors."""
        each = self.network.losses(frames.float(), targets, lead, weight)  # (S, R)
        each = torch.where(lead[:, -each.shape[1] :] >= 0, each, 0)
        return each.sum() / count, each.detach()


def _clip(parameters: list[nn.Parameter], largest: float) -> None:
    nn.utils.clip_grad_norm_(parameters, largest)


def _anticipator(network: nn.Module) -> ConsistentEventAnticipator:
    if not isinstance(network, ConsistentEventAnticipator):
        raise TypeError(f"{type(network).__name__} is no anticipator")
    return network


def _online(network: nn.Module) -> OnlineNetwork[Any]:
    if not isinstance(network, OnlineNetwork):
        raise TypeError(f"{type(network).__name__} is no online baseline")
    return network
