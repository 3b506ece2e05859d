"""Histograms of the prediction error at boundaries and elsewhere, one panel per model."""

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
from ongebd.lab.experiments.figures.style import (
    BLUE,
    DASHED,
    DOTTED,
    INCHES,
    LETTERS,
    SMALL,
    VERMILLION,
    plain_axes,
    print_style,
)

BINS, MOST_BARS = 500, 40
PANEL, LEGEND = 1.05, 0.5  # inches: the height of a panel, and of axis label and legend below the last


@dataclass(frozen=True, slots=True, eq=False)
class ModelErrors:
    """One model's errors, without NaN.

    Attributes:
        name: The model's.
        boundary: Errors of frames at boundaries.
        elsewhere: Errors of all other frames.
    """

    name: str
    boundary: FloatArray
    elsewhere: FloatArray

    @classmethod
    def of(cls, name: str, errors: FloatArray, at_boundary: npt.NDArray[np.bool_]) -> ModelErrors:
        """Split the errors of all frames, (T,); NaN means that a frame has none."""
        known = np.isfinite(errors)
        return cls(name, errors[known & at_boundary], errors[known & ~at_boundary])

    def edges(self) -> FloatArray:
        """The edges of `BINS` bins from 0 to 1, or to the largest error if that is above 1."""
        largest = max(float(part.max(initial=0.0)) for part in (self.boundary, self.elsewhere))
        return np.linspace(0.0, max(1.0, largest), BINS + 1)

    def reach(self) -> float:
        """The edge below which 99 % of the frames of either kind lie."""
        edges, highest = self.edges(), 0.0
        for errors in (self.boundary, self.elsewhere):
            if len(errors):
                counts = np.histogram(errors, edges)[0].astype(np.float64)
                share = counts.cumsum() / counts.sum()
                highest = max(highest, float(edges[int(np.searchsorted(share, 0.99)) + 1]))
        return highest or float(edges[-1])

    def bars(self, reach: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Edges of at most `MOST_BARS` bars below a reach, and the counts at boundaries and elsewhere."""
        edges = self.edges()
        inside = max(1, int(np.searchsorted(edges, reach)))
        step = -(-inside // MOST_BARS)
        edges = np.append(edges[:-1][::step], edges[-1])
        boundary, elsewhere = (
            np.histogram(errors, edges)[0].astype(np.float64) for errors in (self.boundary, self.elsewhere)
        )
        return edges, boundary, elsewhere

    def larger_at_boundaries(self) -> float | None:
        """The share of pairs, one frame of each kind, whose boundary frame has the larger error.

        Ties count half: this is the area under the ROC curve. None where a kind has no frame.
        """
        if not len(self.boundary) or not len(self.elsewhere):
            return None
        below, not_above = (
            np.searchsorted(np.sort(self.elsewhere), self.boundary, side=side).sum()
            for side in ("left", "right")
        )
        return float(below + not_above) / 2 / len(self.boundary) / len(self.elsewhere)


def error_histograms(models: Sequence[ModelErrors]) -> Figure:
    """Draw a panel per model: the share of the frames of each kind that have an error.

    All panels share one axis, which ends where at most 1 % of the frames of each kind lie beyond. Dashed and
    dotted lines are the means over all frames.
    """
    reach = max(model.reach() for model in models)
    size = INCHES["column"], PANEL * len(models) + LEGEND
    with print_style():
        figure = Figure(figsize=size, facecolor="white", layout="constrained")
        panels = figure.subplots(len(models), 1, squeeze=False, sharex=True)[:, 0]
        for axes, model in zip(panels, models, strict=True):
            _draw(axes, model, reach)
            axes.set_xlim(0, reach)
        panels[-1].set_xlabel("prediction error ε", labelpad=1)
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
    return figure


def _draw(axes: Axes, model: ModelErrors, reach: float) -> None:
    plain_axes(axes)
    edges, *counts = model.bars(reach)
    boundary, elsewhere = (part / max(1.0, part.sum()) for part in counts)
    axes.stairs(elsewhere, edges, fill=True, fc=_pale(BLUE), ec=BLUE, lw=0.7, zorder=2)
    axes.stairs(boundary, edges, fill=True, fc="none", ec=VERMILLION, hatch="//////", lw=0.9, zorder=3)
    facts = []
    for name, errors, colour, stroke in (
        ("elsewhere", model.elsewhere, BLUE, DASHED),
        ("boundary", model.boundary, VERMILLION, DOTTED),
    ):
        if len(errors):
            mean = float(errors.mean())
            axes.axvline(mean, color=colour, ls=stroke, lw=0.9, zorder=4)
            facts.append(f"{name}: {len(errors):,} frames, mean {mean:.3f}")
        else:
            facts.append(f"{name}: none")
    axes.set_ylim(0, 1.12 * max(0.01, float(elsewhere.max()), float(boundary.max())))
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    axes.set_title(shortened(printable(model.name), 24), loc="left", fontsize=LETTERS, pad=19)
    share = model.larger_at_boundaries()
    pairs = "" if share is None else f"boundary larger in\n{100 * share:.1f} % of pairs"
    for words, x, side in (("\n".join(facts), 0, "left"), (pairs, 1, "right")):  # below the title
        text = axes.annotate(
            words,
            (x, 1),
            (0, 3),
            xycoords="axes fraction",
            textcoords="offset points",
            ha=side,
            fontsize=SMALL,
            linespacing=1.15,
        )
        text.set_in_layout(False)


def _pale(colour: str) -> tuple[float, ...]:
    return *(0.3 * part + 0.7 for part in to_rgb(colour)), 1.0
