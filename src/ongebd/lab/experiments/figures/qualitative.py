"""The figure of a video: frames, annotators, and below them each method's curve and boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ongebd.common.text import printable, shortened
from ongebd.data.label_set import VideoLabels
from ongebd.errors import ConfigError, a_number
from ongebd.lab.experiments.figures.judging import judge, tolerance_of
from ongebd.lab.experiments.figures.panels import draw_annotators, draw_panel, draw_time, legend_handles
from ongebd.lab.experiments.figures.style import INCHES, LETTERS, Width, print_style
from ongebd.lab.experiments.figures.tracing import MethodTrace, frames_at
from ongebd.types import ImageU8

CurveName = Literal["score", "z"]
Moment = Literal["centre", "onset"]

# Inches.
LEFT, RIGHT, TOP = 0.42, 0.09, 0.04
TALLEST = 0.8  # a frame
TITLE, HEADING = 0.2, 0.19  # above the figure; above a panel
ROW, LEAST_ROWS = 0.07, 0.16  # an annotator; all of them
PANEL: dict[Width, float] = {"page": 0.82, "column": 0.72}
TIMES, LEGEND_ROW = 0.31, 0.15  # the numbers below the last panel; a row of the legend
FRAMES: dict[Width, int] = {"page": 8, "column": 5}


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """What the figure of a video shows: its part from start to end, and frames at equal distances over it."""

    labels: VideoLabels
    traces: Sequence[MethodTrace]
    frames: Sequence[ImageU8]
    start: float
    end: float
    title: str = ""

    @classmethod
    def of(
        cls,
        video: Path | str,
        labels: VideoLabels,
        traces: Sequence[MethodTrace],
        *,
        width: Width = "page",
        start: float | None = None,
        end: float | None = None,
        title: str = "",
    ) -> Scene:
        """A scene with as many frames of the video as fit into the width.

        Raises:
            ConfigError: Nothing of the video lies in the part.
            SourceError: The video can't be read.
        """
        known = min(labels.duration, *(trace.duration for trace in traces))
        first, last = part_of(video, known, start, end)

        def frames(count: int) -> list[ImageU8]:
            return frames_at(video, [first + (last - first) * (n + 0.5) / count for n in range(count)])

        shown = frames(FRAMES[width])
        tall, wide = shown[0].shape[:2]
        needed = ceil(_across(width) * tall / wide / TALLEST)
        if needed > len(shown):  # upright frames, as of telephones
            shown = frames(needed)
        return cls(labels, traces, shown, first, last, title)


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


def qualitative(
    scene: Scene,
    *,
    curve: CurveName = "score",
    width: Width = "page",
    tolerance: float | None = None,
    moment: Moment = "centre",
) -> Figure:
    """Draw frames, annotators and, for each method, score, threshold and boundaries.

    The shade behind a curve lies within the tolerance of an annotator's boundary; the darker, the more
    annotators. A boundary is right (filled) or false (open) by the official rule: against the annotator that
    the method matches best in the whole video. The counts above a panel are of the part it shows.

    Args:
        scene: What to show.
        curve: The score itself, or z: its standard deviations above the recent ones.
        width: Of a column or of the page.
        tolerance: Seconds; None means 0.05 of the video's length.
        moment: What to show and judge of a boundary.
    """
    near = tolerance_of(scene.labels, tolerance)
    legend_columns = 3 if width == "column" else 6
    count, title = len(scene.frames), TITLE if scene.title else 0.0
    tall, wide = scene.frames[0].shape[:2]
    frame_height = min(TALLEST, _across(width) / count * float(tall) / float(wide))
    rows = max(LEAST_ROWS, ROW * len(scene.labels.boundaries))
    panels = len(scene.traces) * (HEADING + PANEL[width])
    legend = LEGEND_ROW * (6 // legend_columns) + 0.04
    whole = TOP + title + frame_height + 0.05 + rows + panels + TIMES + legend
    with print_style():
        sheet = _Sheet(Figure(figsize=(INCHES[width], whole), facecolor="white"))
        top = TOP + title
        if scene.title:
            text = shortened(printable(scene.title), 90 if width == "page" else 42)
            sheet.text(TOP + TITLE / 2, text, weight="bold")
        _draw_frames(sheet, scene.frames, top, frame_height, _across(width) / count)
        top += frame_height + 0.05
        axes = sheet.axes(top, rows, LEFT, _across(width))
        draw_annotators(axes, scene.labels, near)
        axes.set_xlim(scene.start, scene.end)
        top += rows
        for trace in scene.traces:
            judged = judge(trace.times(moment), scene.labels, near).between(scene.start, scene.end)
            sheet.text(
                top + 0.6 * HEADING, f"{shortened(trace.name, 56 if width == 'page' else 22)}:  {judged}"
            )
            axes = sheet.axes(top + HEADING, PANEL[width], LEFT, _across(width))
            axes.set_xlim(scene.start, scene.end)
            unit = "ζ" if curve == "z" else "score" if trace.z is None else "error ε"
            values = trace.z if curve == "z" and trace.z is not None else trace.score
            shown = values.between(scene.start, scene.end).pooled()
            draw_panel(axes, shown, unit, judged, scene.labels, near)
            draw_time(axes, last=trace is scene.traces[-1])
            top += HEADING + PANEL[width]
        sheet.figure.legend(
            handles=legend_handles(),
            loc="lower center",
            bbox_to_anchor=(0.5, 0.0),
            ncols=legend_columns,
            frameon=False,
            fontsize=LETTERS - 0.5,
            handlelength=1.9,
            columnspacing=1.2,
            handletextpad=0.5,
            labelspacing=0.25,
            borderpad=0.15,
        )
        sheet.figure.draw_without_rendering()
    return sheet.figure


class _Sheet:
    """A figure with places in inches from its upper left corner."""

    def __init__(self, figure: Figure) -> None:
        self.figure = figure
        self._width, self._height = (float(inches) for inches in figure.get_size_inches())

    def axes(self, top: float, height: float, left: float, width: float) -> Axes:
        foot = (self._height - top - height) / self._height
        return self.figure.add_axes((left / self._width, foot, width / self._width, height / self._height))

    def text(self, top: float, words: str, weight: str = "normal") -> None:
        """Words at the left margin, centred `top` inches down."""
        self.figure.text(LEFT / self._width, 1 - top / self._height, words, va="center", fontweight=weight)


def _across(width: Width) -> float:
    """Inches between the margins."""
    return INCHES[width] - LEFT - RIGHT


def _draw_frames(sheet: _Sheet, frames: Sequence[ImageU8], top: float, tall: float, cell: float) -> None:
    """Draw frames side by side; the middle of each stands above the moment that it shows."""
    for number, frame in enumerate(frames):
        height, width = frame.shape[:2]
        wide = min(cell - 0.02, tall * width / height)
        axes = sheet.axes(top, tall, LEFT + cell * (number + 0.5) - wide / 2, wide)
        axes.imshow(frame, interpolation="antialiased", aspect="auto")
        axes.set_axis_off()
