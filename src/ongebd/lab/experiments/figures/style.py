"""How figures for print look, and how they are written: sizes, colours, strokes, files."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ongebd.common.lettering import lettering
from ongebd.errors import ConfigError
from ongebd.output import writing

Width = Literal["column", "page"]
WIDTHS: dict[Width, float] = {"column": 3.25, "page": 6.875}
"""Inches: of a column and of the type area of the two-column format in which the paper is set."""

LETTERS = 7.0
"""Points, as printed. Nothing in a figure is smaller than 6."""
SMALL = 6.0

KINDS = ("pdf", "svg", "png")
_PNG_DPI = 300

# Colours that the colour-blind tell apart (Okabe and Ito). Each line has its own stroke or mark as well, so
# that a print in grey loses nothing.
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
)
BLACK, QUIET, GRID = "#1A1A1A", "#5A5A5A", "#E4E4E4"
SERIES = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
MARKERS = "osD^vP*"
_DASH, _GAP = 4.0, 1.6
STROKES: tuple[str | tuple[float, tuple[float, ...]], ...] = (
    "-",
    (0, (_DASH, _GAP)),
    (0, (_DASH, _GAP, 1.0, _GAP)),
    (0, (1.2, 1.2)),
    (0, (2 * _DASH, _GAP)),
    (0, (_DASH, _GAP, 1.0, _GAP, 1.0, _GAP)),
    (0, (2 * _DASH, _GAP, 1.0, _GAP)),
)


_FOR_PRINT: Any = {
    "pdf.fonttype": 42,  # TrueType, embedded: publishers refuse Type 3
    "svg.fonttype": "path",  # letters as outlines: the same where the font is not
    "svg.hashsalt": "ongebd",  # the same file from the same values
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


@contextlib.contextmanager
def printing() -> Iterator[None]:
    """Make and save a figure within: the same look whatever the user's matplotlib settings are."""
    with lettering(LETTERS):
        mpl.rcParams.update(_FOR_PRINT)
        yield


@dataclass(frozen=True, slots=True)
class Picture:
    """A finished figure.

    Attributes:
        figure: It, for who wants to change something before it is saved.
    """

    figure: Figure

    def encoded(self, kind: str) -> bytes:
        """The figure as a file of that kind, one of `KINDS`; without the date, so the same each time.

        Raises:
            ConfigError: There is no such kind.
        """
        if kind not in KINDS:
            raise ConfigError(f"a figure cannot be written as {kind!r}; there are {', '.join(KINDS)}")
        nameless: dict[str, dict[str, str | None]] = {
            "pdf": {"CreationDate": None, "Creator": "ongebd", "Producer": None},
            "svg": {"Date": None, "Creator": "ongebd"},
            "png": {"Software": None},
        }
        file = io.BytesIO()
        with printing():  # the dots of the pictures in a PDF go by this dpi too
            self.figure.savefig(file, format=kind, dpi=_PNG_DPI, metadata=nameless[kind])
        return file.getvalue()

    def save(self, path: Path | str) -> Path:
        """Write the figure as the ending says: `.pdf`, `.svg` or `.png` (300 dots an inch). All or nothing.

        Raises:
            ConfigError: The ending is another.
            OngebdError: The file cannot be written.
        """
        path = Path(path)
        data = self.encoded(kind_of_file(path))
        part = path.with_name(f".ongebd-{os.getpid()}-{path.name}.part")
        with writing(path):
            try:
                part.write_bytes(data)
                part.replace(path)
            except BaseException:  # Ctrl-C too
                with contextlib.suppress(OSError):
                    part.unlink(missing_ok=True)
                raise
        return path


def kind_of_file(path: Path) -> str:
    """What a figure's file is to be, by its ending.

    >>> kind_of_file(Path("figure.PDF"))
    'pdf'

    Raises:
        ConfigError: By none that a figure can be.
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise ConfigError(f"{path}: the ending says what the figure is to be; give .pdf, .svg or .png")
    return kind


def inches(width: Width) -> float:
    """The width of a figure.

    Raises:
        ConfigError: It is neither "column" nor "page".
    """
    if width not in WIDTHS:
        raise ConfigError(f"width is {width!r}; give {' or '.join(WIDTHS)}")
    return WIDTHS[width]


def plain_axes(axes: Axes, grid: Literal["x", "y", "both"] | None = "y") -> None:
    """Axes without a box, and with a quiet grid behind what is drawn."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    if grid is not None:
        axes.grid(axis=grid, color=GRID, linewidth=0.5)
