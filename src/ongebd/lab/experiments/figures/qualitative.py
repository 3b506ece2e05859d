"""The figure of some videos: frames, annotators, and below them each method's curve and boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ongebd.common.text import printable, shortened
from ongebd.data.label_set import VideoLabels
from ongebd.errors import ConfigError, a_number
from ongebd.lab.evaluation.figure_style import (
    BLACK,
    BLUE,
    DASHED,
    DOTTED,
    GREEN,
    GRID,
    INCHES,
    SMALL,
    VERMILLION,
    Width,
    plain_axes,
    print_style,
)
from ongebd.lab.experiments.figures.judging import Judged, judge, tolerance_of
from ongebd.lab.experiments.figures.tracing import MethodTrace, frames_at
from ongebd.types import ImageU8

FRAMES: dict[Width, int] = {"page": 8, "column": 5}
LONGEST_NAME: dict[Width, int] = {"page": 56, "column": 22}
LEGEND_COLUMNS: dict[Width, int] = {"page": 6, "column": 3}
FRAME, RATER, PANEL, AROUND = 0.6, 0.07, 0.8, 0.75  # inches: heights, and all that is between and below
BETWEEN = 0.3  # inches between two scenes
NEAR = 0.26  # how dark the shade near a boundary of all annotators is
MARK = 0.93  # height of the boundaries' marks, as a share of a panel


def part_of(video: Path | str, known: float, start: float | None, end: float | None) -> tuple[float, float]:
    """The part to show, seconds; by default from 0 to `known`, the end of the labels or of the video.

    Raises:
        ConfigError: Nothing lies between.
    """
    first = 0.0 if start is None else a_number("start", start)
    last = known if end is None else min(a_number("end", end), known)
    if not 0 <= first < last:
        raise ConfigError(
            f"{printable(str(video))}: nothing to show from {first:g} to {last:g} s;"
            f" the labelled part goes from 0 to {known:g} s"
        )
    return first, last


class Scene(NamedTuple):
    """A video to show, its labels, and the traces of one or more methods; a file that can be read again."""

    video: Path | str
    labels: VideoLabels
    traces: Sequence[MethodTrace]


def qualitative(
    scenes: Sequence[Scene],
    *,
    width: Width = "page",
    tolerance: float | None = None,
    start: float | None = None,
    end: float | None = None,
) -> Figure:
    """Draw, scene below scene, frames, annotators and, for each method, score, threshold and boundaries.

    The shade behind a curve lies within the tolerance of an annotator's boundary; the darker, the more
    annotators. A boundary is right (filled) or false (open) by the official rule: against the annotator that
    the method matches best in the whole video. The counts above a panel are of the part it shows.

    Args:
        scenes: What to show.
        width: Of a column or of the page.
        tolerance: Seconds; None means 0.05 of a video's length.
        start: Start of the part to show, seconds; None means the beginning.
        end: Its end; None means that of the labels or of the video.

    Raises:
        ConfigError: The tolerance isn't above 0, or nothing of a video lies in the part.
        SourceError: A video can't be read.
    """
    heights = [
        [FRAME, max(0.16, RATER * len(labels.boundaries)), *[PANEL] * len(traces)]
        for _, labels, traces in scenes
    ]
    panels = sum(len(traces) for _, _, traces in scenes)
    size = INCHES[width], sum(map(sum, heights)) + 0.2 * panels + AROUND + BETWEEN * (len(scenes) - 1)
    with print_style():
        figure = Figure(figsize=size, facecolor="white", layout="constrained")
        grid = figure.subplots(sum(map(len, heights)), 1, height_ratios=[*chain(*heights)])
        shown, place = [], 0
        for scene, own in zip(scenes, heights, strict=True):
            rows = list(grid[place : place + len(own)])
            place += len(own)
            shown.append((rows[0], *_draw_scene(rows, scene, width, tolerance, start, end)))
        handles, names = grid[-1].get_legend_handles_labels()
        columns = LEGEND_COLUMNS[width]
        figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False)
        figure.draw_without_rendering()  # places the axes
        for axes, frames, middles in shown:
            _draw_frames(axes, frames, middles)
    return figure


def _draw_scene(
    rows: list[Axes],
    scene: Scene,
    width: Width,
    tolerance: float | None,
    start: float | None,
    end: float | None,
) -> tuple[list[ImageU8], list[float]]:
    """Draw all but the frames, which are returned with the moments that they show."""
    video, labels, traces = scene
    near = tolerance_of(labels, tolerance)
    known = min(labels.duration, *(trace.duration for trace in traces))
    first, last = part_of(video, known, start, end)
    middles = first + (last - first) * (np.arange(FRAMES[width]) + 0.5) / FRAMES[width]
    for axes in rows[1:]:
        axes.sharex(rows[0])
    for axes in rows[:-1]:
        axes.tick_params(labelbottom=False)
    rows[0].set_xlim(first, last)
    rows[0].set_axis_off()
    _draw_annotators(rows[1], labels, near)
    for axes, trace in zip(rows[2:], traces, strict=True):
        judged = judge(trace.boundaries, labels, near).between(first, last)
        name = shortened(trace.name, LONGEST_NAME[width])
        axes.set_title(f"{name}:  {judged}", loc="left", fontsize=SMALL + 1, pad=2)
        _draw_panel(axes, trace, judged, labels, near)
    rows[-1].set_xlabel("time (s)", labelpad=1)
    return frames_at(video, middles.tolist()), middles.tolist()


def _draw_frames(axes: Axes, frames: Sequence[ImageU8], middles: Sequence[float]) -> None:
    """Draw each frame as large as fits, its middle above the moment that it shows."""
    box = axes.get_window_extent()
    first, last = axes.get_xlim()
    for frame, middle in zip(frames, middles, strict=False):
        tall, wide = frame.shape[:2]
        scale = min(0.97 * box.width / len(frames) / wide, box.height / tall)
        across, up = scale * wide / box.width * (last - first) / 2, scale * tall / box.height / 2
        extent = (middle - across, middle + across, 0.5 - up, 0.5 + up)
        axes.imshow(frame, extent=extent, interpolation="antialiased", aspect="auto")
    axes.set_xlim(first, last)
    axes.set_ylim(0, 1)


def _draw_annotators(axes: Axes, labels: VideoLabels, tolerance: float) -> None:
    """Draw a row per annotator: a stroke for each boundary, in a bar as wide as the tolerance."""
    for row, times in enumerate(labels.boundaries):
        spans = [(time - tolerance, 2 * tolerance) for time in times]
        axes.broken_barh(spans, (row - 0.38, 0.76), fc=GRID, lw=0)
        axes.vlines(times, row - 0.45, row + 0.45, color=BLACK, lw=1.1)
    count = len(labels.boundaries)
    axes.set_ylim(count - 0.5, -0.5)
    axes.tick_params(left=False, labelleft=False, bottom=False)
    axes.spines[:].set_visible(False)
    name = "rater" if count == 1 else f"{count} raters"
    axes.set_ylabel(name, rotation="horizontal", ha="right", va="center", fontsize=SMALL, labelpad=2)


def _draw_panel(
    axes: Axes, trace: MethodTrace, judged: Judged, labels: VideoLabels, tolerance: float
) -> None:
    """Draw the annotators as shade, the curve, its threshold and the boundaries."""
    plain_axes(axes, grid=False)
    place = axes.get_xaxis_transform()
    time = np.where(np.diff(trace.time, prepend=-np.inf) < 0, np.nan, trace.time)  # no line back in time
    axes.plot(time, trace.score, color=BLUE, lw=1.0, zorder=4, label="score")
    axes.plot(time, trace.threshold, color=VERMILLION, lw=0.9, ls=DASHED, zorder=3, label="threshold")
    moments = np.linspace(*axes.get_xlim(), 2000)
    for number, times in enumerate(labels.boundaries):
        here = (np.abs(moments[:, None] - times) < tolerance).any(axis=1)
        style: dict[str, Any] = {"fc": BLACK, "alpha": NEAR / len(labels.boundaries), "lw": 0, "zorder": 0.5}
        label = "_" if number else "near a rater's mark"
        axes.fill_between(moments, 0, 1, where=here, transform=place, label=label, **style)
    for times, name, colour, stroke, face in (
        (judged.times[judged.right], "right", GREEN, "-", GREEN),
        (judged.times[~judged.right], "false", BLACK, DOTTED, "white"),
    ):
        axes.vlines(times, 0, MARK, transform=place, zorder=2, color=colour, ls=stroke, lw=0.9)
        heights = np.full(len(times), MARK)
        style = {"marker": "v", "s": 20, "fc": face, "ec": colour, "lw": 0.8, "zorder": 6}
        axes.scatter(times, heights, transform=place, label=name, **style)
    heights = np.full(len(judged.missed), MARK)
    style = {"marker": "x", "s": 14, "c": BLACK, "lw": 1.0, "zorder": 5}
    axes.scatter(judged.missed, heights, transform=place, label="missed", **style)
    _set_height(axes, trace)
    axes.set_ylabel(trace.unit, fontsize=SMALL, labelpad=2)
    axes.yaxis.set_major_locator(MaxNLocator(3))


def _set_height(axes: Axes, trace: MethodTrace) -> None:
    """Leave room for the curve, for all but the threshold's highest peaks, and for the marks above."""
    first, last = axes.get_xlim()
    shown = (trace.time >= first) & (trace.time <= last)
    score = trace.score[shown & np.isfinite(trace.score)]
    threshold = trace.threshold[shown & np.isfinite(trace.threshold)]
    usual = float(np.percentile(threshold, 98)) if len(threshold) else 0.0
    top = 1.3 * max(float(score.max(initial=0.0)), usual, 1e-3)
    axes.set_ylim(min(0.0, 1.1 * float(score.min(initial=0.0))), top)
