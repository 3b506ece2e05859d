"""F1 of several methods against relative distance, absolute tolerance and allowed delay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from ongebd.common.text import printable, shortened
from ongebd.data.numbers import FloatArray
from ongebd.errors import ConfigError
from ongebd.lab.evaluation.delay import ALLOWED_DELAYS, DELAY_TOLERANCE
from ongebd.lab.evaluation.figures import ABSOLUTE
from ongebd.lab.evaluation.relative_distance import THRESHOLDS
from ongebd.lab.experiments.figures.style import (
    BLACK,
    DASH_DOTTED,
    DASHED,
    DOTTED,
    INCHES,
    MARKERS,
    QUIET,
    SERIES,
    STROKES,
    plain_axes,
    print_style,
)

Against = Literal["relative", "absolute", "delay"]
PANELS: dict[Against, tuple[str, tuple[str, ...]]] = {
    "relative": ("relative distance", tuple(f"{share:g}".removeprefix("0") for share in THRESHOLDS)),
    "absolute": ("tolerance (s)", tuple(f"{seconds:g}" for seconds in ABSOLUTE)),
    "delay": (
        f"allowed delay (s), at ±{DELAY_TOLERANCE:g} s",
        (*(f"{seconds:g}" for seconds in ALLOWED_DELAYS), "any"),
    ),
}
"""The title of each panel's x axis, and its ticks, at equal distances because the steps differ too much."""

HEIGHT = 1.6  # of a panel, inches
LONGEST = 42  # letters of a name in the legend
DODGE = 0.009  # between neighbouring methods, as a share of the axis


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """F1 at each tick of a panel, (P,), and its interval if there is one."""

    f1: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class F1Line:
    """An entry of the legend.

    Attributes:
        name: In the legend.
        bands: Its line in each panel; NaN leaves a gap.
        kind: A `method` has a colour; printed rows, floors and annotators are drawn quietly.
    """

    name: str
    bands: Mapping[Against, Band] = field(default_factory=dict)
    kind: Literal["method", "printed", "floor", "ceiling"] = "method"

    @property
    def label(self) -> str:
        """The name as the legend shows it; matplotlib hides a label that begins with an underscore."""
        name = shortened(printable(self.name), LONGEST)
        return f" {name}" if name.startswith("_") else name


def f1_curves(lines: Sequence[F1Line]) -> Figure:
    """Draw a panel for each axis on which something has a line, and one legend below.

    Raises:
        ConfigError: There is nothing to draw, or there are more methods than can be told apart.
    """
    shown = [against for against in PANELS if any(against in line.bands for line in lines)]
    if not shown:
        raise ConfigError("there is no F1 to draw")
    methods = sum(line.kind == "method" for line in lines)
    if methods > len(SERIES):
        raise ConfigError(f"can't draw {methods} methods that can be told apart; the limit is {len(SERIES)}")
    columns = legend_columns([line.label for line in lines])
    legend = 0.16 * -(-len(lines) // columns) + 0.08
    with print_style():
        size = INCHES["page"], HEIGHT + 0.34 + legend
        figure = Figure(figsize=size, facecolor="white", layout="constrained")
        handles: dict[str, Any] = {}
        for axes, against in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
            _draw(axes, against, lines)
            found, labels = axes.get_legend_handles_labels()
            handles |= dict(zip(labels, found, strict=True))
        names = [line.label for line in lines if line.label in handles]
        figure.legend(
            [handles[name] for name in names],
            names,
            loc="outside lower center",
            ncols=columns,
            frameon=False,
            borderpad=0.1,
            handlelength=2.6,
            columnspacing=1.2,
            labelspacing=0.3,
        )
        figure.draw_without_rendering()
    return figure


def legend_columns(labels: Sequence[str]) -> int:
    """How many columns of such labels, at most four, fit into the width of a page."""
    wide = 0.5 + 0.058 * max(map(len, labels))  # inches
    return max(1, min(4, len(labels), int(INCHES["page"] / wide)))


def _draw(axes: Axes, against: Against, lines: Sequence[F1Line]) -> None:
    plain_axes(axes)
    title, ticks = PANELS[against]
    places = np.arange(len(ticks), dtype=np.float64)
    methods = [line for line in lines if line.kind == "method"]
    printed = [line for line in lines if line.kind == "printed"]
    for line in lines:
        band = line.bands.get(against)
        if band is None:
            continue
        x = places
        style: dict[str, Any] = {"lw": 0.9}
        if line.kind == "method":
            number = methods.index(line)
            x = places + DODGE * len(places) * (number - (len(methods) - 1) / 2)  # or intervals would overlap
            style = {"color": SERIES[number], "ls": STROKES[number], "lw": 1.2}
            style |= {"marker": MARKERS[number], "ms": 3.2, "mew": 0}
            if band.low is not None and band.high is not None:
                axes.vlines(x, band.low, band.high, color=SERIES[number], lw=0.8, zorder=1.5)
        elif line.kind == "printed":
            number = printed.index(line)
            style = {"color": SERIES[number], "ls": DOTTED, "lw": 0.8}
            style |= {"marker": MARKERS[number], "ms": 3.2, "mfc": "white", "mew": 0.7}
        elif line.kind == "floor":
            style |= {"color": QUIET, "ls": DASHED}
        else:
            style |= {"color": BLACK, "ls": DASH_DOTTED}
        axes.plot(x, band.f1, label=line.label, **style)
    axes.set_xticks(places, ticks)
    axes.set_xlabel(title, labelpad=2)
    axes.set_ylabel("F1", labelpad=2)
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_locator(MultipleLocator(0.2))
