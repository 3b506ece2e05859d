"""A picture of a whole run, for a slide: the score, its threshold, the boundaries and their first frames.

Imports matplotlib, so this module is imported only when a picture is wanted.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle
from matplotlib.patches import ConnectionPatch
from matplotlib.ticker import FuncFormatter, MultipleLocator

from ongebd.common.lettering import lettering
from ongebd.common.text import printable, public_name, shortened, spoken_name
from ongebd.detector.segments import strength
from ongebd.detector.trace import Points, Snapshot, pooled
from ongebd.output.text import clock
from ongebd.output.whole import Scene
from ongebd.output.writer import mark

WIDTH, HEIGHT, DPI = 16.0, 9.0, 100  # inches; of a picture of one row
ROW, ROWS = 3.6, 8  # inches of a row where there are several, and the most of them
LEFT, RIGHT, HEAD, LEGEND, FOOT = 0.96, 15.52, 1.1, 0.55, 0.7  # inches: edges, title, legend, below the axes
WIDEST, GAP = 2.0, 0.5  # inches: of a picture, and between it and its axes
POINTS = 3000  # on the curve: two per pixel
MANY, PICTURES = 40, 9  # boundaries and pictures of a row

# Colours that the colour-blind tell apart (Okabe and Ito); the lines also differ in their strokes.
ERROR, THRESHOLD, POSITIVE, ONSET, CENTRE = "#0072B2", "#D55E00", "#F0C244", "#009E73", "#1A1A1A"
COLD, BREAK, QUIET = "#EBEBEB", "#CC79A7", "#5A5A5A"

MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 240, 720, 1440)
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, *(60 * minutes for minutes in MINUTES))
"""Seconds between two ticks of the time axis."""


def png(scene: Scene) -> bytes:
    """A run in rows of a minute, or of more in a long one, whatever the user's matplotlib settings are."""
    file = io.BytesIO()
    with lettering(14):
        draw(scene).savefig(file, format="png", dpi=DPI, metadata={"Title": mark(scene.run.header.source)})
    return file.getvalue()


def draw(scene: Scene) -> Figure:
    """The figure; its first axes have the curves of the first row."""
    points, start = scene.points, float(scene.run.header.settings.get("start") or 0)
    last = max(scene.run.duration, float(points["time"].max(initial=0.0)), start + 0.01)
    minutes = ceil((last - start) / 60 - 1e-6)
    length = last - start if minutes <= 1 else 60.0 * ceil(minutes / ROWS)
    count = ceil((last - start) / length - 1e-6)
    height = HEIGHT if count == 1 else HEAD + LEGEND + ROW * count
    figure = Figure(figsize=(WIDTH, height), dpi=DPI, facecolor="white")
    named: dict[str, Any] = {}
    for number in range(count):
        begin = start + number * length
        row = (height - LEGEND - HEAD) / count
        foot = height - HEAD - (number + 1) * row + FOOT
        shots = [one for one in scene.snapshots if begin <= one.boundary.time < begin + length]
        shots = sorted(shots, key=lambda shot: -strength(shot.boundary))[:PICTURES]
        tall = 0.19 * row if count == 1 else 0.28 * row
        top = foot + row - FOOT - (tall + GAP if scene.snapshots else 0.1) - 0.3
        place = (LEFT / WIDTH, foot / height, (RIGHT - LEFT) / WIDTH, (top - foot) / height)
        axes = figure.add_axes(place)
        _set_axes(axes, scene, begin, begin + length, last)
        _draw_curves(axes, points[(points["time"] >= begin) & (points["time"] <= begin + length)])
        _draw_marks(axes, scene, begin, begin + length)
        shots.sort(key=lambda shot: shot.boundary.time)
        _draw_pictures(figure, axes, shots, top + GAP, tall, "{:.2f} s" if last < 120 else "")
        handles, labels = axes.get_legend_handles_labels()
        named |= {label: handle for handle, label in zip(handles, labels, strict=True) if label not in named}
    if named:
        where: dict[str, Any] = {
            "loc": "lower center",
            "bbox_to_anchor": (0.5, 0),
            "ncols": 5,
            "fontsize": 12,
        }
        figure.legend(**where, handles=list(named.values()), labels=list(named), frameon=False)
    _draw_title(figure, scene)
    return figure


def _set_axes(axes: Axes, scene: Scene, begin: float, end: float, last: float) -> None:
    points = scene.points
    axes.set_xlim(begin, end)
    thresholds = points["threshold"][points["ready"]]
    usual = float(np.percentile(thresholds, 98)) if len(thresholds) else 0.0
    axes.set_ylim(0, 1.12 * max(float(points["error"].max(initial=0.0)), usual, 0.01))
    axes.set_ylabel("score")
    length = end - begin
    axes.xaxis.set_major_locator(MultipleLocator(next((s for s in STEPS if length / s <= 12), length / 10)))
    form = "{:g} s".format if last < 120 else partial(clock, digits=0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: form(round(value, 6))))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#E4E4E4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", pad=9)  # room for the triangles
    if not len(points):
        axes.text(0.5, 0.5, "no frames", transform=axes.transAxes, ha="center", color=QUIET, fontsize=20)


def _draw_curves(axes: Axes, points: Points) -> None:
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


def _draw_marks(axes: Axes, scene: Scene, begin: float, end: float) -> None:
    """Mark onsets by triangles at the foot, centres by lines behind the curve."""
    place = axes.get_xaxis_transform()
    same = scene.run.header.settings.get("max_run") == 0  # the onset is the centre
    if onsets := [one.onset for one in scene.run.boundaries if begin <= one.onset <= end]:
        label, size = "boundary" if same else "onset of a boundary", 60
        triangle: dict[str, Any] = {"marker": MarkerStyle("^"), "c": ONSET, "clip_on": False, "zorder": 5}
        axes.scatter(onsets, np.zeros(len(onsets)), s=size, label=label, **triangle)
    if centres := [one.time for one in scene.run.boundaries if begin <= one.time <= end]:
        foot = 0.94 if len(centres) > MANY else 0.0  # short lines, so that they do not fill the picture
        label = "_" if same else "centre of a boundary"
        axes.vlines(centres, foot, 1, transform=place, color=CENTRE, lw=1.2, label=label, zorder=2)
    if breaks := [one.time for one in scene.run.epochs if begin <= one.time <= end]:
        axes.vlines(breaks, 0, 1, transform=place, color=BREAK, lw=2, ls="-.", label="break in the source")


def _draw_title(figure: Figure, scene: Scene) -> None:
    header, settings = scene.run.header, scene.run.header.settings
    source = spoken_name(header.source)
    name = printable(source if "://" in source else Path(source).name or source)
    high = figure.get_size_inches()[1]
    where: dict[str, Any] = {"x": LEFT / WIDTH, "va": "center"}
    figure.text(y=1 - 0.5 / high, s=shortened(name, 60), fontsize=24, fontweight="bold", **where)
    found = f"{len(scene.run.boundaries)} {'boundary' if len(scene.run.boundaries) == 1 else 'boundaries'}"
    span = f"{scene.run.duration:.1f} s" if scene.run.duration < 120 else clock(scene.run.duration, digits=0)
    facts = [f"{found} in {span}", f"model {shortened(printable(public_name(header.model)), 40)}"]
    for key, form in (("sensitivity", "sensitivity {}"), ("tau", "τ {}"), ("fps", "{} frames/s")):
        if settings.get(key) is not None:
            facts.append(form.format(settings[key]))
    if not scene.run.complete:
        facts.append("stopped early")
    figure.text(y=1 - 0.9 / high, s="   ·   ".join(facts), fontsize=15, color=QUIET, **where)


def _draw_pictures(
    figure: Figure, axes: Axes, shots: Sequence[Snapshot], foot: float, tall: float, form: str
) -> None:
    """Draw the pictures in a row, each tied to its boundary's centre on the time axis."""
    wide, high = figure.get_size_inches()
    share = (RIGHT - LEFT) / PICTURES
    width = min(WIDEST, 0.94 * share)
    first = (LEFT + RIGHT - share * len(shots)) / 2
    for place, shot in enumerate(shots):
        middle = first + (place + 0.5) * share
        where = ((middle - width / 2) / wide, foot / high, width / wide, tall / high)
        picture = figure.add_axes(where, anchor="S")
        picture.imshow(shot.picture, interpolation="antialiased")
        picture.set(xticks=[], yticks=[])
        time = shot.boundary.time
        picture.set_title(form.format(time) or clock(time, digits=1), fontsize=12, pad=4)
        ends = (time, 1.0), (middle / wide, foot / high), axes.get_xaxis_transform(), figure.transFigure
        figure.add_artist(ConnectionPatch(*ends, color=CENTRE, linewidth=1.2))
