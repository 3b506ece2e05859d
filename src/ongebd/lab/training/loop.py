"""The training, from top to bottom."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from ongebd.data.labelled import LabelledVideo
from ongebd.data.numbers import FloatArray
from ongebd.detector.trained import ABOUT_FILE, read_about
from ongebd.errors import ConfigError
from ongebd.lab.training.batches import BatchLoader, Features, place_features
from ongebd.lab.training.checkpoint import Progress, load_checkpoint, save_checkpoint, seed_everything
from ongebd.lab.training.config import TrainConfig, write_config
from ongebd.lab.training.curves import Curves
from ongebd.lab.training.data_identity import DataIdentity
from ongebd.lab.training.dataset import Dataset, open_dataset
from ongebd.lab.training.model_folder import MODEL
from ongebd.lab.training.processes import Processes, joined
from ongebd.lab.training.report import Report, make_report, write_training_report
from ongebd.lab.training.step import StepFunction, precision, prepared, train_step
from ongebd.lab.training.task import task_of
from ongebd.lab.training.validation import Validated, validate

CHECKPOINT = "checkpoint.pt"

_LOSS_EVERY = 20  # steps between two looks at the loss: each makes the host wait for the GPU


class Watcher(Protocol):
    """Who follows a training; the command line draws a bar."""

    def say(self, line: str) -> None:
        """A line for people."""

    def step(self, epoch: int, step: int, steps: int, loss: float, windows_per_second: float) -> None:
        """Steps done of an epoch, and the mean loss of it so far."""


class Quiet:
    """A watcher that says nothing."""

    def say(self, line: str) -> None:
        """Nothing."""

    def step(self, epoch: int, step: int, steps: int, loss: float, windows_per_second: float) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """What came of a training.

    Attributes:
        model: The network of the best epoch.
        progress: The history.
        report: What the report says; None without one, and on all processes but the first.
        last: Weights after the last epoch.
    """

    model: nn.Module
    progress: Progress
    report: Report | None
    last: dict[str, Tensor]


def train(
    config: TrainConfig,
    *,
    dataset: Dataset | None = None,
    resume: bool = False,
    watcher: Watcher | None = None,
    report: bool = True,
) -> Trained:
    """Train a network, validate it, and write model, checkpoint and report into `config.out`.

    Run by `torchrun` it uses a GPU for each process, and the batch is shared between them.

    Args:
        config: Everything.
        dataset: The data; None opens what the configuration names.
        resume: Go on from the checkpoint in `config.out`, if there is one. The result is that of a training
            that was never broken off; on the CPU to the bit.
        watcher: Is told how it goes.
        report: Make the report, for which untrained anticipators are validated too.

    Raises:
        OngebdError: Data, configuration or folder are not in order; the message says what to mend.
    """
    watcher = watcher or Quiet()
    with joined(config.device) as processes:
        if not processes.is_first:
            watcher = Quiet()

        # What is trained on.
        out = _checked_out(config, resume)
        dataset = dataset or open_dataset(config)
        for note in dataset.notes:
            watcher.say(note)
        device, data = processes.device, DataIdentity.of(dataset)
        _runs_in_batch(config, dataset, processes)  # raises now for what could not be shared later

        # What is trained.
        seed_everything(config.seed)
        torch.set_float32_matmul_precision("high" if device.type == "cuda" else "highest")
        task = task_of(config)
        model = task.network(dataset.dim).to(device).train()
        optimizer = task.optimizer(model, device)
        progress = Progress()
        if resume and (out / CHECKPOINT).exists():
            resumed = load_checkpoint(out / CHECKPOINT, config, data, model, optimizer, device)
            progress = resumed.progress
            if not resumed.knows_its_data:
                _check_best(out, dataset)
                watcher.say(
                    f"{out / CHECKPOINT}: an older version's, which does not say on what it was trained;"
                    " make sure that store and labels are those of then"
                )
            watcher.say(f"going on from epoch {progress.epoch}, step {progress.step}")

        # All is in order: from here on something is written.
        _begin_out(config, processes, out)
        features = place_features(dataset.training, device, config.features_in)
        where = config.features_in if processes.is_first else "host"  # only the first one validates
        held_out = place_features(dataset.validation, device, where)
        loader = _loader(config, dataset, features, processes)
        objective = prepared(task.objective(model), config, processes)

        def keep() -> None:
            if processes.is_first:
                save_checkpoint(out / CHECKPOINT, config, data, progress, model, optimizer)

        # The training.
        curves = Curves(out if config.tensorboard and processes.is_first else None)
        while progress.epoch < config.epochs:
            _epoch(config, progress, loader, objective, optimizer, processes.device, keep, watcher)
            loss = progress.loss_sum / max(1, loader.steps(progress.epoch))
            row: dict[str, Any] = {"epoch": progress.epoch, "loss": loss}
            is_last = progress.epoch + 1 == config.epochs
            if processes.is_first and (is_last or (progress.epoch + 1) % config.validate_every == 0):
                few = dataset.validation[: config.validation_limit]
                scores = task.scores(model, few, held_out, device)
                result = _validate(config, dataset, task.name, few, scores)
                row |= {"threshold": result.threshold, "figures": result.figures}
                row |= {"error_boundary": result.histograms.mean_boundary}
                row |= {"error_elsewhere": result.histograms.mean_elsewhere}
                value = result.figures[config.select_by]
                watcher.say(_line(row, config.select_by))
                if value > progress.best:
                    progress.best, progress.best_epoch = value, progress.epoch
                    task.save(out / MODEL, model, dataset, result.threshold)
            curves.epoch(row)
            progress.history.append(row)
            progress.epoch, progress.step, progress.loss_sum = progress.epoch + 1, 0, 0.0
            keep()
            processes.wait()
        curves.close()

        # What came of it.
        last = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
        best = task.load(out / MODEL).to(device)
        made = None
        if processes.is_first and report:
            watcher.say("validating the best epoch, and the anticipators that need no training")
            made = make_report(config, dataset, task, best, held_out, device, progress)
            task.save(out / MODEL, best, dataset, made.threshold)
            write_training_report(made, out)
            for line in made.findings:
                watcher.say(line)
        processes.wait()
        return Trained(best, progress, made, last)


def _epoch(
    config: TrainConfig,
    progress: Progress,
    loader: BatchLoader,
    objective: StepFunction,
    optimizer: torch.optim.Optimizer,
    device: torch.device,
    keep: Callable[[], None],
    watcher: Watcher,
) -> None:
    """One pass over the training videos, or what is left of it."""
    steps, began, first = loader.steps(progress.epoch), time.perf_counter(), progress.step
    losses: list[Tensor] = []  # on the device: looking at each would make the host wait
    for batch in loader.epoch(progress.epoch, skip=progress.step):
        losses.append(train_step(objective, optimizer, batch, precision(config, device)))
        progress.step += 1
        write = bool(config.checkpoint_every) and progress.step % (config.checkpoint_every or 1) == 0
        if write or progress.step % _LOSS_EVERY == 0 or progress.step == steps:
            # One by one, in float64: the sum does not depend on where it was interrupted.
            for loss in torch.stack(losses).tolist():
                progress.loss_sum += loss
            losses.clear()
            if not math.isfinite(progress.loss_sum):
                raise ConfigError(
                    f"the loss is no number any more at epoch {progress.epoch + 1}, step {progress.step}:"
                    " lower lr, or set precision to float32"
                )
            speed = (progress.step - first) * loader.windows_in_batch / (time.perf_counter() - began)
            watcher.step(progress.epoch, progress.step, steps, progress.loss_sum / progress.step, speed)
        if write:
            keep()


def _runs_in_batch(config: TrainConfig, dataset: Dataset, processes: Processes) -> int:
    """How many runs a batch has, once it is known that the processes can share them evenly."""
    runs = max(1, config.batch // dataset.tape.run)
    if runs % processes.world:
        raise ConfigError(
            f"batch / run ({runs}) must be a multiple of the {processes.world} processes; change batch or run"
        )
    return runs


def _loader(config: TrainConfig, dataset: Dataset, features: Features, processes: Processes) -> BatchLoader:
    return BatchLoader(
        dataset.tape,
        features,
        processes.device,
        runs=_runs_in_batch(config, dataset, processes),
        seed=config.seed,
        balanced=task_of(config).balanced,
        rank=processes.rank,
        world=processes.world,
    )


def _validate(
    config: TrainConfig,
    dataset: Dataset,
    name: str,
    videos: Sequence[LabelledVideo],
    scores: Sequence[FloatArray],
) -> Validated:
    """The network on some of the first validation videos."""
    return validate(
        name,
        videos,
        scores,
        dataset.labels,
        config.stream(dataset.fps, 1.0),
        select_by=config.select_by,
        obd=config.obd,
    )


def _checked_out(config: TrainConfig, resume: bool) -> Path:
    """The folder of the results, untouched, once it is known that a training may begin or go on in it."""
    if not config.out:
        raise ConfigError("no folder for the results: say --out, or out in the configuration")
    out = Path(config.out)
    if (out / CHECKPOINT).exists() and not resume:
        raise ConfigError(f"{out}: a training is in it already; say --resume to go on, or another --out")
    return out


def _check_best(out: Path, dataset: Dataset) -> None:
    """Hold the data against the best model so far, where the checkpoint itself says nothing of them."""
    if not (out / MODEL / ABOUT_FILE).exists():
        return
    about = read_about(out / MODEL)
    if (about.backbone, about.settings.fps) != (dataset.backbone, dataset.fps):
        raise ConfigError(
            f"{out / MODEL}: was trained on features of {about.backbone!r} at {about.settings.fps} frames a"
            f" second, not of {dataset.backbone!r} at {dataset.fps}; give the store of then, or name another"
            " --out"
        )


def _begin_out(config: TrainConfig, processes: Processes, out: Path) -> None:
    """Make the folder of the results if it is not there, and write the settings into it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        if processes.is_first:
            write_config(config, out / "config.yaml")
    except OSError as problem:
        raise ConfigError(f"{out}: cannot be written to ({problem.strerror}); name another --out") from None
    processes.wait()


def _line(row: dict[str, Any], select_by: str) -> str:
    figures = row["figures"]
    return (
        f"epoch {row['epoch'] + 1}: loss {row['loss']:.4f}, {select_by} F1 {figures[select_by]:.3f} at"
        f" {row['threshold']:g}, error {row['error_boundary']:.3f} on boundaries and"
        f" {row['error_elsewhere']:.3f} elsewhere"
    )
