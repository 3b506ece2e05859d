"""The pictures of a report: F1 against threshold and against allowed delay."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ongebd.common.lettering import lettering
from ongebd.common.text import shortened
from ongebd.data.numbers import videos
from ongebd.lab.evaluation.ceiling import ceiling_name
from ongebd.lab.evaluation.delay import ALLOWED_DELAYS, DELAY_TOLERANCE
from ongebd.lab.evaluation.relative_distance import THRESHOLDS
from ongebd.lab.evaluation.report_tables import system_names
from ongebd.lab.evaluation.report_values import Values, systems_in

Style = tuple[str, str, str]
"""Colour, mark and line of a system."""

# Okabe and Ito's colours, which colour-blind readers can tell apart; each line has its own style or mark too.
_STYLES: tuple[Style, ...] = (("#0072B2", "o", "-"), ("#D55E00", "s", "--"))
_FLOORS = {"clock": ("#E69F00", "--"), "uniform": ("#999999", "-."), "random": ("#999999", ":")}
_CEILING = "#009E73"

PICTURES = ("f1_against_threshold.png", "f1_against_allowed_delay.png")
"""All that a report may have."""


def draw_pictures(report: Values) -> dict[str, bytes]:
    """PNG files by name; that of the delay only if a system has times of decisions."""
    with lettering(10):
        figures = [_threshold_figure(report)]
        if any("rows" in system["f1_within_delay"] for system in systems_in(report)):
            figures.append(_allowed_delay_figure(report))
        return {name: _png(figure) for name, figure in zip(PICTURES, figures, strict=False)}


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return buffer.getvalue()


def _axes(report: Values, title: str, x: str, y: str, detail: str = "") -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7.5, 4.8), layout="constrained")
    axes = figure.add_subplot()
    scope = f"n = {videos(report['n'])} ({report['labels']['dataset']}); {report['scored']} scored{detail}"
    figure.suptitle(title, fontsize=12, x=0.02, ha="left")
    axes.set_title(scope, fontsize=8.5, loc="left", color="#444444")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#E5E5E5", linewidth=0.7)
    axes.set_axisbelow(True)
    return figure, axes


def _legend(axes: Axes, place: Literal["lower right", "upper left"]) -> None:
    axes.legend(fontsize=8, loc=place, frameon=True, framealpha=0.9, edgecolor="none")


def _systems(report: Values) -> Iterator[tuple[str, Values, Style]]:
    """Name, values and style of each system."""
    for name, system, style in zip(system_names(report), systems_in(report), _STYLES, strict=False):
        short = shortened(name, 34)  # a space keeps matplotlib from hiding names that begin with "_"
        yield f" {short}" if short.startswith("_") else short, system, style


def _draw_f1(axes: Axes, x: Sequence[float], rows: Sequence[Values], name: str, style: Style) -> None:
    """F1 of a system with its interval."""
    colour, mark, _ = style
    axes.plot(x, [row["f1"] for row in rows], color=colour, marker=mark, linewidth=2, label=name)
    intervals = [row["f1_interval"] for row in rows]
    if None not in intervals:
        low, high = zip(*intervals, strict=True)
        axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)


def _threshold_figure(report: Values) -> Figure:
    x = "threshold (fraction of the video's length)"
    figure, axes = _axes(report, "F1 against threshold", x, "F1")
    for (human, each), line in zip(report["human"].items(), ("-", "--"), strict=False):
        f1 = list(each["curve"]["relative"].values())
        axes.plot(THRESHOLDS, f1, color=_CEILING, linestyle=line, label=ceiling_name(human))
    for name, system, style in _systems(report):
        rows = [system["relative"][str(threshold)] for threshold in THRESHOLDS]
        _draw_f1(axes, THRESHOLDS, rows, name, style)
    for floor, each in report["floors"].items():
        colour, line = _FLOORS[floor]
        detail = f" ({each['figures']['average']['detail']})" if floor == "clock" else ""
        f1 = list(each["curve"]["relative"].values())
        axes.plot(THRESHOLDS, f1, color=colour, linestyle=line, label=f"floor: {floor}{detail}")
    axes.set_ylim(0, 1.02)
    axes.set_xticks(THRESHOLDS)
    _legend(axes, "lower right")
    return figure


def _allowed_delay_figure(report: Values) -> Figure:
    figure, axes = _axes(
        report,
        "F1 against the allowed delay",
        "allowed delay after the annotated boundary (seconds)",
        f"F1 at ± {DELAY_TOLERANCE:g} s",
        "; only boundaries decided in time count",
    )
    places = range(len(ALLOWED_DELAYS) + 1)
    clock: list[float] = []
    for name, system, style in _systems(report):
        within = system["f1_within_delay"]
        if "rows" in within:
            _draw_f1(axes, places, list(within["rows"].values()), name, style)
            clock = list(within["clock"].values())  # the same for both systems
    colour, line = _FLOORS["clock"]
    detail = report["floors"]["clock"]["figures"]["absolute 0.5"]["detail"]
    axes.plot(places, clock, color=colour, linestyle=line, label=f"floor: clock ({detail})")
    axes.set_xticks(list(places), [*(f"{seconds:g}" for seconds in ALLOWED_DELAYS), "no limit"])
    axes.set_ylim(0, 1.02)
    _legend(axes, "upper left")
    return figure
