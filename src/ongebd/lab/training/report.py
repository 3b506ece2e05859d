"""The report of a training: the trained anticipator beside untrained ones, on the same videos."""

from __future__ import annotations

import json
import math
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ongebd import __version__
from ongebd.data.numbers import FloatArray
from ongebd.errors import ConfigError
from ongebd.lab.evaluation.evaluation import Evaluation, evaluate
from ongebd.lab.evaluation.figures import FIGURES
from ongebd.lab.evaluation.report import write_report
from ongebd.lab.evaluation.system import EvaluationConfig, best_floor
from ongebd.lab.training.batches import Features
from ongebd.lab.training.checkpoint import Progress
from ongebd.lab.training.config import ESTIMATOR, TrainConfig
from ongebd.lab.training.dataset import Dataset
from ongebd.lab.training.errors_of_videos import Naive, errors_of_naive
from ongebd.lab.training.report_picture import draw_errors
from ongebd.lab.training.task import Task
from ongebd.lab.training.validation import PAPER_TAU, Validated, validate

NAIVE: tuple[Naive, ...] = ("window-mean", "persistence")
GIVEN_UP = 0.1
"""From this mean error elsewhere on, and at twice the window mean's, an anticipator has given up."""


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """What is known at the end of a training.

    Attributes:
        config: How it was trained.
        data: On what, in numbers.
        model: The network, in numbers.
        history: Each epoch.
        best_epoch: The epoch whose weights were kept, from 0.
        results: The trained anticipator, then the others.
        evaluation: Of the trained one, with floors, human ceiling and delay.
        findings: What a reader should see at once, one line each.
        machine: Where it was trained.
    """

    config: TrainConfig
    data: dict[str, Any]
    model: dict[str, Any]
    history: list[dict[str, Any]]
    best_epoch: int
    results: tuple[Validated, ...]
    evaluation: Evaluation
    findings: tuple[str, ...]
    machine: dict[str, str]

    @property
    def threshold(self) -> float:
        """The trained anticipator's best τ, or error threshold."""
        return self.results[0].threshold


def make_report(
    config: TrainConfig,
    dataset: Dataset,
    task: Task,
    network: nn.Module,
    features: Features,
    device: torch.device,
    progress: Progress,
) -> Report:
    """Validate the network and the naive anticipators on all validation videos.

    Args:
        config: How it was trained.
        dataset: On what.
        task: What was trained.
        network: The network.
        features: Of the validation videos.
        device: Where they and the network are.
        progress: The history.
    """
    videos, settings = dataset.validation, config.stream(dataset.fps, PAPER_TAU)
    scores: dict[str, list[FloatArray]] = {task.name: task.scores(network, videos, features, device)}
    for name in NAIVE:
        scores[name] = errors_of_naive(
            name, videos, features, device, window=config.window, metric=config.metric
        )
    is_estimator = config.method == ESTIMATOR
    by_obd = {name: config.obd or (not is_estimator and name in NAIVE) for name in scores}
    if not is_estimator:  # the other head on the same scores, so that the model's share can be told
        other = f"{task.name}, {'threshold' if config.obd else 'OBD'}"
        scores[other], by_obd[other] = scores[task.name], not config.obd
    results = tuple(
        validate(name, videos, each, dataset.labels, settings, select_by=config.select_by, obd=by_obd[name])
        for name, each in scores.items()
    )
    labels = dataset.labels.restrict([video.id for video in videos], "the validation videos")
    evaluation = evaluate(labels, results[0].predictions, config=EvaluationConfig(seed=config.split_seed))
    return Report(
        config=config,
        data=_data(dataset),
        model=task.about(network),
        history=progress.history,
        best_epoch=progress.best_epoch,
        results=results,
        evaluation=evaluation,
        findings=tuple(_findings(config, results, evaluation)),
        machine={
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU",
            "torch": torch.__version__,
            "python": platform.python_version(),
            "ongebd": __version__,
        },
    )


def write_training_report(report: Report, out: Path) -> None:
    """Write `report.md`, `report.json`, `errors.png`, and the evaluation's own report beside them.

    Raises:
        ConfigError: The folder cannot be written to.
    """
    try:
        (out / "errors.png").write_bytes(draw_errors(report.results, report.config.select_by))
        (out / "report.json").write_text(
            json.dumps(_plain(to_json(report)), indent=2, ensure_ascii=False, allow_nan=False) + "\n",
            encoding="utf-8",
        )
        (out / "report.md").write_text(to_markdown(report), encoding="utf-8")
    except OSError as problem:
        raise ConfigError(f"{out}: the report cannot be written there ({problem.strerror})") from None
    write_report(report.evaluation, out / "evaluation")


def to_json(report: Report) -> dict[str, Any]:
    """The report as plain values."""
    return {
        "findings": list(report.findings),
        "data": report.data,
        "model": report.model,
        "best_epoch": report.best_epoch + 1,
        "select_by": report.config.select_by,
        "anticipators": {
            result.name: {
                "threshold": result.threshold,
                "threshold_chosen_on": "these validation videos",
                "f1": result.figures,
                "f1_at_tau_1.5": result.at_paper_tau,
                "by_threshold": {f"{key:g}": value for key, value in result.by_threshold.items()},
                "mean_error_boundary": result.histograms.mean_boundary,
                "mean_error_elsewhere": result.histograms.mean_elsewhere,
                "histogram": {
                    "edges": result.histograms.edges.tolist(),
                    "boundary": result.histograms.boundary.tolist(),
                    "elsewhere": result.histograms.elsewhere.tolist(),
                },
            }
            for result in report.results
        },
        "floors": _floors(report.evaluation),
        "history": report.history,
        "config": report.config.to_dict(),
        "machine": report.machine,
    }


def to_markdown(report: Report) -> str:
    """The report for people."""
    figure = report.config.select_by
    what = "τ" if report.config.obd else "error threshold"
    lines = ["# Training report", "", *(f"- {line}" for line in report.findings), ""]
    lines += ["![errors on boundaries and elsewhere](errors.png)", ""]
    lines += ["## Anticipators on the same validation videos", ""]
    lines += [
        f"Each at its own best {what} by {figure}, **chosen on these very videos**: the figures flatter all"
        " of them alike. Scored at the centre of a run of positive frames.",
        "",
        _row(["anticipator", what, *FIGURES, "error, boundary", "error, elsewhere"]),
        _row(["---"] * (len(FIGURES) + 4)),
    ]
    for result in report.results:
        errors = result.histograms.mean_boundary, result.histograms.mean_elsewhere
        lines.append(
            _row([result.name, f"{result.threshold:.4g}", *_f1(result.figures), *map(_three, errors)])
        )
        if result.at_paper_tau is not None:
            lines.append(_row([f"{result.name}, at the paper's τ", "1.5", *_f1(result.at_paper_tau), "", ""]))
    for name, figures in _floors(report.evaluation).items():
        lines.append(_row([f"floor: {name}", "", *_f1(figures), "", ""]))
    lines += ["", "More on the trained one: [evaluation/report.md](evaluation/report.md).", ""]
    for title, values in (("Data", report.data), ("Network", report.model), ("Machine", report.machine)):
        lines += [f"## {title}", "", *(f"- {name}: {value}" for name, value in values.items()), ""]
    lines += ["## Epochs", "", _row(["epoch", "loss", figure, what, "error, boundary", "error, elsewhere"])]
    lines.append(_row(["---"] * 6))
    for row in report.history:
        cells = [row["epoch"] + 1, f"{row['loss']:.4f}"]
        if "figures" in row:
            cells += [_three(row["figures"][figure]), f"{row['threshold']:.4g}"]
            cells += [_three(row["error_boundary"]), _three(row["error_elsewhere"])]
        lines.append(_row(cells + [""] * (6 - len(cells))))
    lines += ["", f"The weights of epoch {report.best_epoch + 1} were kept.", ""]
    return "\n".join(lines)


def _findings(config: TrainConfig, results: tuple[Validated, ...], evaluation: Evaluation) -> list[str]:
    figure, own = config.select_by, results[0]
    rival = max(
        (result for result in results if result.name in NAIVE), key=lambda result: result.figures[figure]
    )
    value, other = own.figures[figure], rival.figures[figure]
    verdict = "beats" if value > other else "does NOT beat"
    lines = [
        f"the trained {own.name} {verdict} {rival.name}, which needs no training: F1 {value:.3f} against"
        f" {other:.3f} ({figure}, each at its best threshold on these validation videos)"
    ]
    floor = best_floor(evaluation.systems[0].floors, figure)
    blind = floor.figures[figure]
    lines.append(f"the best blind floor by that figure, {floor.name} ({blind.detail}): F1 {blind.f1:.3f}")
    elsewhere = own.histograms.mean_elsewhere
    simple = next(result for result in results if result.name == "window-mean").histograms.mean_elsewhere
    if own.name == "cea" and config.metric == "cosine" and elsewhere > max(GIVEN_UP, 2 * simple):
        lines.append(
            f"errors away from boundaries average {elsewhere:.2f}, and the window mean's {simple:.2f}: the"
            " anticipator has given up anticipating and drives every error toward 0.5; try balanced: false or"
            " residual: true (docs/training.md, “When every error goes to one half”)"
        )
    return lines


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


def _floors(evaluation: Evaluation) -> dict[str, dict[str, float]]:
    return {
        floor.name: {figure: floor.figures[figure].f1 for figure in FIGURES}
        for floor in evaluation.systems[0].floors
    }


def _plain(value: Any) -> Any:
    """NaN, which JSON has not, as null."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _f1(figures: dict[str, float]) -> list[str]:
    return [_three(figures[figure]) for figure in FIGURES]


def _three(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"


def _row(cells: list[Any]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"
