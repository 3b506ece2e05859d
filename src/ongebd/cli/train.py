"""`ongebd train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ongebd.cli.progress import Progress
from ongebd.errors import ConfigError, MissingExtraError
from ongebd.lab.training.config import TrainConfig, read_config

_TRAINING = ("torch", "safetensors", "huggingface_hub", "tensorboard", "yaml")


def train(
    config: Path | None = None,
    /,
    *,
    store: Path | None = None,
    labels: Path | None = None,
    out: Annotated[Path | None, Parameter(alias="-o")] = None,
    dataset: str | None = None,
    epochs: int | None = None,
    batch: int | None = None,
    device: str | None = None,
    seed: int | None = None,
    set: Annotated[list[str] | None, Parameter(alias="-s", negative=())] = None,  # noqa: A002
    resume: Annotated[bool, Parameter(negative=())] = False,
    quiet: Annotated[bool, Parameter(alias="-q", negative=())] = False,
) -> int:
    """Train the paper's anticipator on stored features.

    Writes into --out: model/ (for `ongebd detect --model`), report.md with the trained model beside window
    mean and persistence, evaluation/report.md with the floors, a checkpoint, and curves for TensorBoard.
    On several GPUs: torchrun --nproc-per-node 2 -m ongebd train … . Needs the extra: pip install
    "ongebd[train]".

    Parameters
    ----------
    config
        YAML file with settings, such as configs/kinetics-gebd.yaml; what is given here goes before it.
    store
        Folder of the features, made by `ongebd extract`.
    labels
        Labels: what `ongebd evaluate --labels` takes.
    out
        Folder for everything that is written.
    dataset
        Which set's rules hold: auto, kinetics-gebd, tapos, inria or custom.
    epochs
        Passes over the training videos.
    batch
        Targets in a batch, over all GPUs together.
    device
        auto, cpu, cuda or cuda:N.
    seed
        Of weights and order.
    set
        Any other setting, as NAME=VALUE; may be given several times. They are listed in docs/training.md.
    resume
        Go on from the checkpoint in --out. The result is that of a training never broken off.
    quiet
        No progress; errors only.
    """
    settings = TrainConfig() if config is None else read_config(config)
    paths = {"store": store, "labels": labels, "out": out}
    numbers = {"epochs": epochs, "batch": batch, "seed": seed}
    given: dict[str, Any] = {**paths, **numbers, "dataset": dataset, "device": device}
    changes = {
        name: str(value) if isinstance(value, Path) else value
        for name, value in given.items()
        if value is not None
    }
    settings = settings.changed({**_assignments(set or []), **changes})
    try:
        from ongebd.lab.training.loop import train as run
    except ModuleNotFoundError as problem:
        if (problem.name or "").split(".")[0] in _TRAINING:
            raise MissingExtraError.of(problem.name, "train") from None
        raise
    with Progress(quiet=quiet) as progress:
        trained = run(settings, resume=resume, watcher=_Watcher(progress))
        if trained.report is not None:
            progress.summary(f"the model: {Path(settings.out) / 'model'}")
            progress.summary(f"the report: {Path(settings.out) / 'report.md'}")
    return 0


class _Watcher:
    """Passes what a training reports to the progress bar."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.say = progress.summary

    def step(self, epoch: int, step: int, steps: int, loss: float, windows_per_second: float) -> None:
        now = f"{step}/{steps}  loss {loss:.4f}  {windows_per_second:,.0f} windows/s"
        self._progress.show(f"epoch {epoch + 1}", step, steps, now)


def _assignments(texts: list[str]) -> dict[str, str]:
    """NAME=VALUE pairs as settings."""
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--set {text}: give NAME=VALUE, residual=true for instance")
        pairs[name.strip().replace("-", "_")] = value.strip()
    return pairs
