"""Draws a run with matplotlib. Imported only when a picture is wanted."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle
from matplotlib.patches import ConnectionPatch
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, MultipleLocator

from ongebd.common.lettering import lettering
from ongebd.common.text import printable, public_name, shortened, spoken_name
from ongebd.output.picture import Snapshot
from ongebd.output.text import clock
from ongebd.output.trace import Curves, Flags, Floats
from ongebd.output.writer import RunEnd, RunHeader
from ongebd.types import Boundary, Epoch

SIZE = (16.0, 9.0)  # inches
ASPECT = SIZE[0] / SIZE[1]
DPI = 100
POINTS = 3000  # on the curve: two per pixel
MANY = 40  # boundaries

# Parts of the figure's width and height.
LEFT, RIGHT, BOTTOM = 0.06, 0.97, 0.15  # of the axes
TOP = 0.835  # of the pictures
TALLEST, WIDEST = 0.15, 0.125  # picture
GAP, TIES = 0.008, 0.06  # between two pictures; between pictures and axes
BARE = 0.86  # top of the axes if there are no pictures

# Colours that the colour-blind tell apart (Okabe and Ito); the lines also differ in their strokes.
ERROR, THRESHOLD, POSITIVE, ONSET, CENTRE = "#0072B2", "#D55E00", "#F0C244", "#009E73", "#1A1A1A"
COLD, BREAK, QUIET = "#EBEBEB", "#CC79A7", "#5A5A5A"
NOT_COUNTED = "#FBEBC2"

MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 240, 720, 1440)
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, *(60 * minutes for minutes in MINUTES))
"""Seconds between two ticks of the time axis."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that a picture shows of a run."""

    header: RunHeader
    end: RunEnd
    curves: Curves
    boundaries: Sequence[Boundary]
    epochs: Sequence[Epoch]
    snapshots: Sequence[Snapshot]


def render(scene: Scene) -> bytes:
    """Draw a run into a PNG of `SIZE` × `DPI` pixels, whatever the user's matplotlib settings are."""
    with lettering(14):
        figure = draw(scene)
        png = io.BytesIO()
        FigureCanvasAgg(figure)
        figure.savefig(png, format="png", dpi=DPI)
    return png.getvalue()


def draw(scene: Scene) -> Figure:
    """The figure; its first axes have the curves."""
    figure = Figure(figsize=SIZE, dpi=DPI, facecolor="white")
    width, height = _picture_size(scene.snapshots)
    top = TOP - height - TIES if scene.snapshots else BARE
    axes = figure.add_axes((LEFT, BOTTOM, RIGHT - LEFT, top - BOTTOM))
    _set_axes(axes, scene)
    _draw_curves(axes, scene)
    _draw_marks(axes, scene)
    _draw_legend(axes)
    _draw_title(figure, scene)
    _draw_pictures(figure, axes, scene.snapshots, width, height)
    return figure


def _words(header: RunHeader) -> dict[str, str]:
    """The names of the curve, the threshold and the shades, which depend on the head that decided."""
    head = header.settings.get("head") or "obd"
    words = {
        "score": "score",
        "threshold": "threshold",
        "positive": "score above threshold",
        "skipped": "above it, but too soon after a boundary (min-gap, max-run)",
        "not ready": "no score",
    }
    if head == "obd":
        words |= {"score": "prediction error", "threshold": "threshold: mean + τσ"}
        words |= {"positive": "error above threshold", "not ready": "cold start"}
    elif head == "hysteresis":
        del words["skipped"]
        words["score"] = "boundary score"
        words["positive"] = f"above it, until below {header.settings.get('rearm')} of it"
    return words


def _set_axes(axes: Axes, scene: Scene) -> None:
    curves = scene.curves
    last = max(scene.end.duration, float(curves.time.max(initial=0.0))) or 1.0
    axes.set_xlim(0, last)
    thresholds = curves.threshold[curves.ready]
    usual = float(np.percentile(thresholds, 98)) if len(thresholds) else 0.0
    axes.set_ylim(0, 1.12 * max(float(curves.error.max(initial=0.0)), usual, 0.01))
    axes.set_ylabel(f"{_words(scene.header)['score']}  (0 to 1)")
    _set_time_axis(axes, last)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#E4E4E4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", pad=9)  # room for the triangles
    if not len(curves):
        axes.text(0.5, 0.5, "no frames", transform=axes.transAxes, ha="center", color=QUIET, fontsize=20)


def _set_time_axis(axes: Axes, last: float) -> None:
    longest = STEPS[-1] * max(1, round(last / STEPS[-1] / 10))
    axes.xaxis.set_major_locator(MultipleLocator(next((s for s in STEPS if last / s <= 12), longest)))
    if last < 120:
        axes.set_xlabel("time (s)")
        return
    minutes = last < 3600
    axes.set_xlabel("time (min:s)" if minutes else "time (h:min)")

    def label(value: float, _position: object) -> str:
        text = clock(value, digits=0)
        return text[2:].removeprefix("0") if minutes else text[:-3]

    axes.xaxis.set_major_formatter(FuncFormatter(label))


def _draw_curves(axes: Axes, scene: Scene) -> None:
    curves, words = scene.curves, _words(scene.header)
    if not len(curves):
        return
    drawn = curves.pooled(-(-len(curves) // POINTS))
    time = np.where(np.diff(drawn.time, prepend=-np.inf) < 0, np.nan, drawn.time)  # no line back in time
    dense = len(drawn) > POINTS // 2
    width = 1.0 if dense else 2.2
    dot = "o" if len(drawn) == 1 else ""
    axes.plot(time, drawn.error, color=ERROR, lw=width, marker=dot, label=words["score"], zorder=4)
    if drawn.ready.any():
        threshold = np.where(drawn.ready, drawn.threshold, np.nan)
        width = 0.9 * (1.0 if dense else 1.5 if len(drawn) > 600 else 2.2)
        dashes = "-" if dense else (0, (4, 1.5))
        axes.plot(time, threshold, color=THRESHOLD, lw=width, ls=dashes, label=words["threshold"], zorder=3)
    counted = curves.positive
    if "skipped" in words:
        counted = counted & _within_boundaries(curves.time, scene.boundaries)
    _shade(axes, curves, counted, POSITIVE, words["positive"])
    if "skipped" in words:
        _shade(axes, curves, curves.positive & ~counted, NOT_COUNTED, words["skipped"])
    _shade(axes, curves, ~curves.ready, COLD, words["not ready"])


def _within_boundaries(times: Floats, boundaries: Sequence[Boundary]) -> Flags:
    """Which times lie in a boundary, from its first positive frame to its last."""
    slack = 1e-6
    first = np.array([boundary.onset for boundary in boundaries], np.float64)
    centre = np.array([boundary.time for boundary in boundaries], np.float64)
    changes = np.zeros(len(times) + 1, np.int64)
    np.add.at(changes, np.searchsorted(times, first - slack), 1)
    np.add.at(changes, np.searchsorted(times, 2 * centre - first + slack), -1)  # the centre is midway
    inside: Flags = changes.cumsum()[:-1] > 0
    return inside


def _shade(axes: Axes, curves: Curves, mask: Flags, colour: str, label: str) -> None:
    """Shade the full height over each run of the mask, and half a frame more on either side."""
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
    many = len(scene.boundaries) > MANY  # short lines, so that they do not fill the picture
    same = scene.header.settings.get("max_run") == 0  # the onset is the centre
    place = axes.get_xaxis_transform()
    if scene.boundaries:
        onsets = [boundary.onset for boundary in scene.boundaries]
        centres = [boundary.time for boundary in scene.boundaries]
        if not many and not same:
            axes.vlines(onsets, 0, 1, transform=place, color=ONSET, lw=1.4, ls=(0, (2, 2)), zorder=1.5)
        axes.scatter(
            onsets,
            np.zeros(len(onsets)),
            s=25 if many else 90,
            c=ONSET,
            marker=MarkerStyle("^"),
            ec="white",
            lw=0.4,
            label="boundary" if same else "onset of a boundary",
            clip_on=False,
            zorder=5,
        )
        foot, width = (0.94, 1.0) if many else (0.0, 1.4)
        label = "_" if same else "centre of a boundary"
        axes.vlines(centres, foot, 1, transform=place, color=CENTRE, lw=width, label=label, zorder=2)
    if scene.epochs:
        breaks = [epoch.time for epoch in scene.epochs]
        axes.vlines(breaks, 0, 1, transform=place, color=BREAK, lw=2, ls="-.", label="break in the source")


def _draw_legend(axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    # One row holds six short labels; two rows fit under the axis.
    one_row = len(handles) < 7 and not any(len(label) > 40 for label in labels)
    axes.legend(
        handles,
        labels,
        loc="lower center",
        bbox_to_anchor=((LEFT + RIGHT) / 2, 0.005),
        bbox_transform=axes.figure.transFigure,
        ncols=len(handles) if one_row else 4,
        frameon=False,
        fontsize=13 if one_row or len(handles) <= 4 else 12,
        borderpad=0.0,
        labelspacing=0.3,
        columnspacing=1.6,
        handlelength=1.8,
    )


def _draw_title(figure: Figure, scene: Scene) -> None:
    header, end, settings = scene.header, scene.end, scene.header.settings
    source = spoken_name(header.source)
    name = printable(source if "://" in source else Path(source).name or source)
    _fit(figure.text(LEFT, 0.945, shortened(name, 70), fontsize=24, fontweight="bold", va="center"))
    found = f"{end.boundaries} {'boundary' if end.boundaries == 1 else 'boundaries'}"
    span = f"{end.duration:.1f} s" if end.duration < 120 else clock(end.duration, digits=0)
    facts = [f"{found} in {span}", f"model {shortened(printable(public_name(header.model)), 40)}"]
    for key, form in (("sensitivity", "sensitivity {}"), ("tau", "τ {}"), ("fps", "{} frames/s")):
        if settings.get(key) is not None:
            facts.append(form.format(settings[key]))
    if not end.complete:
        facts.append("stopped early")
    if shown := len(scene.snapshots):
        which = f" of the {shown} strongest" if shown < len(scene.boundaries) else ""
        facts.append(f"pictures: onsets{which}")
    _fit(figure.text(LEFT, 0.9, "   ·   ".join(facts), fontsize=15, color=QUIET, va="center"))


def _fit(text: Text) -> None:
    """Make a text smaller until it fits between the margins."""
    room = 0.95 * (RIGHT - LEFT) * SIZE[0] * DPI  # letters do not shrink in quite the same ratio
    width = text.get_window_extent().width
    if width > room:
        text.set_fontsize(float(text.get_fontsize()) * room / width)


def _picture_size(snapshots: Sequence[Snapshot]) -> tuple[float, float]:
    """The largest width and height of a picture above the curve, as parts of the figure's."""
    if not snapshots:
        return 0.0, 0.0
    shapes = [shot.picture.shape[0] / shot.picture.shape[1] for shot in snapshots]  # height / width
    share = (RIGHT - LEFT + GAP) / len(snapshots) - GAP
    width = min(TALLEST / min(shapes) / ASPECT, WIDEST, share)
    return width, min(width * ASPECT * max(shapes), TALLEST)


def _draw_pictures(
    figure: Figure, axes: Axes, snapshots: Sequence[Snapshot], widest: float, tallest: float
) -> None:
    """Draw the pictures in a row, each tied to its boundary's centre on the time axis and near above it."""
    if not snapshots:
        return
    start, last = axes.get_xlim()
    wanted = [LEFT + (RIGHT - LEFT) * (shot.boundary.time - start) / (last - start) for shot in snapshots]
    middles = spread(wanted, widest + GAP, LEFT + widest / 2, RIGHT - widest / 2)
    foot = TOP - tallest
    for shot, middle in zip(snapshots, middles.tolist(), strict=True):
        shape = shot.picture.shape[0] / shot.picture.shape[1]
        height = min(widest * ASPECT * shape, tallest)
        width = height / shape / ASPECT
        picture = figure.add_axes((middle - width / 2, foot, width, height))
        picture.imshow(shot.picture, interpolation="antialiased", aspect="auto")
        picture.set(xticks=[], yticks=[])
        picture.spines[:].set(color=CENTRE, linewidth=1.2)
        time = shot.boundary.time
        figure.text(
            middle, foot + height + 0.008, _caption(time, last), ha="center", va="bottom", fontsize=12
        )
        tie = ConnectionPatch(
            xyA=(middle, foot),
            coordsA=figure.transFigure,
            xyB=(time, 1.0),
            coordsB=axes.get_xaxis_transform(),
            color=CENTRE,
            linewidth=1.2,
        )
        figure.add_artist(tie)


def _caption(time: float, last: float) -> str:
    if last < 120:
        return f"{time:.2f} s"
    if last < 3600:
        return clock(time, digits=1).removeprefix("0:").removeprefix("0")
    return clock(time, digits=0)


def spread(wanted: Sequence[float], distance: float, low: float, high: float) -> Floats:
    """Move sorted places apart to at least `distance`, within [low, high], each as little as possible.

    The least sum of squared moves is an isotonic regression of `wanted[i] − i·distance`: neighbours that
    collide share the mean of what they want.

    Example:
        >>> spread([1.0, 5.0, 5.0, 5.2], 1.0, 0.0, 6.0).round(2).tolist()
        [1.0, 4.0, 5.0, 6.0]
    """
    steps = np.arange(len(wanted)) * distance
    blocks: list[tuple[float, int]] = []  # mean and size
    for want in np.asarray(wanted, dtype=np.float64) - steps:
        mean, size = float(want), 1
        while blocks and blocks[-1][0] > mean:
            before, count = blocks.pop()
            mean, size = (mean * size + before * count) / (size + count), size + count
        blocks.append((mean, size))
    fitted = np.concatenate([np.full(size, mean) for mean, size in blocks])
    placed: Floats = np.clip(fitted, low, max(low, high - steps[-1])) + steps
    return placed
