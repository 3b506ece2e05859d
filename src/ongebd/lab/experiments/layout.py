"""Tables as rows of cells, once for Markdown, HTML and LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ongebd.lab.experiments.columns import SCORES
from ongebd.lab.experiments.results import RowResult, TableResult
from ongebd.lab.experiments.statistics import Cell
from ongebd.lab.experiments.table import PAPERS

NAMES = {
    "average": "Avg F1",
    "f1 0.05": "F1 at 0.05",
    "precision 0.05": "precision at 0.05",
    "recall 0.05": "recall at 0.05",
    "vram-gb": "memory of training, GB",
    "vram-mb": "GPU memory, MB",
    "parameters-millions": "parameters, M",
    "gflops": "GFLOPs",
    "features": "features, frames/s",
    "model": "model, frames/s",
    "overall": "overall, frames/s",
    "overall, eager": "overall, torch's eager float32",
}


@dataclass(frozen=True, slots=True)
class Text:
    """A cell of text.

    Attributes:
        text: What stands in it.
        bold: Whether it is ahead of all others beyond the noise.
        small: What stands behind it, smaller: an interval.
        printed: Whether it is the paper's and not ours.
    """

    text: str
    bold: bool = False
    small: str = ""
    printed: bool = False


@dataclass(frozen=True)
class Sheet:
    """A table ready to be written.

    Attributes:
        title: Above it.
        header: Of the columns; the first is the rows'.
        rows: Cells; as many as there are columns.
        rules: Rows before which a line is drawn.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Text, ...], ...]
    rules: tuple[int, ...] = ()


def column_name(column: str) -> str:
    """A column's heading."""
    what, _, number = column.partition(" ")
    plain = {"relative": f"Rel.Dis {number}", "absolute": f"±{number} s"}.get(what, column)
    return NAMES.get(column, plain)


def sheets(result: TableResult) -> list[Sheet]:
    """A table's sheets: one, or for a grid two for each figure that the paper prints too."""
    if result.experiment.grid is not None:
        return _grids(result)
    columns = result.experiment.columns
    rows: list[tuple[Text, ...]] = []
    for row in result.rows:
        if row.cells or row.failure or row.missing:
            rows.append((Text(row.row.name), *(_ours(result, row, column) for column in columns)))
        if row.printed:
            rows.append(
                (Text(f"{row.row.name}, printed", printed=True), *(_printed(row, c) for c in columns))
            )
    rule = len(rows)
    rows += [
        (Text(limit.name), *(_number(limit.cells.get(column), column) for column in columns))
        for limit in result.limits
    ]
    header = ("", *map(column_name, columns))
    return [Sheet(result.experiment.title, header, tuple(rows), (rule,) if result.limits else ())]


def _grids(result: TableResult) -> list[Sheet]:
    across, down = result.experiment.grid or ("", "")
    cells = {row.row.at: row for row in result.rows if row.row.at is not None}
    firsts = list(dict.fromkeys(at[0] for at in cells))
    seconds = list(dict.fromkeys(at[1] for at in cells))
    header = (f"{across} \\ {down}", *seconds)
    made = []
    for column in result.experiment.columns:
        rows = tuple(
            (Text(first), *(_ours(result, cells[first, second], column) for second in seconds))
            for first in firsts
        )
        limits = tuple(
            (Text(limit.name), *[_number(limit.cells.get(column), column)] * len(seconds))
            for limit in result.limits
        )
        title = f"{result.experiment.title}: {column_name(column)}"
        made.append(Sheet(title, header, (*rows, *limits), (len(rows),) if limits else ()))
        if any(column in row.printed for row in cells.values()):
            rows = tuple(
                (Text(first, printed=True), *(_printed(cells[first, second], column) for second in seconds))
                for first in firsts
            )
            made.append(Sheet(f"{title}, printed", header, rows))
    return made


def _ours(result: TableResult, row: RowResult, column: str) -> Text:
    cell = row.cells.get(column)
    if cell is None:
        return Text("failed" if row.failure else "–")
    shown = _number(cell.value, column)
    return Text(shown.text, result.best.get(column) == row.row.name, _spread(cell, column))


def _spread(cell: Cell, column: str) -> str:
    if cell.interval is None:
        return ""
    return f"{_score(cell.interval.low)}–{_score(cell.interval.high)}" if column in SCORES else ""


def _printed(row: RowResult, column: str) -> Text:
    value = row.printed.get(column)
    return Text("–" if value is None else _number(value, column).text, printed=True)


def _number(value: float | None, column: str) -> Text:
    if value is None:
        return Text("–")
    if column in SCORES:
        return Text(_score(value))
    return Text(f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}")


def _score(value: float) -> str:
    """.620, as this field writes it."""
    text = f"{value:.3f}"
    return text[1:] if text.startswith("0.") else text


def facts(result: TableResult) -> list[str]:
    """What stands under a table, one sentence each."""
    said: list[str] = []
    if result.videos:
        trained = any(row.row.kind == "trained" and row.cells for row in result.rows)
        seeds = f"; means over {result.seeds} seed{'s' * (result.seeds != 1)}" if trained else ""
        said.append(
            f"Scored on {result.data}: {result.videos} videos, {result.boundaries} boundaries{seeds}. In"
            " brackets 95 % by the bootstrap over videos and seeds, paired between rows; bold is ahead of"
            " every other row beyond it."
        )
    elif result.data:
        said.append(f"Measured on {result.data}.")
    chosen = [row for row in result.rows if row.thresholds and (row.row.tau is None or not row.row.obd)]
    if chosen and result.experiment.grid is None:
        each = "; ".join(f"{row.row.name} {_some(row.thresholds)}" for row in chosen)
        said.append(f"Thresholds (τ, or of a probability or error) chosen on validation videos: {each}.")
    if any(row.printed for row in result.rows):
        where = "" if result.experiment.speed else f", on {PAPERS[result.experiment.data]}"
        said.append(f"Printed values are the paper's{where}; nothing of them was measured here.")
    said += [f"{limit.name[0].upper()}{limit.name[1:]}: {limit.detail}." for limit in result.limits]
    return [
        *said,
        *result.notes,
        *(f"{row.row.name} was left out: {row.missing}." for row in result.rows if row.missing),
        *(f"{row.row.name} failed: {row.failure}" for row in result.rows if row.failure),
    ]


def _some(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)
