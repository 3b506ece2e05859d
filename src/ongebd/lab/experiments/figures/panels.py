"""The parts of the qualitative figure: the annotators' row, and a method's curve with its boundaries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ongebd.common.text import shortened
from ongebd.data.label_set import VideoLabels
from ongebd.lab.experiments.figures.judging import Judged, agreement
from ongebd.lab.experiments.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    SMALL,
    STROKES,
    VERMILLION,
    plain_axes,
)
from ongebd.lab.experiments.figures.watching import POINTS, Watched
from ongebd.output.naming import clock
from ongebd.output.trace import Curves

DARKEST = 0.26  # how far the shade goes from white to black where all annotators agree
RIGHT, FALSE, MISSED = "v", "v", "x"


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """What a panel shows of a method.

    Attributes:
        name: The method's.
        curves: Score and threshold, or both in standard deviations.
        judged: Its boundaries in the part that is shown.
        unit: What the y axis is called.
    """

    name: str
    curves: Curves
    judged: Judged
    unit: str

    @classmethod
    def of(cls, method: Watched, judged: Judged, curve: str) -> Panel:
        """The panel of a method; with curve "z" of one that has it."""
        curves = method.z if curve == "z" and method.z is not None else method.curves
        unit = "ζ" if curve == "z" else "score" if method.z is None else "error ε"
        return cls(method.name, curves, judged, unit)

    def heading(self, longest: int) -> str:
        """Name and counts, the name of at most so many letters."""
        return f"{shortened(self.name, longest)}:  {self.judged.in_words()}"


def draw_annotators(axes: Axes, labels: VideoLabels, tolerance: float, start: float, end: float) -> None:
    """A row for each annotator: a stroke for each boundary, in a bar of what is near enough."""
    count = len(labels.boundaries)
    for row, times in enumerate(labels.boundaries):
        spans = [(time - tolerance, 2 * tolerance) for time in times]
        axes.broken_barh(spans, (row - 0.38, 0.76), fc=_shade(0.5), lw=0)
        axes.vlines(times, row - 0.45, row + 0.45, color=BLACK, lw=1.1)
    axes.set_xlim(start, end)
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_yticks([])
    axes.set_xticks([])
    axes.spines[:].set_visible(False)
    who = "rater" if count == 1 else f"{count} raters"
    axes.text(-0.008, 0.5, who, transform=axes.transAxes, ha="right", va="center", fontsize=SMALL)


def draw_panel(
    axes: Axes, panel: Panel, labels: VideoLabels, tolerance: float, start: float, end: float
) -> None:
    """Shade, curve, threshold and boundaries."""
    plain_axes(axes, grid=None)
    axes.set_xlim(start, end)
    _shade_agreement(axes, labels, tolerance)
    curves = _pooled(_between(panel.curves, start, end))
    time = np.where(np.diff(curves.time, prepend=-np.inf) < 0, np.nan, curves.time)  # no line back in time
    axes.plot(time, curves.error, color=BLUE, lw=1.0, zorder=4)
    axes.plot(time, curves.threshold, color=VERMILLION, lw=0.9, ls=STROKES[1], zorder=3)
    _set_height(axes, curves)
    _draw_boundaries(axes, panel.judged)
    axes.set_ylabel(panel.unit, fontsize=SMALL, labelpad=2)
    axes.yaxis.set_major_locator(MaxNLocator(3))


def draw_time(axes: Axes, *, last: bool) -> None:
    """The time axis; only that of the last panel has numbers."""
    axes.xaxis.set_major_locator(MaxNLocator(10, steps=[1, 2, 5, 10]))
    axes.tick_params(axis="x", labelbottom=last)
    if not last:
        return
    if axes.get_xlim()[1] < 120:
        axes.set_xlabel("time (s)", labelpad=1)
    else:
        axes.set_xlabel("time (min:s)", labelpad=1)
        axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 1.5, 3, 6, 10]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _minutes(value)))


def _minutes(seconds: float) -> str:
    hours, minutes, rest = clock(seconds, digits=0).split(":")
    return f"{60 * int(hours) + int(minutes)}:{rest}"


def _shade(share: float) -> tuple[float, float, float]:
    """A grey: white where no annotator has a boundary, darkest where all have one."""
    red, green, blue = to_rgb("white")
    part = 1 - DARKEST * share
    return red * part, green * part, blue * part


def _shade_agreement(axes: Axes, labels: VideoLabels, tolerance: float) -> None:
    edges, shares = agreement(labels, tolerance)
    place = axes.get_xaxis_transform()
    for share in np.unique(shares[shares > 0]):
        spans = [
            (left, right - left)
            for left, right, here in zip(edges[:-1], edges[1:], shares, strict=True)
            if here == share
        ]
        axes.broken_barh(spans, (0, 1), transform=place, fc=_shade(float(share)), lw=0, zorder=0.5)


def _between(curves: Curves, start: float, end: float) -> Curves:
    """The part of the curves that is shown, and a point more on either side."""
    inside = (curves.time >= start) & (curves.time <= end)
    inside[:-1] |= inside[1:]
    inside[1:] |= inside[:-1]
    return Curves(
        curves.time[inside],
        curves.error[inside],
        curves.threshold[inside],
        curves.mean[inside],
        curves.ready[inside],
        curves.positive[inside],
    )


def _pooled(curves: Curves) -> Curves:
    size = -(-len(curves) // POINTS)
    if size <= 1:
        return curves
    known = np.where(np.isnan(curves.error), -np.inf, curves.error)  # NaN would win over every peak
    pooled = replace(curves, error=known).pooled(size)
    return replace(pooled, error=np.where(np.isneginf(pooled.error), np.nan, pooled.error))


def _set_height(axes: Axes, curves: Curves) -> None:
    """Room for the curve and for all but the highest peaks of the threshold; the marks stand above."""
    error = curves.error[np.isfinite(curves.error)]
    threshold = curves.threshold[np.isfinite(curves.threshold)]
    usual = float(np.percentile(threshold, 98)) if len(threshold) else 0.0
    top = 1.3 * max(float(error.max(initial=0.0)), usual, 1e-3)
    axes.set_ylim(min(0.0, 1.1 * float(error.min(initial=0.0))), top)


def _draw_boundaries(axes: Axes, found: Judged) -> None:
    place = axes.get_xaxis_transform()
    for mask, colour, stroke, face in (
        (found.right, GREEN, "-", GREEN),
        (~found.right, BLACK, STROKES[3], "white"),
    ):
        times = found.times[mask]
        axes.vlines(times, 0, 0.92, transform=place, color=colour, lw=0.9, ls=stroke, zorder=2)
        axes.scatter(times, np.full(len(times), 0.93), transform=place, **_mark(colour, face), zorder=6)
    missed = found.missed
    if len(missed):
        axes.scatter(
            missed,
            np.full(len(missed), 0.93),
            transform=place,
            s=14,
            c=BLACK,
            marker=MarkerStyle(MISSED),
            lw=1.0,
            zorder=5,
        )


def _mark(colour: str, face: str) -> dict[str, Any]:
    return {"s": 20, "marker": MarkerStyle(RIGHT), "facecolors": face, "edgecolors": colour, "lw": 0.8}


def _line(colour: str, stroke: Any, label: str) -> Callable[[], Artist]:
    return lambda: Line2D([], [], color=colour, lw=1.1, ls=stroke, label=label)


def _sign(colour: str, stroke: Any, face: str, label: str) -> Callable[[], Artist]:
    return lambda: Line2D(
        [], [], color=colour, lw=0.9, ls=stroke, marker=RIGHT, ms=4, mfc=face, mew=0.8, label=label
    )


LEGEND: tuple[Callable[[], Artist], ...] = (
    _line(BLUE, "-", "score"),
    _line(VERMILLION, STROKES[1], "threshold"),
    lambda: Patch(fc=_shade(0.5), lw=0, label="near a rater's mark"),
    _sign(GREEN, "-", GREEN, "right"),
    _sign(BLACK, STROKES[3], "white", "false"),
    lambda: Line2D([], [], color=BLACK, ls="", marker=MISSED, ms=4, mew=1.0, label="missed"),
)
"""Made anew for each figure, for an artist belongs to one."""
