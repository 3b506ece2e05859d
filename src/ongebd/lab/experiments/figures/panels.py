"""The parts of a video's figure: the annotators' row, and a panel with a method's curve and boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ongebd.data.label_set import VideoLabels
from ongebd.lab.experiments.figures.judging import Judged, agreement
from ongebd.lab.experiments.figures.style import (
    BLACK,
    BLUE,
    DASHED,
    DOTTED,
    GREEN,
    SMALL,
    VERMILLION,
    plain_axes,
)
from ongebd.lab.experiments.figures.tracing import Curve
from ongebd.output import clock

RIGHT: dict[str, Any] = {"color": GREEN, "ls": "-", "lw": 0.9}
FALSE: dict[str, Any] = {"color": BLACK, "ls": DOTTED, "lw": 0.9}
MARKED_HEIGHT = 0.93  # of the boundaries' marks, as a share of a panel


def draw_annotators(axes: Axes, labels: VideoLabels, tolerance: float) -> None:
    """Draw a row per annotator: a stroke for each boundary, in a bar as wide as the tolerance."""
    for row, times in enumerate(labels.boundaries):
        spans = [(time - tolerance, 2 * tolerance) for time in times]
        axes.broken_barh(spans, (row - 0.38, 0.76), fc=_grey(0.5), lw=0)
        axes.vlines(times, row - 0.45, row + 0.45, color=BLACK, lw=1.1)
    count = len(labels.boundaries)
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_yticks([])
    axes.set_xticks([])
    axes.spines[:].set_visible(False)
    name = "rater" if count == 1 else f"{count} raters"
    axes.text(-0.008, 0.5, name, transform=axes.transAxes, ha="right", va="center", fontsize=SMALL)


def draw_panel(
    axes: Axes, curve: Curve, unit: str, judged: Judged, labels: VideoLabels, tolerance: float
) -> None:
    """Draw agreement as shade, the curve, its threshold and the boundaries."""
    plain_axes(axes, grid=False)
    place = axes.get_xaxis_transform()
    edges, shares = agreement(labels, tolerance)
    for share in np.unique(shares[shares > 0]):
        spans = [
            (left, right - left)
            for left, right, here in zip(edges[:-1], edges[1:], shares, strict=True)
            if here == share
        ]
        axes.broken_barh(spans, (0, 1), transform=place, fc=_grey(share), lw=0, zorder=0.5)
    time = np.where(np.diff(curve.time, prepend=-np.inf) < 0, np.nan, curve.time)  # no line back in time
    axes.plot(time, curve.score, color=BLUE, lw=1.0, zorder=4)
    axes.plot(time, curve.threshold, color=VERMILLION, lw=0.9, ls=DASHED, zorder=3)
    _set_height(axes, curve)
    for times, style, face in (
        (judged.times[judged.right], RIGHT, GREEN),
        (judged.times[~judged.right], FALSE, "white"),
    ):
        axes.vlines(times, 0, 0.92, transform=place, zorder=2, **style)
        heights = np.full(len(times), MARKED_HEIGHT)
        colours: Any = {"facecolors": face, "edgecolors": style["color"]}
        axes.scatter(times, heights, transform=place, s=20, marker="v", lw=0.8, zorder=6, **colours)
    if len(judged.missed):
        heights = np.full(len(judged.missed), MARKED_HEIGHT)
        axes.scatter(judged.missed, heights, transform=place, s=14, c=BLACK, marker="x", lw=1.0, zorder=5)
    axes.set_ylabel(unit, fontsize=SMALL, labelpad=2)
    axes.yaxis.set_major_locator(MaxNLocator(3))


def draw_time(axes: Axes, *, last: bool) -> None:
    """Draw the time axis; only that of the last panel has numbers."""
    axes.xaxis.set_major_locator(MaxNLocator(10, steps=[1, 2, 5, 10]))
    axes.tick_params(axis="x", labelbottom=last)
    if last and axes.get_xlim()[1] < 120:
        axes.set_xlabel("time (s)", labelpad=1)
    elif last:
        axes.set_xlabel("time (min:s)", labelpad=1)
        axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 1.5, 3, 6, 10]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _minutes(value)))


def legend_handles() -> Sequence[Artist]:
    """New entries of the legend; an artist belongs to one figure."""
    signs: dict[str, Any] = {"marker": "v", "ms": 4, "mew": 0.8}
    return (
        Line2D([], [], color=BLUE, lw=1.1, label="score"),
        Line2D([], [], color=VERMILLION, lw=1.1, ls=DASHED, label="threshold"),
        Patch(fc=_grey(0.5), lw=0, label="near a rater's mark"),
        Line2D([], [], mfc=GREEN, label="right", **RIGHT, **signs),
        Line2D([], [], mfc="white", label="false", **FALSE, **signs),
        Line2D([], [], color=BLACK, ls="", marker="x", ms=4, mew=1.0, label="missed"),
    )


def _minutes(seconds: float) -> str:
    hours, minutes, rest = clock(seconds, digits=0).split(":")
    return f"{60 * int(hours) + int(minutes)}:{rest}"


def _grey(share: float) -> tuple[float, float, float]:
    """White where no annotator has a boundary, darkest where all have one."""
    return (1 - 0.26 * float(share),) * 3


def _set_height(axes: Axes, curve: Curve) -> None:
    """Leave room for the curve, for all but the threshold's highest peaks, and for the marks above."""
    score = curve.score[np.isfinite(curve.score)]
    threshold = curve.threshold[np.isfinite(curve.threshold)]
    usual = float(np.percentile(threshold, 98)) if len(threshold) else 0.0
    top = 1.3 * max(float(score.max(initial=0.0)), usual, 1e-3)
    axes.set_ylim(min(0.0, 1.1 * float(score.min(initial=0.0))), top)
