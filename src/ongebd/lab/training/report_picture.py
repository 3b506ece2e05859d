"""The picture of a training report: errors on boundaries and elsewhere, and F1 at each threshold."""

from __future__ import annotations

import io
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ongebd.lab.training.validation import Validated

# Colours that the colour-blind tell apart (Okabe and Ito).
BOUNDARY, ELSEWHERE, LINE = "#D55E00", "#0072B2", "#1A1A1A"


def draw_errors(results: Sequence[Validated], select_by: str) -> bytes:
    """A row for each anticipator: the two histograms of its errors, and F1 over its threshold.

    Args:
        results: The anticipators.
        select_by: The figure on the right.

    Returns:
        A PNG.
    """
    with mpl.rc_context():
        mpl.rcdefaults()
        figure = Figure(figsize=(13, 3.4 * len(results)), dpi=100, facecolor="white", layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(len(results), 2, squeeze=False, width_ratios=(2, 1))
        reach = max(0.6, *map(_reach, results))  # one scale, so that rows compare
        for row, result in zip(grid, results, strict=True):
            _draw_histograms(row[0], result)
            row[0].set_xlim(0, reach)
            row[0].set_ylim(0, 1.3 * row[0].get_ylim()[1])  # room for the legend
            _draw_thresholds(row[1], result, select_by)
        png = io.BytesIO()
        figure.savefig(png, format="png")
    return png.getvalue()


def _draw_histograms(axes: Axes, result: Validated) -> None:
    edges = result.histograms.edges
    for counts, mean, colour, name in (
        (result.histograms.elsewhere, result.histograms.mean_elsewhere, ELSEWHERE, "elsewhere"),
        (result.histograms.boundary, result.histograms.mean_boundary, BOUNDARY, "boundary"),
    ):
        share = counts / max(1.0, counts.sum())
        label = f"{name}: {int(counts.sum()):,} frames, mean {mean:.3f}"
        axes.stairs(share, edges, fill=True, color=colour, alpha=0.45, label=label)
        axes.stairs(share, edges, color=colour)
        axes.axvline(float(mean), color=colour, linestyle="--", linewidth=1)
    axes.set_xlabel("prediction error ε")
    axes.set_ylabel("share of frames")
    axes.set_title(result.name)
    axes.legend(loc="upper right")


def _draw_thresholds(axes: Axes, result: Validated, select_by: str) -> None:
    thresholds, values = zip(*sorted(result.by_threshold.items()), strict=True)
    axes.plot(thresholds, values, color=LINE, marker="o", markersize=4)
    axes.axvline(result.threshold, color=LINE, linestyle=":", linewidth=1)
    axes.set_ylim(0, 1.03)
    axes.set_xlabel("threshold (dotted: the best on these videos)")
    axes.set_ylabel(f"F1, {select_by}")
    axes.grid(alpha=0.3)


def _reach(result: Validated) -> float:
    """The largest error with a bar."""
    both = result.histograms.boundary + result.histograms.elsewhere
    filled = np.flatnonzero(both)
    return float(result.histograms.edges[filled[-1] + 1]) if len(filled) else 0.0
