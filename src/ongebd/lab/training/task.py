"""What is trained: the paper's anticipator or one of the online baselines, behind one interface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ongebd.baselines.methods import make_network, network_shape
from ongebd.baselines.network import OnlineNetwork, parameter_count
from ongebd.baselines.weights import load_made, load_network, save_network
from ongebd.data.files import FloatArray
from ongebd.data.labelled import LabelledVideo
from ongebd.detector.trained import ONNX_FILE, write_about
from ongebd.errors import os_errors
from ongebd.estimator.anticipator import ConsistentEventAnticipator
from ongebd.estimator.losses import est_loss, min_max_normalised, total_loss
from ongebd.estimator.torch_anticipator import load_anticipator
from ongebd.lab.training.batches import Features
from ongebd.lab.training.config import ESTIMATOR, TrainConfig
from ongebd.lab.training.dataset import Dataset
from ongebd.lab.training.scores import (
    errors_of_model,
    frame_errors,
    probabilities_of_baseline,
    scores_of_videos,
)
from ongebd.lab.training.validation import PAPER_TAU
from ongebd.offline.network import OfflineNetwork
from ongebd.offline.systems import TRAINED, make_system


class EstimatorTask:
    """The Consistent Event Anticipator, or without its losses the ablation's classifier; see `Task`."""

    def __init__(self, config: TrainConfig) -> None:
        self.config, self.balanced = config, config.balanced
        self.name = "classifier" if config.is_baseline else "cea"

    def network(self, dim: int) -> nn.Module:
        return ConsistentEventAnticipator(self.config.model(dim))

    def objective(self, network: Any) -> nn.Module:
        return Objective(network, self.config)

    def scores(self, network: Any, videos: Sequence[LabelledVideo], features: Features) -> list[FloatArray]:
        return errors_of_model(network, videos, features)

    def write(self, folder: Path, network: Any) -> None:
        """Write the ONNX file too, if `onnx` is installed."""
        network.save_pretrained(folder)
        if network.config.head == "anticipation" and find_spec("onnx") is not None:
            from ongebd.lab.training.onnx_export import export_onnx

            export_onnx(network, folder / ONNX_FILE)

    def load(self, folder: Path) -> nn.Module:
        return load_anticipator(folder)

    def about(self, network: Any) -> dict[str, Any]:
        return {"parameters": parameter_count(network), **asdict(network.config)}


class Objective(nn.Module):
    """From features to the paper's loss, as one module, so that compiling and DDP see all of it."""

    def __init__(self, model: ConsistentEventAnticipator, config: TrainConfig) -> None:
        super().__init__()
        self.model = model
        self.config = config

    def forward(
        self, frames: Tensor, targets: Tensor, lead: Tensor, weight: Tensor, count: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The loss of S runs of R targets each.

        Args:
            frames: Features, (S, L + K + R, D), laid out as in `ongebd.data.windows`.
            targets: y of the last K + R of them, (S, K + R).
            lead: How many errors precede each of those, negative if it has no error itself, (S, K + R).
            weight: Factor of the boundaries' loss, a scalar.
            count: Divisor of the sum over the targets, a scalar.

        Returns:
            The loss, and the errors it was made from, (S, K + R), without gradient.
        """
        config = self.config
        errors = frame_errors(self.model, frames)
        known = lead >= 0
        if config.is_baseline:
            each = est_loss(errors, targets, weight)  # the binary cross-entropy of the classifier
        else:
            cosine = self.model.config.metric == "cosine"
            each = total_loss(
                errors if cosine else min_max_normalised(errors, known),
                targets,
                lead,
                region=config.region,
                alpha=config.alpha,
                weight=weight,
                est=config.est,
                rest=config.rest,
            )
        each = torch.where(known, each, 0)[:, config.region :]  # (S, R): the places before are context
        return each.sum() / count, errors.detach()


class BaselineTask:
    """One of the online baselines, with its own loss; see `Task`."""

    def __init__(self, config: TrainConfig) -> None:
        self.config, self.name = config, config.method
        self.balanced = False  # as published

    def network(self, dim: int) -> nn.Module:
        shape = network_shape(self.config.method, self.config.network_settings(), dim=dim)
        return make_network(self.config.method, shape)

    def objective(self, network: Any) -> nn.Module:
        return BaselineObjective(network)

    def scores(self, network: Any, videos: Sequence[LabelledVideo], features: Features) -> list[FloatArray]:
        return probabilities_of_baseline(network, videos, features)

    def write(self, folder: Path, network: Any) -> None:
        save_network(folder, network)

    def load(self, folder: Path) -> nn.Module:
        return load_network(folder)

    def about(self, network: Any) -> dict[str, Any]:
        return {"method": self.name, "parameters": parameter_count(network), **asdict(network.shape)}


class BaselineObjective(nn.Module):
    """The loss of a baseline over a batch of runs, or of an offline system over clips."""

    def __init__(self, network: OnlineNetwork[Any] | OfflineNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, frames: Tensor, targets: Tensor, lead: Tensor, weight: Tensor, count: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Like `Objective.forward`, with losses instead of errors."""
        real = lead >= 0
        given = real if isinstance(self.network, OfflineNetwork) else lead
        each = self.network.losses(frames.float(), targets, given, weight)  # (S, R)
        each = torch.where(real[:, -each.shape[1] :], each, 0)
        return each.sum() / count, each.detach()


class OfflineTask(BaselineTask):
    """One of the offline systems, on clips instead of runs; see `Task`."""

    def network(self, dim: int) -> nn.Module:
        return make_system(self.config.method, self.config.network_settings(), dim=dim)

    def scores(self, network: Any, videos: Sequence[LabelledVideo], features: Features) -> list[FloatArray]:
        network.eval()
        return scores_of_videos(network.score_video, videos)

    def load(self, folder: Path) -> nn.Module:
        return load_made(folder, make_system)


Task = EstimatorTask | BaselineTask
"""One method's part of a training: its network, loss, scores and files.

`name` is for the report, `balanced` tells whether boundaries are weighted by the batch's balance. `scores`
has an array (T,) for each video, NaN for the first frame of each stretch.
"""


def task_of(config: TrainConfig) -> Task:
    """The task that a configuration names."""
    if config.method in TRAINED:
        return OfflineTask(config)
    return EstimatorTask(config) if config.method == ESTIMATOR else BaselineTask(config)


def save_model(task: Task, folder: Path, network: nn.Module, dataset: Dataset, threshold: float) -> None:
    """Write a model's folder: weights, shape and the settings of a stream.

    Args:
        task: The network's.
        folder: Files of an older model there are overwritten.
        network: The network.
        dataset: What it was trained on.
        threshold: The best one on the validation videos; the configuration's own τ takes precedence.

    Raises:
        ConfigError: The folder isn't writable.
    """
    config, chosen = task.config, "chosen on the validation videos"
    if config.obd:
        chosen = chosen if config.tau is None else "given"
        settings = config.stream(dataset.fps, threshold if config.tau is None else config.tau)
        what = f"τ = {settings.tau:g}"
    else:
        settings = config.stream(dataset.fps, PAPER_TAU)  # which a fixed threshold ignores
        settings = replace(settings, head="threshold", threshold=threshold)
        what = f"a threshold of {threshold:.4g}"
    method = "CEA" if config.method == ESTIMATOR else config.method
    data = f"{len(dataset.training)} videos of {dataset.labels.dataset}"
    summary = f"{method} trained on {data}; {what} was {chosen}"
    with os_errors(folder):
        task.write(folder, network)
        write_about(folder, backbone=dataset.backbone, settings=settings, summary=summary)


def optimizer_of(config: TrainConfig, network: nn.Module, device: torch.device) -> torch.optim.Optimizer:
    """The optimiser that a configuration names; it clips gradients first if that says so."""
    kinds: dict[str, Any] = {
        "adam": torch.optim.Adam,
        "adamw": torch.optim.AdamW,
        "sgd": partial(torch.optim.SGD, momentum=0.9),
    }
    optimizer: torch.optim.Optimizer = kinds[config.optimizer](
        network.parameters(), lr=config.lr, weight_decay=config.weight_decay, fused=device.type == "cuda"
    )
    if (largest := config.clip) is not None:

        def clip(*_: object) -> None:
            nn.utils.clip_grad_norm_(network.parameters(), largest)

        optimizer.register_step_pre_hook(clip)
    return optimizer
