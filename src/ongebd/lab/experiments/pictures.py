"""The figures of a report: F1 against tolerance and delay, errors, and one video looked at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ongebd.lab.evaluation.delay import ALLOWED_DELAYS
from ongebd.lab.evaluation.figures import ABSOLUTE
from ongebd.lab.evaluation.relative_distance import THRESHOLDS
from ongebd.lab.experiments.figures import (
    Band,
    F1Lines,
    Picture,
    Scene,
    error_histograms,
    errors_of,
    f1_curves,
    printed_lines,
    qualitative,
    watch,
)
from ongebd.lab.experiments.figures.f1_curves import Kind
from ongebd.lab.experiments.results import RowResult, TableResult
from ongebd.lab.experiments.runner import Runner

_RELATIVE = tuple(f"relative {share:g}" for share in THRESHOLDS)
_ABSOLUTE = tuple(f"absolute {seconds:g}" for seconds in ABSOLUTE)
_DELAY = (*(f"within {delay:g} s" for delay in ALLOWED_DELAYS), "absolute 0.5")
FORMATS = (".pdf", ".svg")
_LEFT_OUT = ("ESTimator, τ = 1.5", "persistence, untrained")  # so that lines can be told apart


def draw(runner: Runner, tables: Sequence[TableResult], out: Path) -> dict[str, str]:
    """Draw what can be drawn of what was run, as PDF and SVG.

    Args:
        runner: That ran it.
        tables: What came of it.
        out: Folder of the report; figures go into `figures` in it.

    Returns:
        SVG files as seen from the report, with what they show.

    Raises:
        OngebdError: They cannot be written.
    """
    shown: dict[str, str] = {}
    for table in tables:
        name = table.experiment.name
        if not name.startswith("online") or not any(row.cells for row in table.rows):
            continue
        shown |= _saved(
            _curves(table), out, f"{name}-f1", f"Online methods on {table.data}: F1 with 95 % intervals."
        )
        picture = _errors(runner, table)
        if picture is not None:
            says = f"Errors at boundaries and elsewhere on {table.data}: test videos, first seed."
            shown |= _saved(picture, out, f"{name}-errors", says)
        picture = _video(runner, table)
        if picture is not None:
            says = f"A test video of {table.data}. The threshold is that of the trained model."
            shown |= _saved(picture, out, f"{name}-video", says)
    return shown


def _saved(picture: Picture, out: Path, name: str, says: str) -> dict[str, str]:
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for ending in FORMATS:
        picture.save(folder / f"{name}{ending}")
    return {f"figures/{name}.svg": says}


def _curves(table: TableResult) -> Picture:
    lines = [_lines(row) for row in table.rows if row.cells and row.row.name not in _LEFT_OUT]
    for limit in table.limits:
        if limit.name.startswith("as many"):
            continue
        kind: Kind = "floor" if "clock" in limit.name else "ceiling"
        relative, absolute, delay = (
            Band(np.array([limit.cells[column] for column in columns]))
            if all(column in limit.cells for column in columns)
            else None
            for columns in (_RELATIVE, _ABSOLUTE, _DELAY)
        )
        lines.append(F1Lines(limit.name.partition(",")[0], relative, absolute, delay, kind))
    if table.experiment.printed is not None:
        lines.append(printed_lines(table.experiment.printed, "ESTimator"))
    return f1_curves(lines, width="page")


def _lines(row: RowResult) -> F1Lines:
    relative, absolute, delay = (_band(row, columns) for columns in (_RELATIVE, _ABSOLUTE, _DELAY))
    return F1Lines(row.row.name, relative, absolute, delay)


def _band(row: RowResult, columns: Sequence[str]) -> Band:
    cells = [row.cells[column] for column in columns]
    f1 = np.array([cell.value for cell in cells])
    intervals = [cell.interval for cell in cells if cell.interval is not None]
    if len(intervals) < len(cells):
        return Band(f1)
    return Band(f1, np.array([each.low for each in intervals]), np.array([each.high for each in intervals]))


def _errors(runner: Runner, table: TableResult) -> Picture | None:
    models = []
    for row in table.rows:
        if row.cells and row.row.obd and row.row.tau is None:
            videos, errors = runner.errors(table.experiment, row.row).test
            targets = np.concatenate([video.targets for video in videos])
            models.append(errors_of(row.row.name, np.concatenate(errors), targets))
    return error_histograms(models) if models else None


def _video(runner: Runner, table: TableResult) -> Picture | None:
    """The first test video whose file is at hand, by ESTimator and TeSTra-BC, as in the paper."""
    part = runner.test(table.experiment)
    named = {row.row.name: row.row for row in table.rows if row.cells and row.row.kind == "trained"}
    folders = {
        name: folder
        for name in ("ESTimator", "TeSTra-BC")
        if name in named and (folder := runner.model(table.experiment, named[name])) is not None
    }
    files = [(name, part.files[name]) for name in part.labels.videos if name in part.files]
    if not folders or not files:
        return None
    name, file = max(files, key=lambda each: len(part.labels.videos[each[0]].boundaries[0]))
    methods = [watch(file, str(folder), name=method) for method, folder in folders.items()]
    return qualitative([Scene.of(file, part.labels.videos[name], methods)])
