"""The training, from top to bottom."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ongebd.baselines.methods import SCHEDULES
from ongebd.errors import ConfigError, os_errors
from ongebd.lab.training.batches import Batch, BatchLoader, place_features
from ongebd.lab.training.checkpoint import Checkpoint, Progress
from ongebd.lab.training.config import TrainConfig, write_config
from ongebd.lab.training.dataset import DataIdentity, Dataset, open_dataset
from ongebd.lab.training.processes import Processes, StepFunction, joined, precision, prepared
from ongebd.lab.training.report import Report, make_report, write_training_report
from ongebd.lab.training.task import optimizer_of, save_model, task_of
from ongebd.lab.training.validation import validate

MODEL, CHECKPOINT = "model", "checkpoint.pt"
"""The model's folder and the checkpoint in the folder of a training."""

_LOSS_EVERY, _LOOK_EVERY = 20, 2.0  # steps and seconds between two looks at the loss: each waits for the GPU


class Watcher:
    """Follows a training, here without showing anything; the command line draws a bar."""

    def say(self, line: str) -> None:
        """Show a line."""

    def step(self, epoch: int, step: int, steps: int, loss: float, windows_per_second: float) -> None:
        """Show the finished steps of an epoch, and its mean loss so far; before the first one it is NaN."""


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """The outcome of a training.

    Attributes:
        model: The network of the best epoch.
        progress: The history.
        report: None if not asked for, and on all processes but the first.
    """

    model: nn.Module
    progress: Progress
    report: Report | None


def train(
    config: TrainConfig,
    *,
    dataset: Dataset | None = None,
    resume: bool = False,
    watcher: Watcher | None = None,
    report: bool = True,
) -> Trained:
    """Train a network, validate it, and write model, checkpoint and report into `config.out`.

    Under `torchrun` each process uses one GPU, and they share each batch.

    Args:
        config: All settings.
        dataset: The data; None opens what the configuration names.
        resume: Continue from the checkpoint in `config.out`, if there is one. The result is that of an
            uninterrupted training; on the CPU to the bit.
        watcher: Follows the training.
        report: Make the report, for which untrained anticipators are validated too.

    Raises:
        OngebdError: Data, configuration or folder are wrong.
    """
    watcher = watcher or Watcher()
    with joined(config.device) as processes:
        if not processes.is_first:
            watcher = Watcher()
        device, out = processes.device, _checked_out(config, resume)

        # The data.
        dataset = dataset or open_dataset(config)
        for note in dataset.notes:
            watcher.say(note)
        data, runs = DataIdentity.of(dataset), max(1, config.batch // dataset.tape.run)
        if runs % processes.world:
            raise ConfigError(
                f"batch / run ({runs}) must be a multiple of the {processes.world} processes;"
                " change batch or run"
            )

        # The network, new or from the checkpoint.
        torch.manual_seed(config.seed)  # weights and dropout
        torch.set_float32_matmul_precision("high" if device.type == "cuda" else "highest")
        task = task_of(config)
        model = task.network(dataset.dim).to(device)
        optimizer = optimizer_of(config, model, device)
        checkpoint = Checkpoint(out / CHECKPOINT, config, data, model, optimizer)
        progress = Progress()
        if resume and checkpoint.path.exists():
            progress = checkpoint.load(device)
            watcher.say(f"resuming from epoch {progress.epoch}, step {progress.step}")

        # Everything is checked; from here on files are written.
        _begin_out(config, processes, out)
        features = place_features(dataset.training, device, config.features_in)
        where = config.features_in if processes.is_first else "host"  # only the first process validates
        held_out = place_features(dataset.validation, device, where)
        loader = BatchLoader(
            dataset.tape, features, processes, runs=runs, seed=config.seed, balanced=task.balanced
        )
        objective = prepared(task.objective(model), config, processes)

        def keep() -> None:
            if processes.is_first:
                checkpoint.save(progress)

        # The training.
        while progress.epoch < config.epochs:
            model.train()
            _epoch(config, progress, loader, objective, optimizer, keep, watcher)
            loss = progress.loss_sum / max(1, loader.steps(progress.epoch))
            row: dict[str, Any] = {"epoch": progress.epoch, "loss": loss}
            is_last = progress.epoch + 1 == config.epochs
            if processes.is_first and (is_last or (progress.epoch + 1) % config.validate_every == 0):
                videos = dataset.validation[: config.validation_limit]
                scores = task.scores(model, videos, held_out)
                settings, by = config.stream(dataset.fps, 1.0), config.select_by
                result = validate(
                    *(task.name, videos, scores, dataset.labels, settings),
                    select_by=by,
                    obd=config.obd,
                    tau=config.tau,
                )
                row |= {
                    "threshold": result.threshold,
                    "figures": result.figures,
                    "error_boundary": result.mean_boundary,
                    "error_elsewhere": result.mean_elsewhere,
                }
                watcher.say(_line(row, by))
                if result.figures[by] > progress.best:
                    progress.best, progress.best_epoch = result.figures[by], progress.epoch
                    save_model(task, out / MODEL, model, dataset, result.threshold)
            progress.history.append(row)
            progress.epoch, progress.step, progress.loss_sum = progress.epoch + 1, 0, 0.0
            keep()
            processes.wait()

        # The outcome.
        best = task.load(out / MODEL).to(device)
        made = None
        if processes.is_first and report:
            watcher.say("validating the best epoch, and the anticipators that need no training")
            made = make_report(config, dataset, task, best, held_out, progress)
            save_model(task, out / MODEL, best, dataset, made.results[0].threshold)
            write_training_report(made, out)
            for line in made.values["findings"]:
                watcher.say(line)
        processes.wait()
        return Trained(best, progress, made)


def _epoch(
    config: TrainConfig,
    progress: Progress,
    loader: BatchLoader,
    objective: StepFunction,
    optimizer: torch.optim.Optimizer,
    keep: Callable[[], None],
    watcher: Watcher,
) -> None:
    """One pass over the training videos, or the rest of one."""
    steps, began, first = loader.steps(progress.epoch), time.perf_counter(), progress.step
    course = SCHEDULES[config.schedule]
    autocast = precision(config, loader.device)
    losses: list[Tensor] = []  # on the device: reading each would make the host wait
    looked = began
    watcher.step(progress.epoch, first, steps, math.nan, 0.0)
    for batch in loader.epoch(progress.epoch, skip=progress.step):
        for group in optimizer.param_groups:
            group["lr"] = config.lr * course(progress.epoch + progress.step / steps, config.epochs)
        losses.append(train_step(objective, optimizer, batch, autocast))
        progress.step += 1
        write = config.checkpoint_every is not None and progress.step % config.checkpoint_every == 0
        late = time.perf_counter() - looked > _LOOK_EVERY
        if write or late or progress.step % _LOSS_EVERY == 0 or progress.step == steps:
            # One by one, in float64, so that the sum doesn't depend on interruptions.
            for value in torch.stack(losses).tolist():
                progress.loss_sum += value
            losses.clear()
            if not math.isfinite(progress.loss_sum):
                raise ConfigError(
                    f"the loss is not finite at epoch {progress.epoch + 1}, step {progress.step}:"
                    " lower lr, or set precision to float32"
                )
            looked = time.perf_counter()
            speed = (progress.step - first) * loader.windows_in_batch / (looked - began)
            watcher.step(progress.epoch, progress.step, steps, progress.loss_sum / progress.step, speed)
        if write:
            keep()


def train_step(
    objective: StepFunction,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    autocast: Callable[[], AbstractContextManager[Any]],
) -> Tensor:
    """One step of gradient descent on a batch; its loss, still on the device."""
    with autocast():
        loss, _ = objective(batch.frames, batch.targets, batch.lead, batch.weight, batch.count)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach().clone()


def _checked_out(config: TrainConfig, resume: bool) -> Path:
    """The folder of the results, untouched, if a training may start or resume there."""
    if not config.out:
        raise ConfigError("no folder for the results: set --out, or out in the configuration")
    out = Path(config.out)
    if (out / CHECKPOINT).exists() and not resume:
        raise ConfigError(f"{out}: contains a training already; use --resume, or another --out")
    return out


def _begin_out(config: TrainConfig, processes: Processes, out: Path) -> None:
    """Make the folder of the results and write the settings into it."""
    with os_errors(out, "name another --out"):
        out.mkdir(parents=True, exist_ok=True)
        if processes.is_first:
            write_config(config, out / "config.yaml")
            for unfinished in out.glob(f".{CHECKPOINT}.*.part"):  # of a process killed while writing
                unfinished.unlink()
    processes.wait()


def _line(row: dict[str, Any], select_by: str) -> str:
    return (
        f"epoch {row['epoch'] + 1}: loss {row['loss']:.4f}, {select_by} F1 {row['figures'][select_by]:.3f} at"
        f" {row['threshold']:g}, error {row['error_boundary']:.3f} on boundaries and"
        f" {row['error_elsewhere']:.3f} elsewhere"
    )
