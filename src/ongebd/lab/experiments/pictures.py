"""The figures of a report: F1 against tolerance and delay, errors, and one video."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from ongebd.detector import load
from ongebd.errors import os_errors
from ongebd.lab.evaluation.relative_distance import THRESHOLDS
from ongebd.lab.experiments.definition import Experiment
from ongebd.lab.experiments.figures.error_histograms import ModelErrors, error_histograms
from ongebd.lab.experiments.figures.f1_curves import Against, Band, F1Line, f1_curves
from ongebd.lab.experiments.figures.qualitative import Scene, qualitative
from ongebd.lab.experiments.figures.style import save
from ongebd.lab.experiments.figures.tracing import trace
from ongebd.lab.experiments.runner import RowResult, Runner, TableResult
from ongebd.lab.experiments.scores import ABSOLUTE_COLUMNS, DELAY_COLUMNS, RELATIVE_COLUMNS, Limit

_COLUMNS: dict[Against, Sequence[str]] = {
    "relative": RELATIVE_COLUMNS,
    "absolute": ABSOLUTE_COLUMNS,
    "delay": (*DELAY_COLUMNS, "absolute 0.5"),
}
_LEFT_OUT = ("ESTimator, τ = 1.5", "persistence, untrained")  # so that lines can be told apart


def draw(runner: Runner, tables: Sequence[TableResult], out: Path) -> dict[str, str]:
    """Draw the online comparisons that were run, into OUT/figures as PDF and SVG.

    Returns:
        Captions by SVG file, as seen from OUT.

    Raises:
        OngebdError: They can't be written.
    """
    captions: dict[str, str] = {}
    for table in tables:
        name, data = table.experiment.name, table.data
        if not name.startswith("online") or not any(row.cells for row in table.rows):
            continue
        drawn = [
            ("f1", curves(table), f"Online methods on {data}: F1 with 95 % intervals."),
            (
                "errors",
                errors(runner, table),
                f"Errors at boundaries and elsewhere on {data}: test videos, first seed.",
            ),
            (
                "video",
                video(runner, table),
                f"A test video of {data}. The threshold is that of the trained model.",
            ),
        ]
        for kind, figure, caption in drawn:
            if figure is not None:
                stem = f"figures/{name}-{kind}"
                with os_errors(out, "choose another --out"):
                    (out / "figures").mkdir(parents=True, exist_ok=True)
                for ending in ("pdf", "svg"):
                    save(figure, out / f"{stem}.{ending}")
                captions[f"{stem}.svg"] = caption
    return captions


def curves(table: TableResult) -> Figure:
    """F1 of rows and limits, and of ESTimator as printed."""
    lines = [_line(row) for row in table.rows if row.cells and row.row.name not in _LEFT_OUT]
    lines += [_limit(limit) for limit in table.limits if not limit.name.startswith("as many")]
    return f1_curves([*lines, printed_line(table.experiment, "ESTimator")])


def printed_line(experiment: Experiment, row: str) -> F1Line:
    """What the paper prints for a method at the ten thresholds, with a gap for each dash."""
    assert experiment.paper is not None
    values = [experiment.paper.value(row, f"{share:g}") for share in THRESHOLDS]
    f1 = np.array([np.nan if value is None else value for value in values])
    return F1Line(f"{row} (printed)", {"relative": Band(f1)}, "printed")


def _line(row: RowResult) -> F1Line:
    bands = {}
    for against, columns in _COLUMNS.items():
        cells = [row.cells[column] for column in columns]
        ends = [(cell.interval.low, cell.interval.high) for cell in cells if cell.interval is not None]
        f1 = np.array([cell.value for cell in cells])
        bands[against] = Band(f1, *np.array(ends).T) if len(ends) == len(cells) else Band(f1)
    return F1Line(row.row.name, bands)


def _limit(limit: Limit) -> F1Line:
    bands = {
        against: Band(np.array([limit.cells[column] for column in columns]))
        for against, columns in _COLUMNS.items()
        if all(column in limit.cells for column in columns)
    }
    return F1Line(limit.name.partition(",")[0], bands, "floor" if "clock" in limit.name else "ceiling")


def errors(runner: Runner, table: TableResult) -> Figure | None:
    """Errors at boundaries and elsewhere of each row that the discriminator decides."""
    models = []
    for row in table.rows:
        if row.cells and row.row.obd and row.row.tau is None:
            videos, values = runner.frame_scores(table.experiment, row.row).test
            targets = np.concatenate([video.targets for video in videos])
            models.append(ModelErrors.of(row.row.name, np.concatenate(values), targets))
    return error_histograms(models) if models else None


def video(runner: Runner, table: TableResult) -> Figure | None:
    """The test video with most boundaries, by ESTimator and TeSTra-BC as in the paper."""
    part = runner.test_part(table.experiment)
    files = {name: part.files[name] for name in part.labels.videos if name in part.files}
    models = {}
    for name in ("ESTimator", "TeSTra-BC"):
        rows = [row.row for row in table.rows if row.row.name == name and row.cells]
        folder = runner.model(table.experiment, rows[0]) if rows else None
        if folder is not None:
            models[name] = load(str(folder))
    if not models or not files:
        return None
    name = max(files, key=lambda name: len(part.labels.videos[name].boundaries[0]))
    traces = [trace(files[name], model, method) for method, model in models.items()]
    return qualitative(Scene.of(files[name], part.labels.videos[name], traces))
