"""A picture of a whole run, for a slide: the score, its threshold, the boundaries and their first frames.

Imports matplotlib, so this module is imported only when a picture is wanted.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle
from matplotlib.patches import ConnectionPatch
from matplotlib.ticker import FuncFormatter, MultipleLocator

from ongebd.common.lettering import lettering
from ongebd.common.text import printable, public_name, shortened, spoken_name
from ongebd.detector.trace import Snapshot, pooled
from ongebd.output.text import clock
from ongebd.output.whole import Scene
from ongebd.output.writer import mark

SIZE = (16.0, 9.0)  # inches
DPI = 100
POINTS = 3000  # on the curve: two per pixel
MANY = 40  # boundaries

# Parts of the figure's width and height.
LEFT, RIGHT, BOTTOM = 0.06, 0.97, 0.15  # of the axes
FOOT, TALLEST, WIDEST = 0.685, 0.15, 0.125  # of the pictures
TOP, BARE = 0.625, 0.86  # of the axes, with pictures above them and without

# Colours that the colour-blind tell apart (Okabe and Ito); the lines also differ in their strokes.
ERROR, THRESHOLD, POSITIVE, ONSET, CENTRE = "#0072B2", "#D55E00", "#F0C244", "#009E73", "#1A1A1A"
COLD, BREAK, QUIET = "#EBEBEB", "#CC79A7", "#5A5A5A"

MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 240, 720, 1440)
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, *(60 * minutes for minutes in MINUTES))
"""Seconds between two ticks of the time axis."""


def png(scene: Scene) -> bytes:
    """A run as a picture of `SIZE` × `DPI` pixels, whatever the user's matplotlib settings are."""
    file = io.BytesIO()
    with lettering(14):
        draw(scene).savefig(file, format="png", dpi=DPI, metadata={"Title": mark(scene.run.header.source)})
    return file.getvalue()


def draw(scene: Scene) -> Figure:
    """The figure; its first axes have the curves."""
    figure = Figure(figsize=SIZE, dpi=DPI, facecolor="white")
    axes = figure.add_axes((LEFT, BOTTOM, RIGHT - LEFT, (TOP if scene.snapshots else BARE) - BOTTOM))
    _set_axes(axes, scene)
    _draw_curves(axes, scene)
    _draw_marks(axes, scene)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(
            loc="lower center",
            bbox_to_anchor=((LEFT + RIGHT) / 2, 0.005),
            bbox_transform=figure.transFigure,
            ncols=5,
            frameon=False,
            fontsize=12,
            borderpad=0.0,
            labelspacing=0.3,
            columnspacing=1.6,
        )
    _draw_title(figure, scene)
    _draw_pictures(figure, axes, scene.snapshots)
    return figure


def _set_axes(axes: Axes, scene: Scene) -> None:
    points = scene.points
    last = max(scene.run.duration, float(points["time"].max(initial=0.0))) or 1.0
    axes.set_xlim(0, last)
    thresholds = points["threshold"][points["ready"]]
    usual = float(np.percentile(thresholds, 98)) if len(thresholds) else 0.0
    axes.set_ylim(0, 1.12 * max(float(points["error"].max(initial=0.0)), usual, 0.01))
    axes.set_ylabel("score  (0 to 1)")
    axes.set_xlabel("time (s)" if last < 120 else "time (h:min:s)")
    axes.xaxis.set_major_locator(MultipleLocator(next((s for s in STEPS if last / s <= 12), last / 10)))
    if last >= 120:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: clock(value, digits=0)))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#E4E4E4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", pad=9)  # room for the triangles
    if not len(points):
        axes.text(0.5, 0.5, "no frames", transform=axes.transAxes, ha="center", color=QUIET, fontsize=20)


def _draw_curves(axes: Axes, scene: Scene) -> None:
    points = scene.points
    if not len(points):
        return
    drawn = pooled(points, -(-len(points) // POINTS))
    time = np.where(np.diff(drawn["time"], prepend=-np.inf) < 0, np.nan, drawn["time"])
    width, dot = 1.0 if len(drawn) > POINTS // 2 else 2.0, "o" if len(drawn) == 1 else ""
    axes.plot(time, drawn["error"], color=ERROR, lw=width, marker=dot, label="score", zorder=4)
    if drawn["ready"].any():
        threshold = np.where(drawn["ready"], drawn["threshold"], np.nan)
        axes.plot(time, threshold, color=THRESHOLD, lw=width, ls=(0, (4, 1.5)), label="threshold", zorder=3)
    _shade(axes, points["time"], points["positive"], POSITIVE, "above threshold")
    _shade(axes, points["time"], ~points["ready"], COLD, "not ready")


def _shade(
    axes: Axes, time: npt.NDArray[np.float64], mask: npt.NDArray[np.bool_], colour: str, label: str
) -> None:
    """Shade the full height over each run of the mask, and half a frame more on either side."""
    if not mask.any():
        return
    edges = np.concatenate([time[:1], (time[1:] + time[:-1]) / 2, time[-1:]])
    changes = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    spans = [(edges[a], max(edges[b] - edges[a], 0.0)) for a, b in changes.reshape(-1, 2)]
    place = axes.get_xaxis_transform()
    axes.broken_barh(spans, (0, 1), transform=place, fc=colour, ec=colour, lw=0.6, zorder=0.5, label=label)


def _draw_marks(axes: Axes, scene: Scene) -> None:
    """Mark onsets by triangles at the foot, centres by lines behind the curve."""
    place = axes.get_xaxis_transform()
    if scene.run.boundaries:
        same = scene.run.header.settings.get("max_run") == 0  # the onset is the centre
        onsets = [boundary.onset for boundary in scene.run.boundaries]
        axes.scatter(
            onsets,
            np.zeros(len(onsets)),
            s=60,
            c=ONSET,
            marker=MarkerStyle("^"),
            label="boundary" if same else "onset of a boundary",
            clip_on=False,
            zorder=5,
        )
        centres = [boundary.time for boundary in scene.run.boundaries]
        foot = 0.94 if len(centres) > MANY else 0.0  # short lines, so that they do not fill the picture
        label = "_" if same else "centre of a boundary"
        axes.vlines(centres, foot, 1, transform=place, color=CENTRE, lw=1.2, label=label, zorder=2)
    if scene.run.epochs:
        breaks = [epoch.time for epoch in scene.run.epochs]
        axes.vlines(breaks, 0, 1, transform=place, color=BREAK, lw=2, ls="-.", label="break in the source")


def _draw_title(figure: Figure, scene: Scene) -> None:
    header, settings = scene.run.header, scene.run.header.settings
    source = spoken_name(header.source)
    name = printable(source if "://" in source else Path(source).name or source)
    figure.text(LEFT, 0.945, shortened(name, 60), fontsize=24, fontweight="bold", va="center")
    found = f"{len(scene.run.boundaries)} {'boundary' if len(scene.run.boundaries) == 1 else 'boundaries'}"
    span = f"{scene.run.duration:.1f} s" if scene.run.duration < 120 else clock(scene.run.duration, digits=0)
    facts = [f"{found} in {span}", f"model {shortened(printable(public_name(header.model)), 40)}"]
    for key, form in (("sensitivity", "sensitivity {}"), ("tau", "τ {}"), ("fps", "{} frames/s")):
        if settings.get(key) is not None:
            facts.append(form.format(settings[key]))
    if not scene.run.complete:
        facts.append("stopped early")
    figure.text(LEFT, 0.9, "   ·   ".join(facts), fontsize=15, color=QUIET, va="center")


def _draw_pictures(figure: Figure, axes: Axes, snapshots: Sequence[Snapshot]) -> None:
    """Draw the pictures in a row, each tied to its boundary's centre on the time axis."""
    share = (RIGHT - LEFT) / max(1, len(snapshots))
    width = min(WIDEST, 0.94 * share)
    for place, shot in enumerate(snapshots):
        middle = LEFT + (place + 0.5) * share
        picture = figure.add_axes((middle - width / 2, FOOT, width, TALLEST), anchor="S")
        picture.imshow(shot.picture, interpolation="antialiased")
        picture.set(xticks=[], yticks=[])
        time = shot.boundary.time
        caption = f"{time:.2f} s" if axes.get_xlim()[1] < 120 else clock(time, digits=0)
        picture.set_title(caption, fontsize=12, pad=4)
        tie = ConnectionPatch(
            xyA=(middle, FOOT),
            coordsA=figure.transFigure,
            xyB=(time, 1.0),
            coordsB=axes.get_xaxis_transform(),
            color=CENTRE,
            linewidth=1.2,
        )
        figure.add_artist(tie)
