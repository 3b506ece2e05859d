"""The look of figures for print (sizes, colours, strokes), and how to save them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ongebd.common.lettering import lettering
from ongebd.common.writing import write_whole
from ongebd.errors import ConfigError, OngebdError, os_errors

Width = Literal["column", "page"]
INCHES: dict[Width, float] = {"column": 3.25, "page": 6.875}
"""The width of a column and of the text area in the paper's two-column format."""

LETTERS, SMALL = 7.0, 6.0
"""Font sizes in points, as printed. Nothing in a figure is smaller than `SMALL`."""

# Okabe and Ito's colours, which the colour-blind can tell apart. Each line also has its own stroke and
# marker, so that a grey print loses nothing.
BLUE, VERMILLION, GREEN = "#0072B2", "#D55E00", "#009E73"
BLACK, QUIET, GRID = "#1A1A1A", "#5A5A5A", "#E4E4E4"
SERIES = (BLUE, VERMILLION, GREEN, "#CC79A7", "#E69F00", "#56B4E9", BLACK)
MARKERS = "osD^vP*"
STROKES: tuple[str | tuple[float, tuple[float, ...]], ...] = (
    "-",
    (0, (4.0, 1.6)),
    (0, (4.0, 1.6, 1.0, 1.6)),
    (0, (1.2, 1.2)),
    (0, (8.0, 1.6)),
    (0, (4.0, 1.6, 1.0, 1.6, 1.0, 1.6)),
    (0, (8.0, 1.6, 1.0, 1.6)),
)
DASHED, DASH_DOTTED, DOTTED = STROKES[1:4]

_FOR_PRINT: Any = {
    "pdf.fonttype": 42,  # embedded TrueType: publishers refuse Type 3
    "svg.fonttype": "path",  # outlines look the same without the font
    "svg.hashsalt": "ongebd",  # the same values give the same file
    "axes.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.major.pad": 2.0,
    "ytick.major.pad": 2.0,
}
_METADATA: dict[str, dict[str, str | None]] = {  # without the date, so that files can be compared
    ".pdf": {"CreationDate": None, "Creator": "ongebd", "Producer": None},
    ".svg": {"Date": None, "Creator": "ongebd"},
    ".png": {"Software": None},
}


@contextmanager
def print_style() -> Iterator[None]:
    """Draw and save a figure with the same look under any matplotlib settings of the user."""
    with lettering(LETTERS):
        mpl.rcParams.update(_FOR_PRINT)
        yield


def check_ending(path: Path) -> None:
    """Refuse a file name that names no format of `save`.

    Raises:
        ConfigError: Its ending is not .pdf, .svg or .png.
    """
    if path.suffix.lower() not in _METADATA:
        raise ConfigError(f"{path}: unknown kind of figure; use .pdf, .svg or .png")


def save(figure: Figure, path: Path) -> None:
    """Write a figure in the format that the file's ending names; PNG has 300 dots per inch.

    Raises:
        ConfigError: Unknown ending.
        OngebdError: The file can't be written.
    """
    check_ending(path)
    kind = path.suffix.lower()
    with os_errors(path, "choose another --out", OngebdError), write_whole(path) as part, print_style():
        figure.savefig(part, format=kind[1:], dpi=300, metadata=_METADATA[kind])


def plain_axes(axes: Axes, *, grid: bool = True) -> None:
    """Remove the box; draw a quiet horizontal grid behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    if grid:
        axes.grid(axis="y", color=GRID, linewidth=0.5)
