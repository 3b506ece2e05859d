"""`ongebd train` and `ongebd export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ongebd.cli.options import Quiet
from ongebd.cli.terminal import Progress
from ongebd.errors import ConfigError, import_extra
from ongebd.lab.training.config import TrainConfig, read_config


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
    quiet: Quiet = False,
) -> int:
    """Train the paper's anticipator on stored features.

    Writes to --out: model/ (for `ongebd detect --model`), report.md, which compares the trained model with
    window mean and persistence, evaluation/report.md with the floors, and a checkpoint. On several GPUs:
    torchrun --nproc-per-node 2 -m ongebd train … . Needs the extra "train".

    Parameters
    ----------
    config
        YAML file with settings, such as configs/kinetics-gebd.yaml; options override it. [the paper's]
    store
        Folder of the features that `ongebd extract` made.
    labels
        Labels, as for `ongebd evaluate --labels`.
    out
        Folder for all results.
    dataset
        Whose rules apply: auto, kinetics-gebd, tapos, inria or custom.
    epochs
        Passes over the training videos.
    batch
        Targets per batch, over all GPUs together.
    device
        auto, cpu, cuda or cuda:N.
    seed
        Seed of the weights and the order.
    set
        Another setting, as NAME=VALUE; can be repeated. docs/training.md lists them; the paper's letters
        K, L, N (layers), Δ, τ and α work too.
    resume
        Continue from the checkpoint in --out. The result equals that of an uninterrupted training.
    """
    options: dict[str, Any] = {
        "store": store,
        "labels": labels,
        "out": out,
        "epochs": epochs,
        "batch": batch,
        "seed": seed,
        "dataset": dataset,
        "device": device,
    }
    changes = {name: str(value) for name, value in options.items() if value is not None}
    settings = TrainConfig() if config is None else read_config(config)
    settings = settings.changed({**_assignments(set or []), **changes})
    run = import_extra("ongebd.lab.training.loop", "train").train
    with Progress(quiet=quiet, lines=True) as progress:
        trained = run(settings, resume=resume, watcher=_Watcher(progress))
        if trained.report is not None:
            progress.summary(f"the model: {Path(settings.out) / 'model'}")
            progress.summary(f"the report: {Path(settings.out) / 'report.md'}")
    return 0


SYMBOLS = {"K": "region", "L": "window", "N": "layers", "α": "alpha", "Δ": "delta", "τ": "tau"}
"""The paper's letters for settings; N is the usual one for the number of layers."""


class _Watcher:
    """Passes what a training reports to the progress bar."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.say = progress.summary

    def step(self, epoch: int, step: int, steps: int, loss: float, windows_per_second: float) -> None:
        now = f"step {step}/{steps}"
        if windows_per_second:
            now += f"  loss {loss:.4f}  {windows_per_second:,.0f} windows/s"
        self._progress.show(f"epoch {epoch + 1}", step, steps, f"epoch {epoch + 1}, {now}")


def _assignments(texts: list[str]) -> dict[str, str]:
    """NAME=VALUE pairs as settings."""
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--set {text}: use NAME=VALUE, such as residual=true")
        name = name.strip()
        pairs[SYMBOLS.get(name, name.replace("-", "_"))] = value.strip()
    return pairs


def export(folder: Path, /) -> int:
    """Write a trained model's ONNX file, with which it runs on a CPU without torch.

    `ongebd train` does this itself if `onnx` is installed; use this command for a model that lacks the file.
    Needs the extra "train".

    Parameters
    ----------
    folder
        The model's folder: OUT/model of `ongebd train`.
    """
    from ongebd.detector.trained import read_shape

    read_shape(folder)  # reports what is wrong if this is not a model
    run = import_extra("ongebd.lab.training.onnx_export", "train").export_folder
    Progress().say(f"wrote {run(folder)}")
    return 0
