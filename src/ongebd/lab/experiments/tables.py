"""The result of an experiment as tables, and what to say below them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ongebd.common.tables import NOTHING, Cell, Table
from ongebd.lab.evaluation.counts import Interval
from ongebd.lab.experiments.definition import PAPER_SETS
from ongebd.lab.experiments.runner import RowResult, TableResult
from ongebd.lab.experiments.scores import SCORES, Limit
from ongebd.offline.systems import SYSTEMS

_FEW = 4  # printed columns, each with its difference

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


def column_name(column: str) -> str:
    """A column's heading."""
    what, _, number = column.partition(" ")
    return NAMES.get(column) or {"relative": f"Rel.Dis {number}", "absolute": f"±{number} s"}.get(
        what, column
    )


def tables_of(result: TableResult) -> list[Table]:
    """The tables of an experiment: what was measured here, then what the paper prints.

    Where the two can be compared, columns of differences stand beside the printed values. A grid has such
    tables for each column.
    """
    experiment = result.experiment
    if experiment.grid is not None:
        return [table for column in experiment.columns for table in _grid(result, column)]
    ours = [row for row in result.rows if row.cells or row.failure or row.missing]
    rows, rules = _in_parts(result, ours, lambda row: (_ours(result, row, c) for c in experiment.columns))
    floors = [_limit(limit, experiment.columns) for limit in result.limits]
    header = ("measured here", *map(column_name, experiment.columns))
    rules += [len(rows)] if floors else []
    tables = [Table(experiment.title, header, [*rows, *floors], rules=rules)] if rows else []
    columns = [column for column in experiment.columns if any(column in row.printed for row in result.rows)]
    return [*tables, _printed_table(result, columns)] if columns else tables


def _in_parts(
    result: TableResult, rows: Sequence[RowResult], cells: Callable[[RowResult], Iterator[Cell]]
) -> tuple[list[tuple[Cell, ...]], list[int]]:
    """Lines of a table, those of offline, online and others' methods apart; and where lines are drawn."""
    parts: dict[str, list[tuple[Cell, ...]]] = {}
    for row in rows:
        parts.setdefault(_kind(result, row), []).append((Cell(row.row.name), *cells(row)))
    if len(parts) == 1:
        return next(iter(parts.values())), []
    lines: list[tuple[Cell, ...]] = []
    rules: list[int] = []
    for name, part in parts.items():
        rules += [len(lines)] if lines else []
        lines += [(Cell(name, italic=True), *[Cell("")] * (len(part[0]) - 1)), *part]
    return lines, rules


def _kind(result: TableResult, row: RowResult) -> str:
    if row.row.kind == "given":
        return "predictions from files"
    paper = result.experiment.paper
    printed = {} if paper is None else paper.settings.get(row.row.printed or row.row.name, {})
    return "online" if printed.get("online", row.row.method not in SYSTEMS) else "offline"


def differences(result: TableResult, row: RowResult) -> dict[str, float]:
    """Measured minus printed, for the scores of a row that can be compared with the paper's."""
    if result.unlike or not row.cells:
        return {}
    both = [column for column in row.printed if column in SCORES and column in row.cells]
    return {column: row.cells[column].value - row.printed[column] for column in both}


def _printed_table(result: TableResult, columns: Sequence[str]) -> Table:
    """The printed values with the difference of each score, or of the first where there are many."""
    rows = [row for row in result.rows if row.printed]
    compared = [column for column in columns if any(column in differences(result, row) for row in rows)]
    compared = compared if len(columns) <= _FEW else compared[:1]
    header = [_printed_in(result)]
    for column in columns:
        header += [column_name(column), *["difference"] * (column in compared)]

    def cells(row: RowResult) -> Iterator[Cell]:
        apart = differences(result, row)
        for column in columns:
            yield _printed(row.printed, column)
            if column in compared:
                yield _difference(apart, column)

    lines, rules = _in_parts(result, rows, cells)
    return Table(f"{result.experiment.title}, printed in the paper", header, lines, rules=rules)


def _printed_in(result: TableResult) -> str:
    paper = result.experiment.paper
    return "" if paper is None else f"printed in the paper's {paper.named}"


def _grid(result: TableResult, column: str) -> list[Table]:
    down, across = result.experiment.grid or ("", "")
    cells = {row.row.at: row for row in result.rows if row.row.at is not None}
    firsts = list(dict.fromkeys(at[0] for at in cells))
    seconds = list(dict.fromkeys(at[1] for at in cells))
    header = (f"{down} \\ {across}", *seconds)
    title = f"{result.experiment.title}: {column_name(column)}"
    rows = [(Cell(a), *(_ours(result, cells[a, b], column) for b in seconds)) for a in firsts]
    floors = [_limit(limit, [column] * len(seconds)) for limit in result.limits]
    tables = [Table(title, header, [*rows, *floors], rules=[len(rows)])] if floors else []
    if any(column in row.printed for row in result.rows):
        printed = [(Cell(a), *(_printed(cells[a, b].printed, column) for b in seconds)) for a in firsts]
        tables.append(Table(f"{title}, {_printed_in(result)}", header, printed))
        apart = {at: differences(result, row) for at, row in cells.items()}
        if any(column in each for each in apart.values()):
            rows = [(Cell(a), *(_difference(apart[a, b], column) for b in seconds)) for a in firsts]
            tables.append(Table(f"{title}, difference", header, rows))
    return tables


def _ours(result: TableResult, row: RowResult, column: str) -> Cell:
    cell = row.cells.get(column)
    if cell is None:
        return Cell("failed" if row.failure else NOTHING)
    best = result.best.get(column) == row.row.name
    return Cell(_number(cell.value, column), bold=best, small=_interval(cell.interval))


def _printed(printed: Mapping[str, float], column: str) -> Cell:
    return Cell(_number(printed[column], column) if column in printed else NOTHING, italic=True)


def _limit(limit: Limit, columns: Sequence[str]) -> tuple[Cell, ...]:
    values = [
        _number(limit.cells[column], column) if column in limit.cells else NOTHING for column in columns
    ]
    return (Cell(limit.name), *map(Cell, values))


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else f"{_score(interval.low)}–{_score(interval.high)}"


def _number(value: float, column: str) -> str:
    if column in SCORES:
        return _score(value)
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _score(value: float) -> str:
    """.620, as this field writes it."""
    return f"{value:.3f}".removeprefix("0") if value < 1 else f"{value:.3f}"


def _difference(apart: Mapping[str, float], column: str) -> Cell:
    """−.012 or +.012."""
    value = apart.get(column)
    return Cell(NOTHING if value is None else f"{'−' if value < 0 else '+'}{_score(abs(value))}")


def notes_of(result: TableResult) -> list[str]:
    """Sentences to stand below the tables."""
    experiment, notes = result.experiment, []
    if result.videos:
        trained = any(row.row.kind == "trained" and row.cells for row in result.rows)
        seeds = f"; means over {result.seeds} seed{'s' * (result.seeds != 1)}" if trained else ""
        notes.append(
            f"Scored on {result.data}: {result.videos} videos, {result.boundaries} boundaries{seeds}."
            " Brackets show 95 % intervals (bootstrap over videos and seeds, paired between rows); a bold"
            " cell leads every other row by more than the noise."
        )
    elif result.data:
        notes.append(f"Measured on {result.data}.")
    chosen = [row for row in result.rows if row.thresholds and (row.row.tau is None or not row.row.obd)]
    if chosen and experiment.grid is None:
        each = "; ".join(
            f"{row.row.name} {', '.join(f'{value:.3g}' for value in row.thresholds)}" for row in chosen
        )
        notes.append(f"Thresholds (τ, or of a probability or error) chosen on validation videos: {each}.")
    if any(row.printed for row in result.rows):
        where = f", on {PAPER_SETS[experiment.data]}"
        notes.append(f"Printed values are the paper's{where}; none of them was measured here.")
        if result.unlike:
            notes.append(f"**Not comparable with the printed values:** {'; '.join(result.unlike)}.")
        elif result.videos:
            notes.append("Comparable with the printed values, as far as the paper states what it did.")
    notes += [f"{limit.name[0].upper()}{limit.name[1:]}: {limit.detail}." for limit in result.limits]
    notes += [f"{note[0].upper()}{note[1:]}." for note in result.notes]
    notes += [f"{row.row.name} was left out: {row.missing}." for row in result.rows if row.missing]
    notes += [f"{row.row.name} is only printed: {row.row.why}." for row in result.rows if row.row.why]
    memory = [column for column in ("vram-gb", "vram-mb") if column in experiment.columns]
    empty = [column for column in memory if not any(column in row.cells for row in result.rows)]
    notes += [f"No {NAMES[column]}: it is measured on a GPU only." for column in empty]
    notes += [f"{row.row.name} failed: {row.failure}" for row in result.rows if row.failure]
    paper = experiment.paper
    return notes + ([f"In the paper: {each}" for each in (*paper.doubts, *paper.notes)] if paper else [])
