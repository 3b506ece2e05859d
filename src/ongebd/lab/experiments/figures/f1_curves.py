"""The F1 curves of several methods: against relative distance, absolute tolerance and allowed delay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator

from ongebd.common.text import printable, shortened
from ongebd.data.numbers import FloatArray
from ongebd.errors import ConfigError
from ongebd.lab.evaluation.ceiling import ceiling_name
from ongebd.lab.evaluation.delay import ALLOWED_DELAYS, DELAY_TOLERANCE
from ongebd.lab.evaluation.figures import ABSOLUTE, ABSOLUTE_PART, RELATIVE_PART
from ongebd.lab.evaluation.relative_distance import THRESHOLDS
from ongebd.lab.evaluation.system import SystemResult
from ongebd.lab.experiments.figures.style import (
    BLACK,
    MARKERS,
    QUIET,
    SERIES,
    STROKES,
    Picture,
    Width,
    inches,
    plain_axes,
    printing,
)
from ongebd.lab.experiments.printed import PRINTED

Kind = Literal["method", "printed", "floor", "ceiling"]
Against = Literal["relative", "absolute", "delay"]

# What stands on the x axes; evenly, for the steps differ too much in size.
PLACES: dict[Against, tuple[str, ...]] = {
    "relative": tuple(f"{threshold:g}".removeprefix("0") for threshold in THRESHOLDS),
    "absolute": tuple(f"{seconds:g}" for seconds in ABSOLUTE),
    "delay": (*(f"{seconds:g}" for seconds in ALLOWED_DELAYS), "any"),
}
_TITLES: dict[Against, str] = {
    "relative": "relative distance",
    "absolute": "tolerance (s)",
    "delay": f"allowed delay (s), at ±{DELAY_TOLERANCE:g} s",
}
PANEL: dict[Width, float] = {"column": 1.35, "page": 1.6}  # inches high
LONGEST = 42  # letters of a name in the legend
DODGE = 0.009  # from method to method, as a part of the axis


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """F1 at each place of one axis, with its interval.

    Attributes:
        f1: Shape (P,).
        low: Lower ends of the intervals, likewise; None where there are none.
        high: Upper ends.
    """

    f1: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None

    @classmethod
    def of(cls, f1: FloatArray, samples: FloatArray) -> Band:
        """F1 with the 95 % interval of draws or seeds, shape (B, P); of fewer than two, none."""
        if len(samples) < 2:
            return cls(f1)
        low, high = np.percentile(samples, [2.5, 97.5], axis=0)
        return cls(f1, low, high)


@dataclass(frozen=True, slots=True, eq=False)
class F1Lines:
    """One entry of the legend: a method, a floor, the annotators, or a row that the paper prints.

    Attributes:
        name: In the legend.
        relative: At the ten thresholds of relative distance; None for no line in that panel, as below.
        absolute: At the absolute tolerances of `ongebd.lab.evaluation`.
        delay: At the allowed delays and without a limit.
        kind: How it is drawn: methods in colour, the others quietly.
    """

    name: str
    relative: Band | None = None
    absolute: Band | None = None
    delay: Band | None = None
    kind: Kind = "method"

    def __post_init__(self) -> None:
        for against, places in PLACES.items():
            band = self.band(against)
            for values in () if band is None else (band.f1, band.low, band.high):
                if values is not None and values.shape != (len(places),):
                    raise ConfigError(
                        f"{self.name}: {len(places)} values are wanted against {_TITLES[against]},"
                        f" not {values.shape}"
                    )

    def band(self, against: Against) -> Band | None:
        """The line in a panel."""
        return {"relative": self.relative, "absolute": self.absolute, "delay": self.delay}[against]


def lines_of_result(name: str, result: SystemResult) -> F1Lines:
    """A method's lines from its evaluation."""
    samples = result.samples.f1
    delay = None
    if result.within_delay is not None and result.within_delay_samples is not None:
        delay = Band.of(result.within_delay.f1, result.within_delay_samples.f1)
    return F1Lines(
        name,
        Band.of(result.scores.f1[RELATIVE_PART], samples[:, RELATIVE_PART]),
        Band.of(result.scores.f1[ABSOLUTE_PART], samples[:, ABSOLUTE_PART]),
        delay,
    )


def limits_of_result(result: SystemResult) -> list[F1Lines]:
    """The clock that never looks, at its best period, and each annotator against the others."""
    clock = result.floors[0]
    absolute = np.array([clock.figures[f"absolute {seconds}"].f1 for seconds in ABSOLUTE])
    lines = [
        F1Lines(
            "floor: clock",
            Band(clock.curve[RELATIVE_PART]),
            Band(absolute),
            Band(result.clock_within_delay),
            "floor",
        )
    ]
    if result.humans:
        human = result.humans[0]
        bands = Band(human.f1[RELATIVE_PART]), Band(human.f1[ABSOLUTE_PART])
        lines.append(F1Lines(ceiling_name(human.name), *bands, kind="ceiling"))
    return lines


def printed_lines(table: str, row: str) -> F1Lines:
    """What the paper prints for a method, at the ten thresholds; NaN where a dash is printed.

    Args:
        table: One of the comparisons, "online-kinetics" say.
        row: The method.

    Raises:
        ConfigError: There is no such table or row.
    """
    comparisons = [key for key in PRINTED if key.startswith(("online", "offline"))]
    if table not in comparisons:
        raise ConfigError(f"{table!r} has no ten thresholds; give one of {', '.join(comparisons)}")
    values = [PRINTED[table].value(row, f"{threshold:g}") for threshold in THRESHOLDS]
    f1 = np.array([np.nan if value is None else value for value in values], np.float64)
    return F1Lines(f"{row} (printed)", Band(f1), kind="printed")


def f1_curves(
    lines: Sequence[F1Lines],
    *,
    against: Sequence[Against] = ("relative", "absolute", "delay"),
    width: Width = "page",
) -> Picture:
    """F1 against what is tolerated, a panel for each axis, one legend for all.

    Args:
        lines: Of at most seven methods, and of floors, annotators and printed rows.
        against: Which panels; those for which nothing has a line are left out.
        width: Of the page, panels side by side; or of a column, one under the other.

    Raises:
        ConfigError: There is nothing to draw, or more methods than can be told apart.
    """
    for name in against:
        if name not in PLACES:
            raise ConfigError(f"no panel is called {name!r}; there are {', '.join(PLACES)}")
    shown = [name for name in against if any(line.band(name) is not None for line in lines)]
    if not shown:
        raise ConfigError("there is no F1 to draw")
    for kind in ("method", "printed"):
        count = sum(line.kind == kind for line in lines)
        if count > len(SERIES):
            raise ConfigError(f"{count} lines cannot be told apart; draw at most {len(SERIES)} in a figure")
    across = inches(width)
    columns = columns_of_legend(across, [_label(line) for line in lines])
    rows = 1 if width == "page" else len(shown)
    legend = 0.16 * -(-len(lines) // columns) + 0.08
    with printing():
        figure = Figure(
            figsize=(across, (PANEL[width] + 0.34) * rows + legend), facecolor="white", layout="constrained"
        )
        grid = figure.subplots(rows, len(shown) if width == "page" else 1, squeeze=False)
        for axes, name in zip(grid.ravel(), shown, strict=True):
            _draw(axes, name, lines)
        handles = {
            label: handle
            for axes in grid.ravel()
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        names = [_label(line) for line in lines if _label(line) in handles]
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
    return Picture(figure)


def columns_of_legend(across: float, labels: Sequence[str], most: int = 4) -> int:
    """Into how many columns a legend of lines goes.

    Args:
        across: Inches that there are.
        labels: Its entries.
        most: Columns at most.
    """
    longest = max(map(len, labels))
    return max(1, min(most, len(labels), int(across / (0.5 + 0.058 * longest))))


def _label(line: F1Lines) -> str:
    name = shortened(printable(line.name), LONGEST)
    return f" {name}" if name.startswith("_") else name  # matplotlib hides labels that begin so


def _draw(axes: Axes, against: Against, lines: Sequence[F1Lines]) -> None:
    plain_axes(axes)
    places = np.arange(len(PLACES[against]), dtype=np.float64)
    number_of = {id(line): _place_of(line, lines) for line in lines}
    methods = sum(line.kind == "method" for line in lines)
    for line in lines:
        band, number = line.band(against), number_of[id(line)]
        if band is None:
            continue
        if line.kind == "method":  # a little beside each other, lest their intervals hide one another
            beside = places + DODGE * len(places) * (number - (methods - 1) / 2)
            drawn = _draw_method(axes, beside, band, number)
        elif line.kind == "printed":
            drawn = axes.plot(places, band.f1, color=SERIES[number], ls=STROKES[3], lw=0.8, **_open(number))
        elif line.kind == "floor":
            drawn = axes.plot(places, band.f1, color=QUIET, ls=STROKES[1], lw=0.9)
        else:
            drawn = axes.plot(places, band.f1, color=BLACK, ls=STROKES[2], lw=0.9)
        drawn[0].set_label(_label(line))
    axes.set_xticks(places, PLACES[against])
    axes.set_xlabel(_TITLES[against], labelpad=2)
    axes.set_ylabel("F1", labelpad=2)
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_locator(MultipleLocator(0.2))


def _place_of(line: F1Lines, lines: Sequence[F1Lines]) -> int:
    """Which of its kind a line is: its colour, stroke and mark."""
    return [other for other in lines if other.kind == line.kind].index(line)


def _draw_method(axes: Axes, places: FloatArray, band: Band, number: int) -> list[Line2D]:
    colour = SERIES[number]
    if band.low is not None and band.high is not None:
        axes.vlines(places, band.low, band.high, color=colour, lw=0.8, zorder=1.5)
    return axes.plot(
        places, band.f1, color=colour, ls=STROKES[number], marker=MARKERS[number], ms=3.2, mew=0, lw=1.2
    )


def _open(number: int) -> dict[str, Any]:
    return {"marker": MARKERS[number], "ms": 3.2, "mfc": "white", "mew": 0.7}
