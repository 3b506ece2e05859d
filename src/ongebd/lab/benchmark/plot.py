"""The picture of a benchmark: one stream in each way, and many streams."""

from __future__ import annotations

import io

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from ongebd.common.lettering import lettering
from ongebd.common.text import shortened
from ongebd.lab.benchmark.result import BenchResult, MethodResult

DPI = 100
# Colours that the colour-blind tell apart (Okabe and Ito).
OURS, EAGER, QUIET = "#0072B2", "#D55E00", "#5A5A5A"
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#1A1A1A", "#5A5A5A")
MARKERS = "os^Dv<>P"
REAL_TIME = 24.0
"""Frames a second of one live stream."""


def draw(result: BenchResult) -> bytes:
    """Draw a benchmark; the same look whatever the user's matplotlib settings are. Returns a PNG."""
    one = [method for method in result.methods if method.ways and method.ways[0].overall.samples]
    many = [method for method in result.methods if any(cell.samples for cell in method.many.values())]
    panels = bool(one) + bool(many)
    height = max(5.0, 1.6 + 0.62 * len(one))
    with lettering(12):
        figure = Figure(
            figsize=(8.0 * max(1, panels), height), dpi=DPI, facecolor="white", layout="constrained"
        )
        FigureCanvasAgg(figure)
        axes = figure.subplots(1, max(1, panels), squeeze=False)[0]
        if one:
            _draw_one(axes[0], one)
        if many:
            _draw_many(axes[-1], many)
        if not panels:
            axes[0].set_axis_off()
            axes[0].text(0.5, 0.5, "nothing was measured", ha="center", color=QUIET, fontsize=18)
        figure.suptitle(_title(result), fontsize=13, color=QUIET)
        png = io.BytesIO()
        figure.savefig(png, format="png", dpi=DPI)
    return png.getvalue()


def _draw_one(axes: Axes, methods: list[MethodResult]) -> None:
    """Bars of frames a second over all, ours above torch's own."""
    places = np.arange(len(methods), dtype=float)
    largest = 1.0
    for way, (colour, label, shift) in enumerate(((OURS, "ours", -0.2), (EAGER, "eager float32", 0.2))):
        drawn = [
            (place, method.ways[way].overall.fps) for place, method in zip(places, methods, strict=True)
            if len(method.ways) > way
        ]  # fmt: skip
        known = [(place, fps) for place, fps in drawn if fps is not None]
        if not known:
            continue
        values = [fps.median for _, fps in known]
        around = [
            [fps.median - fps.low for _, fps in known],
            [fps.high - fps.median for _, fps in known],
        ]
        where = [place + shift for place, _ in known]
        axes.barh(where, values, 0.38, xerr=around, color=colour, label=label, ecolor=QUIET, capsize=2)
        for place, (_, fps) in zip(where, known, strict=True):
            axes.annotate(
                f"{fps.median:,.0f}" if fps.median >= 10 else f"{fps.median:.1f}",
                (fps.high, place),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=10,
                color=QUIET,
            )
            largest = max(largest, fps.high)
    axes.set_yticks(places, [shortened(method.title, 24) for method in methods])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(left=min(axes.get_xlim()[0], REAL_TIME / 2), right=3 * largest)
    axes.axvline(REAL_TIME, color=QUIET, lw=1, ls=(0, (2, 2)), zorder=0)
    axes.set_title("One stream, from frame to decision")
    _finish(axes, "x")
    axes.set_xlabel(f"frames/s  (dotted: {REAL_TIME:g}, real time)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)


def _draw_many(axes: Axes, methods: list[MethodResult]) -> None:
    """Frames a second of all streams together, by their number."""
    counts = sorted({count for method in methods for count in method.many})
    for number, method in enumerate(methods):
        points = [(count, cell.fps) for count, cell in sorted(method.many.items())]
        known = [(count, fps) for count, fps in points if fps is not None]
        medians = np.array([fps.median for _, fps in known])
        lows = np.array([fps.low for _, fps in known])
        highs = np.array([fps.high for _, fps in known])
        axes.errorbar(
            [count for count, _ in known],
            medians,
            yerr=[medians - lows, highs - medians],
            color=LINES[number % len(LINES)],
            marker=MARKERS[number % len(MARKERS)],
            ls="-" if number < len(LINES) else "--",
            label=shortened(method.title, 24),
            capsize=2,
            lw=1.8,
        )
    axes.plot(counts, [REAL_TIME * count for count in counts], color=QUIET, lw=1, ls=(0, (2, 2)), zorder=0)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_title("Many streams")
    axes.set_xlabel(f"streams  (dotted: all at {REAL_TIME:g} frames/s)")
    axes.set_ylabel("frames/s, all together")
    _finish(axes, "y")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, frameon=False, fontsize=10)


def _finish(axes: Axes, which: str) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.grid(visible=True, color="#E4E4E4", linewidth=0.8)
    axis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _title(result: BenchResult) -> str:
    where = str(result.machine.get("card") or result.machine["processor"])
    plan = result.plan
    how = plan.computes_in if plan.on_gpu else f"{plan.runtime}, {plan.computes_in}"
    return f"{where}  ·  ours: {how}  ·  ongebd {result.machine.get('ongebd', '')}, {result.machine['date']}"
