"""Histograms of the prediction error at boundaries and elsewhere, one panel per model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ongebd.data.files import FloatArray
from ongebd.lab.evaluation.figure_style import (
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

BARS = 40
PANEL, LEGEND = 1.05, 0.5  # inches: the height of a panel, and of axis label and legend below the last
SHOWN = 0.99  # of the frames of each kind

Errors = tuple[FloatArray, npt.NDArray[np.bool_]]
"""The error of each frame, (T,), NaN where it has none; and whether it is at a boundary."""


def error_histograms(models: Mapping[str, Errors]) -> Figure:
    """Draw a panel per model: the share of the frames of each kind that have an error.

    All panels share one axis, which ends where at most 1 % of the frames of each kind lie beyond. Dashed and
    dotted lines are the means over all frames.
    """
    split = {
        name: (errors[~at_boundary & np.isfinite(errors)], errors[at_boundary & np.isfinite(errors)])
        for name, (errors, at_boundary) in models.items()
    }
    ends = [float(np.quantile(part, SHOWN)) for parts in split.values() for part in parts if len(part)]
    reach = max([*ends, 1e-6])
    size = INCHES["column"], PANEL * len(split) + LEGEND
    with print_style():
        figure = Figure(figsize=size, facecolor="white", layout="constrained")
        panels = figure.subplots(len(split), 1, squeeze=False, sharex=True)[:, 0]
        for axes, (name, parts) in zip(panels, split.items(), strict=True):
            _draw(axes, name, *parts, reach)
        panels[-1].set_xlim(0, reach)
        panels[-1].set_xlabel("prediction error ε", labelpad=1)
        figure.supylabel("share of the frames of a kind", fontsize=LETTERS)
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
    return figure


def _draw(axes: Axes, name: str, elsewhere: FloatArray, boundary: FloatArray, reach: float) -> None:
    plain_axes(axes)
    pale = (*(0.3 * part + 0.7 for part in to_rgb(BLUE)), 1.0)
    facts = [name]
    for kind, errors, colour, stroke, fill in (
        ("elsewhere", elsewhere, BLUE, DASHED, {"fc": pale}),
        ("at a boundary", boundary, VERMILLION, DOTTED, {"fc": "none", "hatch": "//////"}),
    ):
        shares = np.histogram(errors, BARS, (0, reach))[0] / max(1, len(errors))
        axes.stairs(shares, np.linspace(0, reach, BARS + 1), fill=True, ec=colour, lw=0.8, label=kind, **fill)
        facts.append(f"{kind}: none")
        if len(errors):
            axes.axvline(float(errors.mean()), color=colour, ls=stroke, lw=0.9)
            facts[-1] = f"{kind}: {len(errors):,} frames, mean {errors.mean():.3f}"
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    axes.set_title("\n".join(facts), loc="left", fontsize=SMALL, pad=2)
