"""The report of a training: the trained anticipator and untrained ones, on the same videos."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import nn

from ongebd import __version__
from ongebd.baselines.methods import METHODS
from ongebd.common.tables import NOTHING, Table, markdown
from ongebd.data.files import videos as count_of
from ongebd.lab.evaluation.evaluation import EvaluationConfig, evaluate
from ongebd.lab.evaluation.figure_style import save
from ongebd.lab.evaluation.relative_distance import FIGURES
from ongebd.lab.evaluation.report import json_bytes, write_files, write_report
from ongebd.lab.evaluation.report_values import Values
from ongebd.lab.training.batches import Features
from ongebd.lab.training.checkpoint import Progress
from ongebd.lab.training.config import ESTIMATOR, TrainConfig
from ongebd.lab.training.dataset import Dataset
from ongebd.lab.training.error_histograms import error_histograms
from ongebd.lab.training.scores import Naive, errors_of_naive
from ongebd.lab.training.task import Task
from ongebd.lab.training.validation import PAPER_TAU, Validated, validate

NAIVE: tuple[Naive, ...] = ("window-mean", "persistence")
GIVEN_UP = 0.1
"""An anticipator doesn't anticipate if its mean error elsewhere is above this and twice the window mean's."""
SETTLED = 0.02
"""Errors have settled if they fell by less than this share since the validation before the last."""
FEW = 20
"""Validation videos that are too few for a verdict."""


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """The outcome of a training.

    Attributes:
        results: The trained anticipator, then the others.
        evaluation: Of the trained one (`evaluate`).
        values: The content of `report.json`.
        figure: The errors of all of them.
    """

    results: tuple[Validated, ...]
    evaluation: Values
    values: dict[str, Any]
    figure: Figure


def make_report(
    config: TrainConfig,
    dataset: Dataset,
    task: Task,
    network: nn.Module,
    features: Features,
    progress: Progress,
) -> Report:
    """Validate the network and the naive anticipators on all validation videos, which have the features."""
    videos, settings, device = dataset.validation, config.stream(dataset.fps, PAPER_TAU), features.device
    judged = {task.name: (task.scores(network, videos, features), config.obd)}
    for name in NAIVE:
        errors = errors_of_naive(name, videos, features, window=config.window, metric=config.metric)
        judged[name] = errors, config.obd or config.method != ESTIMATOR
    if config.method in METHODS:  # the other head on the same scores shows the model's share
        judged[f"{task.name}, {'threshold' if config.obd else 'OBD'}"] = judged[task.name][0], not config.obd
    results = tuple(
        validate(
            *(name, videos, scores, dataset.labels, settings),
            select_by=config.select_by,
            obd=obd,
            tau=config.tau if name == task.name else None,
        )
        for name, (scores, obd) in judged.items()
    )
    labels = dataset.labels.restrict([video.id for video in videos], "the validation videos")
    evaluation = evaluate(labels, results[0].predictions, config=EvaluationConfig(seed=config.split_seed))
    values = {
        "findings": list(_findings(config, dataset, results, evaluation, progress)),
        "data": _data(dataset),
        "model": task.about(network),
        "best_epoch": progress.best_epoch + 1,
        "select_by": config.select_by,
        "anticipators": {result.name: _result(result) for result in results},
        "floors": {
            name: {figure: floor["figures"][figure]["f1"] for figure in FIGURES}
            for name, floor in evaluation["floors"].items()
        },
        "history": progress.history,
        "config": asdict(config),
        "machine": {
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU",
            "torch": torch.__version__,
            "python": platform.python_version(),
            "ongebd": __version__,
        },
    }
    targets = np.concatenate([video.targets for video in videos])
    drawn = {name: (np.concatenate(scores), targets) for name, (scores, _) in judged.items()}
    return Report(results, evaluation, _without_nan(values), error_histograms(drawn))


def write_training_report(report: Report, out: Path) -> None:
    """Write `report.md`, `report.json`, `errors.png`, and the evaluation's own report.

    Raises:
        ConfigError: The folder isn't writable.
    """
    files = {"report.md": _markdown(report.values).encode(), "report.json": json_bytes(report.values)}
    write_files(out, files)
    save(report.figure, out / "errors.png")
    write_report(report.evaluation, out / "evaluation")


def _findings(
    config: TrainConfig,
    dataset: Dataset,
    results: Sequence[Validated],
    evaluation: Values,
    progress: Progress,
) -> Iterator[str]:
    """What a reader should see first, one line each."""
    figure, own = config.select_by, results[0]
    naive = {result.name: result for result in results if result.name in NAIVE}
    rival = max(naive.values(), key=lambda result: result.best_figures[figure])
    value, other = own.best_figures[figure], rival.best_figures[figure]
    yield (
        f"the trained {own.name} {'beats' if value > other else 'does NOT beat'} {rival.name}, which needs no"
        f" training: F1 {value:.3f} against {other:.3f} ({figure}, each at its best threshold on these"
        " validation videos)"
    )
    if (videos := len(own.predictions.videos)) < FEW:
        yield f"{count_of(videos)} to validate on: too few for a verdict; every figure here may be chance"
    floor = evaluation["skill"][figure]["best_floor"]
    blind = evaluation["floors"][floor]["figures"][figure]
    yield f"the best blind floor by that figure, {floor} ({blind['detail']}): F1 {blind['f1']:.3f}"
    elsewhere = own.mean_elsewhere
    simple = naive["window-mean"].mean_elsewhere
    if own.name == "cea" and config.metric == "cosine" and elsewhere > max(GIVEN_UP, 2 * simple):
        errors = [row["error_elsewhere"] for row in progress.history if "error_elsewhere" in row]
        settled = len(errors) > 2 and errors[-1] > (1 - SETTLED) * errors[-3]
        yield (
            f"errors away from boundaries average {elsewhere:.2f}, the window mean's only {simple:.2f}: "
            + (
                "the anticipator has given up anticipating and drives every error toward 0.5; try balanced:"
                " false or residual: true (docs/training.md, “If every error is near one half”)"
                if settled
                else "it doesn't anticipate yet; train for more epochs, until they settle"
            )
        )
    whose = "the paper" if config.method == ESTIMATOR else f"{config.method}'s authors"
    differing = config.deviations()
    if not dataset.backbone.startswith("resnet50@"):
        differing.insert(0, f"features of {dataset.backbone}, not of ResNet-50")
    yield f"what differs from the settings of {whose}: {', '.join(differing) or 'nothing'}"


def _data(dataset: Dataset) -> dict[str, Any]:
    tape = dataset.tape
    return {
        "labels": dataset.labels.source,
        "labels sha256": dataset.labels.sha256,
        "dataset": dataset.labels.dataset,
        "backbone": dataset.backbone,
        "frames a second": dataset.fps,
        "training videos": len(dataset.training),
        "training targets": tape.target_count,
        "of them boundaries": f"{tape.boundary_count} ({tape.boundary_count / tape.target_count:.1%})",
        "validation videos": len(dataset.validation),
        "notes": "; ".join(dataset.notes) or "none",
    }


def _result(result: Validated) -> dict[str, Any]:
    return {
        "threshold": result.threshold,
        "f1": result.figures,
        "best_threshold": result.best_threshold,
        "best_threshold_chosen_on": "these validation videos",
        "best_f1": result.best_figures,
        "f1_at_tau_1.5": result.at_paper_tau,
        "by_threshold": {f"{key:g}": value for key, value in result.by_threshold.items()},
        "mean_error_boundary": result.mean_boundary,
        "mean_error_elsewhere": result.mean_elsewhere,
    }


def _without_nan(value: Any) -> Any:
    """NaN, which JSON doesn't have, as None."""
    if isinstance(value, dict):
        return {key: _without_nan(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _markdown(values: dict[str, Any]) -> str:
    """The report for people."""
    figure, what = values["select_by"], "τ" if values["config"]["obd"] else "error threshold"
    ends = ("error, boundary", "error, elsewhere")
    rows = []
    for name, result in values["anticipators"].items():
        errors = _three(result["mean_error_boundary"]), _three(result["mean_error_elsewhere"])
        rows.append([name, f"{result['threshold']:.4g}", *_f1(result["f1"]), *errors])
        if result["best_threshold"] != result["threshold"]:
            best = f"{result['best_threshold']:.4g}"
            rows.append([f"{name}, at its best {what}", best, *_f1(result["best_f1"]), "", ""])
        if result["f1_at_tau_1.5"] is not None and result["threshold"] != PAPER_TAU:
            rows.append([f"{name}, at the paper's τ", "1.5", *_f1(result["f1_at_tau_1.5"]), "", ""])
    rows += [[f"floor: {name}", "", *_f1(figures), "", ""] for name, figures in values["floors"].items()]
    epochs = []
    for row in values["history"]:
        cells = [str(row["epoch"] + 1), f"{row['loss']:.4f}"]
        if "figures" in row:
            cells += [_three(row["figures"][figure]), f"{row['threshold']:.4g}"]
            cells += [_three(row["error_boundary"]), _three(row["error_elsewhere"])]
        epochs.append(cells + [""] * (6 - len(cells)))
    parts = [
        "# Training report",
        "\n".join(f"- {line}" for line in values["findings"]),
        "![errors on boundaries and elsewhere](errors.png)",
        "## Anticipators on the same validation videos",
        f"A best {what} is the best by {figure}, **chosen on these videos**: the figures flatter all equally,"
        " untrained ones too. Boundaries are scored at the centre of a run of positive frames.",
        markdown(Table("", ("anticipator", what, *FIGURES, *ends), rows)),
        "More on the trained one: [evaluation/report.md](evaluation/report.md).",
    ]
    for title in ("Data", "Model", "Machine"):
        facts = [f"- {name}: {value}" for name, value in values[title.lower()].items()]
        parts += [f"## {title}", "\n".join(facts)]
    parts += ["## Epochs", markdown(Table("", ("epoch", "loss", figure, what, *ends), epochs))]
    return "\n\n".join([*parts, f"The weights of epoch {values['best_epoch']} were kept."]) + "\n"


def _f1(figures: dict[str, float]) -> list[str]:
    return [_three(figures[figure]) for figure in FIGURES]


def _three(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"
