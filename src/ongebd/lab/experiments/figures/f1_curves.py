"""F1 of the rows of a table against relative distance, absolute tolerance and allowed delay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from ongebd.lab.evaluation.comparison import DELAY_TOLERANCE
from ongebd.lab.evaluation.figure_style import (
    BLACK,
    DASH_DOTTED,
    DASHED,
    DOTTED,
    INCHES,
    MARKERS,
    QUIET,
    SERIES,
    STROKES,
    plain_axes,
    print_style,
)
from ongebd.lab.experiments.runner import RowResult, TableResult
from ongebd.lab.experiments.scores import ABSOLUTE_COLUMNS, DELAY_COLUMNS, RELATIVE_COLUMNS, Limit

PANELS = {
    "relative distance": RELATIVE_COLUMNS,
    "tolerance (s)": ABSOLUTE_COLUMNS,
    f"allowed delay (s), at ±{DELAY_TOLERANCE:g} s": (*DELAY_COLUMNS, f"absolute {DELAY_TOLERANCE:g}"),
}
"""The columns of each panel by the title of its x axis, drawn at equal distances."""
LEFT_OUT = ("ESTimator, τ chosen", "persistence, untrained")  # so that lines can be told apart

HEIGHT = 2.5  # inches
DODGE = 0.009  # between neighbouring methods, as a share of the axis


def f1_curves(table: TableResult) -> Figure:
    """Draw the first rows with intervals, clock, annotators, and ESTimator as printed if it compares."""
    rows = [row for row in table.rows if row.cells and row.row.name not in LEFT_OUT][: len(SERIES)]
    limits = [limit for limit in table.limits if not limit.name.startswith("as many")]
    printed = [row for row in table.rows if row.row.name == "ESTimator" and not table.unlike]
    with print_style():
        figure = Figure(figsize=(INCHES["page"], HEIGHT), facecolor="white", layout="constrained")
        panels = figure.subplots(1, len(PANELS))
        for axes, (title, columns) in zip(panels, PANELS.items(), strict=True):
            plain_axes(axes)
            _draw_rows(axes, columns, rows)
            _draw_limits(axes, columns, limits)
            axes.set_xticks(range(len(columns)), _ticks(title, columns))
            axes.set_xlabel(title, labelpad=2)
            axes.set_ylabel("F1", labelpad=2)
            axes.set_ylim(0, 1.02)
            axes.yaxis.set_major_locator(MultipleLocator(0.2))
        for row in printed:
            f1 = [row.printed.get(column, np.nan) for column in RELATIVE_COLUMNS]
            style: dict[str, Any] = {"color": BLACK, "ls": DOTTED, "lw": 0.8, "marker": "o", "ms": 3.2}
            panels[0].plot(f1, mfc="white", mew=0.7, label=f"{row.row.name} (printed)", **style)
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False, handlelength=2.6)
    return figure


def _ticks(title: str, columns: Sequence[str]) -> list[str]:
    numbers = [column.split()[1] for column in columns]
    if title.startswith("allowed"):
        return [*numbers[:-1], "any"]
    return [number.removeprefix("0") for number in numbers] if title.startswith("relative") else numbers


def _draw_rows(axes: Axes, columns: Sequence[str], rows: Sequence[RowResult]) -> None:
    for number, row in enumerate(rows):
        cells = [row.cells[column] for column in columns]
        shift = DODGE * len(columns) * (number - (len(rows) - 1) / 2)  # or intervals would overlap
        x, colour = np.arange(len(columns)) + shift, SERIES[number]
        style: dict[str, Any] = {"marker": MARKERS[number], "ms": 3.2, "mew": 0, "lw": 1.2}
        values = [cell.value for cell in cells]
        axes.plot(x, values, color=colour, ls=STROKES[number], label=row.row.name, **style)
        for place, cell in zip(x, cells, strict=True):
            if cell.interval is not None:
                axes.vlines(place, cell.interval.low, cell.interval.high, color=colour, lw=0.8, zorder=1.5)


def _draw_limits(axes: Axes, columns: Sequence[str], limits: Sequence[Limit]) -> None:
    for limit in limits:
        if all(column in limit.cells for column in columns):
            colour, stroke = (QUIET, DASHED) if "clock" in limit.name else (BLACK, DASH_DOTTED)
            values = [limit.cells[column] for column in columns]
            axes.plot(values, color=colour, ls=stroke, lw=0.9, label=limit.name.partition(",")[0])
