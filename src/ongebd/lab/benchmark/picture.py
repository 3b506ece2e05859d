"""The picture of a benchmark: one stream in each way, and many streams."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from ongebd.common.lettering import lettering
from ongebd.common.text import shortened
from ongebd.lab.benchmark.result import BenchResult, MethodResult
from ongebd.lab.benchmark.timing import Cell, Spread

DPI = 100
QUIET = "#5A5A5A"
# Okabe and Ito's colours, which the colour-blind can tell apart.
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#1A1A1A", QUIET)
MARKERS = "os^Dv<>P"
REAL_TIME = 24.0
"""Frames per second of one live stream."""
_DOTTED: Any = {"color": QUIET, "lw": 1, "ls": (0, (2, 2)), "zorder": 0}
_BELOW: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.14), "frameon": False}


def draw(result: BenchResult) -> bytes:
    """A PNG with the same look under any matplotlib settings of the user."""
    one = [method for method in result.methods if method.ways and method.ways[0].overall.samples]
    many = [method for method in result.methods if any(cell.samples for cell in method.many.values())]
    panels = max(1, bool(one) + bool(many))
    size = 8.0 * panels, max(5.0, 1.6 + 0.62 * len(one))
    with lettering(12):
        figure = Figure(figsize=size, dpi=DPI, facecolor="white", layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(1, panels, squeeze=False)[0]
        if one:
            _draw_one(axes[0], one)
        if many:
            _draw_many(axes[-1], many)
        if not one and not many:
            axes[0].set_axis_off()
            axes[0].text(0.5, 0.5, "nothing was measured", ha="center", color=QUIET, fontsize=18)
        figure.suptitle(_title(result), fontsize=13, color=QUIET)
        png = io.BytesIO()
        figure.savefig(png, format="png", dpi=DPI)
    return png.getvalue()


def _draw_one(axes: Axes, methods: list[MethodResult]) -> None:
    """Draw bars of frames per second over all, ours above torch's own."""
    largest = 1.0
    for way, label in enumerate(("ours", "eager float32")):
        places, speeds, around = _points(
            (place + 0.4 * way - 0.2, method.ways[way].overall)
            for place, method in enumerate(methods)
            if len(method.ways) > way
        )
        if not places:
            continue
        medians = [fps.median for fps in speeds]
        style: Any = {"color": LINES[way], "label": label, "ecolor": QUIET, "capsize": 2}
        axes.barh(places, medians, 0.38, xerr=around, **style)
        for place, fps in zip(places, speeds, strict=True):
            text = f"{fps.median:,.0f}" if fps.median >= 10 else f"{fps.median:.1f}"
            style = {"textcoords": "offset points", "va": "center", "fontsize": 10, "color": QUIET}
            axes.annotate(text, (fps.high, place), xytext=(6, 0), **style)
            largest = max(largest, fps.high)
    axes.set_yticks(range(len(methods)), [shortened(method.title, 24) for method in methods])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(left=min(axes.get_xlim()[0], REAL_TIME / 2), right=3 * largest)
    axes.axvline(REAL_TIME, **_DOTTED)
    axes.set_title("One stream, from frame to decision")
    _finish(axes, axes.xaxis)
    axes.set_xlabel(f"frames/s  (dotted: {REAL_TIME:g}, real time)")
    axes.legend(ncols=2, **_BELOW)


def _draw_many(axes: Axes, methods: list[MethodResult]) -> None:
    """Draw frames per second of all streams together, by their number."""
    counts = sorted({count for method in methods for count in method.many})
    for number, method in enumerate(methods):
        places, speeds, around = _points(sorted(method.many.items()))
        style: Any = {"color": LINES[number % len(LINES)], "marker": MARKERS[number % len(MARKERS)]}
        style |= {"ls": "-" if number < len(LINES) else "--", "capsize": 2, "lw": 1.8}
        medians = [fps.median for fps in speeds]
        axes.errorbar(places, medians, yerr=around, label=shortened(method.title, 24), **style)
    axes.plot(counts, [REAL_TIME * count for count in counts], **_DOTTED)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_title("Many streams")
    axes.set_xlabel(f"streams  (dotted: all at {REAL_TIME:g} frames/s)")
    axes.set_ylabel("frames/s, all together")
    _finish(axes, axes.yaxis)
    axes.legend(ncols=3, fontsize=10, **_BELOW)


def _points(cells: Iterable[tuple[float, Cell]]) -> tuple[list[float], list[Spread], list[list[float]]]:
    """What was measured: places, speeds, and how far their ends lie below and above the medians."""
    known = [(place, cell.fps) for place, cell in cells if cell.fps is not None]
    speeds = [fps for _, fps in known]
    around = [[fps.median - fps.low for fps in speeds], [fps.high - fps.median for fps in speeds]]
    return [place for place, _ in known], speeds, around


def _finish(axes: Axes, axis: Axis) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axis.grid(visible=True, color="#E4E4E4", linewidth=0.8)
    axis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _title(result: BenchResult) -> str:
    plan, machine = result.plan, result.machine
    how = plan.computes_in if plan.on_gpu else f"{plan.runtime}, {plan.computes_in}"
    version = machine.get("ongebd", "")
    return f"{result.where}  ·  ours: {how}  ·  ongebd {version}, {machine['date']}"
