"""Draws a run with matplotlib. Imported only when a picture is wanted."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, MultipleLocator

from ongebd.common.lettering import lettering
from ongebd.common.text import shortened, spoken_name
from ongebd.output.base import RunEnd, RunHeader
from ongebd.output.naming import clock, printable, public_name
from ongebd.output.strip import Strip
from ongebd.output.trace import Curves, Flags, Floats, Snapshot
from ongebd.types import Boundary, Epoch

SIZE = (16.0, 9.0)  # inches
DPI = 100
POINTS = 3000  # on the curve: two a pixel
MANY = 40  # boundaries
LEFT, RIGHT, BOTTOM = 0.06, 0.97, 0.15  # of the axes, as parts of the figure

# Colours that the colour-blind tell apart (Okabe and Ito); the lines differ in their strokes too.
ERROR, THRESHOLD, POSITIVE, ONSET, CENTRE = "#0072B2", "#D55E00", "#F0C244", "#009E73", "#1A1A1A"
COLD, BREAK, QUIET = "#EBEBEB", "#CC79A7", "#5A5A5A"
PASSED_OVER = "#FBEBC2"

STEPS = (
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    14400,
    43200,
    86400,
)


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a picture shows of a run."""

    header: RunHeader
    end: RunEnd
    curves: Curves
    boundaries: Sequence[Boundary]
    epochs: Sequence[Epoch]
    snapshots: Sequence[Snapshot]


def render(scene: Scene) -> bytes:
    """Draw a run; the same look whatever the user's matplotlib settings are.

    Returns:
        A PNG of `SIZE` × `DPI` pixels.
    """
    with lettering(14):
        figure = _draw(scene)
        png = io.BytesIO()
        FigureCanvasAgg(figure)
        figure.savefig(png, format="png", dpi=DPI)
    return png.getvalue()


def _draw(scene: Scene) -> Figure:
    figure = Figure(figsize=SIZE, dpi=DPI, facecolor="white")
    strip = Strip(figure, scene.snapshots, LEFT, RIGHT)
    axes = figure.add_axes((LEFT, BOTTOM, RIGHT - LEFT, strip.foot - BOTTOM))
    _set_axes(axes, scene)
    _draw_curves(axes, scene)
    _draw_marks(axes, scene)
    _draw_legend(axes)
    _draw_title(figure, scene)
    strip.draw(axes, colour=CENTRE)
    return figure


def _set_axes(axes: Axes, scene: Scene) -> None:
    curves = scene.curves
    last = max(scene.end.duration, float(curves.time.max(initial=0.0))) or 1.0
    axes.set_xlim(0, last)
    thresholds = curves.threshold[curves.ready]
    usual = float(np.percentile(thresholds, 98)) if len(thresholds) else 0.0
    axes.set_ylim(0, 1.12 * max(float(curves.error.max(initial=0.0)), usual, 0.01))
    axes.set_ylabel(f"{_words(scene.header).score}  (0 to 1)")
    _set_time_axis(axes, last)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#E4E4E4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", pad=9)  # room for the triangles
    if not len(curves):
        axes.text(0.5, 0.5, "no frames", transform=axes.transAxes, ha="center", color=QUIET, fontsize=20)


def _set_time_axis(axes: Axes, last: float) -> None:
    step = next(
        (step for step in STEPS if last / step <= 12), STEPS[-1] * max(1, round(last / STEPS[-1] / 10))
    )
    axes.xaxis.set_major_locator(MultipleLocator(step))
    if last < 120:
        axes.set_xlabel("time (s)")
    elif last < 3600:
        axes.set_xlabel("time (min:s)")
        axes.xaxis.set_major_formatter(
            FuncFormatter(lambda value, _: clock(value, digits=0)[2:].removeprefix("0"))
        )
    else:
        axes.set_xlabel("time (h:min)")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: clock(value, digits=0)[:-3]))


def _draw_curves(axes: Axes, scene: Scene) -> None:
    curves, words = scene.curves, _words(scene.header)
    if not len(curves):
        return
    drawn = curves.pooled(-(-len(curves) // POINTS))
    time = np.where(np.diff(drawn.time, prepend=-np.inf) < 0, np.nan, drawn.time)  # no line back in time
    threshold = np.where(drawn.ready, drawn.threshold, np.nan)
    dense = len(drawn) > POINTS // 2
    thick = 1.0 if dense else 1.5 if len(drawn) > 600 else 2.2
    dot = "o" if len(drawn) == 1 else ""
    axes.plot(
        time,
        drawn.error,
        color=ERROR,
        lw=1.0 if dense else 2.2,
        marker=dot,
        label=words.score,
        zorder=4,
    )
    if drawn.ready.any():
        dashes = "-" if dense else (0, (4, 1.5))
        axes.plot(
            time,
            threshold,
            color=THRESHOLD,
            lw=0.9 * thick,
            ls=dashes,
            label=words.threshold,
            zorder=3,
        )
    counted = curves.positive
    if words.passed_over is not None:
        counted = counted & within_boundaries(curves.time, scene.boundaries)
    _shade(axes, curves, counted, POSITIVE, words.positive)
    if words.passed_over is not None:
        _shade(axes, curves, curves.positive & ~counted, PASSED_OVER, words.passed_over)
    _shade(axes, curves, ~curves.ready, COLD, words.not_ready)


class _Words(NamedTuple):
    """What the parts of a picture are called, which hangs on the head that decided.

    Attributes:
        score: The curve.
        threshold: The line above which a frame is positive.
        positive: The shade where a frame is.
        passed_over: The shade where one is, but of no boundary; None: both are one.
        not_ready: The shade where there is no verdict.
    """

    score: str
    threshold: str
    positive: str
    passed_over: str | None
    not_ready: str


def _words(header: RunHeader) -> _Words:
    head = header.settings.get("head") or "obd"
    too_soon = "above it, but too soon after a boundary (min-gap, max-run)"
    if head == "obd":
        return _Words(
            "prediction error", "threshold: mean + τσ", "error above threshold", too_soon, "cold start"
        )
    if head == "hysteresis":
        rearm = header.settings.get("rearm")
        return _Words("boundary score", "threshold", f"above it, until below {rearm} of it", None, "no score")
    return _Words("score", "threshold", "score above threshold", too_soon, "no score")


def within_boundaries(times: Floats, boundaries: Sequence[Boundary]) -> Flags:
    """Which points in time belong to a boundary: lie from its first positive frame to its last.

    >>> within_boundaries(np.array([1.0, 2.0, 3.0, 4.0]), [Boundary(2.5, 2.0, 3.5, 4.0)]).tolist()
    [False, True, True, False]
    """
    slack = 1e-6
    first = np.array([boundary.onset for boundary in boundaries], np.float64)
    centre = np.array([boundary.time for boundary in boundaries], np.float64)
    changes = np.zeros(len(times) + 1, np.int64)
    np.add.at(changes, np.searchsorted(times, first - slack), 1)
    np.add.at(changes, np.searchsorted(times, 2 * centre - first + slack), -1)  # the centre lies midway
    inside: Flags = changes.cumsum()[:-1] > 0
    return inside


def _shade(axes: Axes, curves: Curves, mask: Flags, colour: str, label: str) -> None:
    """Shade the full height over each run of the mask, half a frame more on either side."""
    if not mask.any():
        return
    middles = (curves.time[1:] + curves.time[:-1]) / 2
    edges = np.concatenate([curves.time[:1], middles, curves.time[-1:]])
    changes = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    spans = [(edges[a], max(edges[b] - edges[a], 0.0)) for a, b in changes.reshape(-1, 2)]
    place = axes.get_xaxis_transform()
    axes.broken_barh(spans, (0, 1), transform=place, fc=colour, ec=colour, lw=0.6, zorder=0.5, label=label)


def _draw_marks(axes: Axes, scene: Scene) -> None:
    """Mark onsets by triangles at the foot, centres by lines behind the curve."""
    many = len(scene.boundaries) > MANY  # then short lines, lest they fill the picture
    at_once = scene.header.settings.get("max_run") == 0  # onset and centre are one
    place = axes.get_xaxis_transform()
    if scene.boundaries:
        onsets = [boundary.onset for boundary in scene.boundaries]
        centres = [boundary.time for boundary in scene.boundaries]
        if not many and not at_once:
            axes.vlines(onsets, 0, 1, transform=place, color=ONSET, lw=1.4, ls=(0, (2, 2)), zorder=1.5)
        axes.scatter(
            onsets,
            np.zeros(len(onsets)),
            s=25 if many else 90,
            c=ONSET,
            marker=MarkerStyle("^"),
            ec="white",
            lw=0.4,
            label="boundary" if at_once else "onset of a boundary",
            clip_on=False,
            zorder=5,
        )
        foot = 0.94 if many else 0.0
        label = "_" if at_once else "centre of a boundary"
        axes.vlines(
            centres, foot, 1, transform=place, color=CENTRE, lw=1.0 if many else 1.4, label=label, zorder=2
        )
    if scene.epochs:
        breaks = [epoch.time for epoch in scene.epochs]
        axes.vlines(breaks, 0, 1, transform=place, color=BREAK, lw=2, ls="-.", label="break in the source")


def _draw_legend(axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        # More than these do not fit into one row, but two rows fit under the axis.
        columns = len(handles) if len(handles) < 7 and not any(len(label) > 40 for label in labels) else 4
        axes.legend(
            handles,
            labels,
            loc="lower center",
            bbox_to_anchor=((LEFT + RIGHT) / 2, 0.005),
            bbox_transform=axes.figure.transFigure,
            ncols=columns,
            frameon=False,
            fontsize=13 if len(handles) <= columns else 12,
            borderpad=0.0,
            labelspacing=0.3,
            columnspacing=1.6,
            handlelength=1.8,
        )


def _draw_title(figure: Figure, scene: Scene) -> None:
    header, end = scene.header, scene.end
    name = shortened(_title(header.source), 70)
    _fit(figure.text(LEFT, 0.945, name, fontsize=24, fontweight="bold", va="center"))
    found = f"{end.boundaries} {'boundary' if end.boundaries == 1 else 'boundaries'}"
    facts = [
        f"{found} in {_span(end.duration)}",
        f"model {shortened(printable(public_name(header.model)), 40)}",
        *(
            form.format(header.settings[key])
            for key, form in (("sensitivity", "sensitivity {}"), ("tau", "τ {}"), ("fps", "{} frames/s"))
            if header.settings.get(key) is not None
        ),
        *([] if end.complete else ["stopped early"]),
    ]
    shown = len(scene.snapshots)
    if shown:
        which = f" of the {shown} strongest" if shown < len(scene.boundaries) else ""
        facts.append(f"pictures: onsets{which}")
    _fit(figure.text(LEFT, 0.9, "   ·   ".join(facts), fontsize=15, color=QUIET, va="center"))


def _fit(text: Text) -> None:
    """Make a text smaller until it fits between the margins."""
    room = 0.95 * (RIGHT - LEFT) * SIZE[0] * DPI  # letters do not shrink in quite the same ratio
    width = text.get_window_extent().width
    if width > room:
        text.set_fontsize(float(text.get_fontsize()) * room / width)


def _span(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 120 else clock(seconds, digits=0)


def _title(source: str) -> str:
    public = spoken_name(source)
    return printable(public if "://" in public else Path(public).name or public)
