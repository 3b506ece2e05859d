"""The error histograms: errors at boundaries against those elsewhere, a panel for each model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ongebd.common.text import printable, shortened
from ongebd.data.numbers import FloatArray
from ongebd.errors import ConfigError
from ongebd.lab.experiments.figures.style import (
    BLUE,
    LETTERS,
    SMALL,
    STROKES,
    VERMILLION,
    Picture,
    Width,
    inches,
    plain_axes,
    printing,
)

BINS = 500
"""Of a histogram of errors from 0 to 1."""
BARS = 40
"""Drawn, at most."""
PANEL, NUMBERS, FRAME = 1.05, 0.1, 0.5  # inches: a panel; the numbers under it; what stands under the last


@dataclass(frozen=True, slots=True, eq=False)
class ErrorHistogram:
    """The errors of one model on frames of two kinds.

    Attributes:
        name: The model's.
        edges: Of the bins, ascending, shape (B + 1,).
        boundary: Frames at boundaries in each bin, shape (B,).
        elsewhere: All others, shape (B,).
        mean_boundary: Mean error at boundaries; NaN where there is none. Likewise the next.
        mean_elsewhere: Of all others.
        above: The share of pairs, one frame of each kind, in which that at a boundary has the larger error,
            ties counted half (the area under the ROC curve); None where that is not known.
    """

    name: str
    edges: FloatArray
    boundary: FloatArray
    elsewhere: FloatArray
    mean_boundary: float
    mean_elsewhere: float
    above: float | None = None

    def __post_init__(self) -> None:
        bins = len(self.edges) - 1
        if bins < 1 or (np.diff(self.edges) <= 0).any():
            raise ConfigError(f"{self.name}: the edges of the bins must ascend")
        if len(self.boundary) != bins or len(self.elsewhere) != bins:
            raise ConfigError(
                f"{self.name}: {bins} bins, but {len(self.boundary)} and {len(self.elsewhere)} counts"
            )


def errors_of(
    name: str, errors: FloatArray, at_boundary: npt.NDArray[np.bool_], edges: FloatArray | None = None
) -> ErrorHistogram:
    """The histogram of single errors.

    Args:
        name: The model's.
        errors: Of all frames, shape (T,); NaN where there is none, which is left out.
        at_boundary: Which of them count as boundaries, shape (T,).
        edges: Of the bins; None takes `BINS` from 0 to 1, or to the largest error where that is above 1.

    Raises:
        ConfigError: The shapes differ.

    Examples:
        >>> found = errors_of("model", np.array([0.1, 0.2, 0.9, np.nan]), np.array([0, 1, 1, 0]) > 0)
        >>> float(found.boundary.sum()), found.above
        (2.0, 1.0)
    """
    if errors.shape != at_boundary.shape or errors.ndim != 1:
        raise ConfigError(f"{name}: errors of shape {errors.shape} for frames of shape {at_boundary.shape}")
    known = np.isfinite(errors)
    yes, no = errors[known & at_boundary], errors[known & ~at_boundary]
    if edges is None:
        edges = np.linspace(0.0, max(1.0, float(errors[known].max(initial=0.0))), BINS + 1)
    return ErrorHistogram(
        name,
        edges,
        np.histogram(yes, edges)[0].astype(np.float64),
        np.histogram(no, edges)[0].astype(np.float64),
        float(yes.mean()) if len(yes) else float("nan"),
        float(no.mean()) if len(no) else float("nan"),
        _share_above(yes, no),
    )


def _share_above(yes: FloatArray, no: FloatArray) -> float | None:
    if not len(yes) or not len(no):
        return None
    no = np.sort(no)
    below, not_above = (np.searchsorted(no, yes, side=side).sum() for side in ("left", "right"))
    return float(below + not_above) / 2 / len(yes) / len(no)


def error_histograms(
    models: Sequence[ErrorHistogram],
    *,
    width: Width = "column",
    score: str = "prediction error ε",
    one_scale: bool = True,
) -> Picture:
    """A panel for each model: the share of the frames of each kind that have an error.

    The axis ends where a hundredth of the frames of each kind, at most, lies beyond. Dashed and dotted lines
    are the means, of all frames.

    Args:
        models: From top to bottom.
        width: Of a column (3.25 inches) or of the page (6.875).
        score: What the x axis is called.
        one_scale: One x axis for all, so that panels compare; else each its own, for scores of other kinds.

    Raises:
        ConfigError: There is no model, or no such width.
    """
    if not models:
        raise ConfigError("a figure of errors needs a model")
    across, tall = inches(width), (PANEL + (0.0 if one_scale else NUMBERS)) * len(models) + FRAME
    reaches = [_reach(model) for model in models]
    with printing():
        figure = Figure(figsize=(across, tall), facecolor="white", layout="constrained")
        panels = figure.subplots(len(models), 1, squeeze=False, sharex=one_scale)[:, 0]
        for axes, model, reach in zip(panels, models, reaches, strict=True):
            shown = max(reaches) if one_scale else reach
            _draw(axes, model, shown, 60 if width == "page" else 24)
            axes.set_xlim(0, shown)
        panels[-1].set_xlabel(score, labelpad=1)
        figure.supylabel("share of the frames of a kind", fontsize=LETTERS)
        figure.legend(
            handles=[
                Patch(fc=_pale(BLUE), ec=BLUE, label="elsewhere"),
                Patch(fc="none", ec=VERMILLION, hatch="//////", label="at a boundary"),
            ],
            loc="outside lower center",
            ncols=2,
            frameon=False,
            borderpad=0.1,
            handlelength=1.9,
        )
        figure.draw_without_rendering()
    return Picture(figure)


def _draw(axes: Axes, model: ErrorHistogram, reach: float, longest: int) -> None:
    plain_axes(axes)
    edges, boundary, elsewhere = _merged(model, reach)
    parts = [counts / max(1.0, counts.sum()) for counts in (elsewhere, boundary)]
    axes.stairs(parts[0], edges, fill=True, fc=_pale(BLUE), ec=BLUE, lw=0.7, zorder=2)
    axes.stairs(parts[1], edges, fill=True, fc="none", ec=VERMILLION, hatch="//////", lw=0.9, zorder=3)
    for mean, colour, stroke in (
        (model.mean_elsewhere, BLUE, STROKES[1]),
        (model.mean_boundary, VERMILLION, STROKES[3]),
    ):
        if np.isfinite(mean):
            axes.axvline(mean, color=colour, ls=stroke, lw=0.9, zorder=4)
    axes.set_ylim(0, 1.12 * max(0.01, *(float(part.max()) for part in parts)))
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    name = shortened(printable(model.name), longest)
    axes.set_title(name, loc="left", fontsize=LETTERS, pad=19)
    _write_facts(axes, model)


def _write_facts(axes: Axes, model: ErrorHistogram) -> None:
    """Two lines between a panel and its title: above the bars, whatever these are like."""
    kinds = (
        ("elsewhere", model.elsewhere, model.mean_elsewhere),
        ("boundary", model.boundary, model.mean_boundary),
    )
    left = "\n".join(
        f"{name}: {int(counts.sum()):,} frames, mean {mean:.3f}" if np.isfinite(mean) else f"{name}: none"
        for name, counts, mean in kinds
    )
    right = "" if model.above is None else f"boundary larger in\n{100 * model.above:.1f} % of pairs"
    for words, place, side in ((left, 0, "left"), (right, 1, "right")):
        text = axes.annotate(
            words,
            (place, 1),
            (0, 3),
            xycoords="axes fraction",
            textcoords="offset points",
            ha=side,
            fontsize=SMALL,
            linespacing=1.15,
        )
        text.set_in_layout(False)


def _merged(model: ErrorHistogram, reach: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bins, neighbours joined until at most `BARS` are left below the reach."""
    inside = max(1, int(np.searchsorted(model.edges, reach)))
    step = -(-inside // BARS)
    starts = np.arange(0, len(model.edges) - 1, step)
    edges = np.append(model.edges[:-1][::step], model.edges[-1])
    return edges, np.add.reduceat(model.boundary, starts), np.add.reduceat(model.elsewhere, starts)


def _reach(model: ErrorHistogram) -> float:
    """The error up to which all but a hundredth of the frames of either kind lie."""
    highest = 0.0
    for counts in (model.boundary, model.elsewhere):
        if counts.sum():
            share = counts.cumsum() / counts.sum()
            highest = max(highest, float(model.edges[int(np.searchsorted(share, 0.99)) + 1]))
    return highest or float(model.edges[-1])


def _pale(colour: str) -> tuple[float, float, float, float]:
    red, green, blue = to_rgb(colour)
    return 0.3 * red + 0.7, 0.3 * green + 0.7, 0.3 * blue + 0.7, 1.0
