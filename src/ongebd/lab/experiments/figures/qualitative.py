"""The qualitative figure: frames, annotators, and under them each method's curve and boundaries."""

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
from ongebd.lab.experiments.figures.judging import judged, tolerance_of
from ongebd.lab.experiments.figures.panels import LEGEND, Panel, draw_annotators, draw_panel, draw_time
from ongebd.lab.experiments.figures.style import LETTERS, Picture, Width, inches, printing
from ongebd.lab.experiments.figures.watching import Watched, pictures_at
from ongebd.types import ImageU8

Curve = Literal["score", "z"]
Moment = Literal["centre", "onset"]

# Inches.
LEFT, RIGHT, TOP = 0.42, 0.09, 0.04
TALLEST = 0.8  # a frame
TITLE, HEADING = 0.2, 0.19  # above a scene; above a panel
ROW, LEAST_ROWS = 0.07, 0.16  # an annotator; all of them
PANEL: dict[Width, float] = {"page": 0.82, "column": 0.72}
FRAMES: dict[Width, int] = {"page": 8, "column": 5}
TIMES, BETWEEN = 0.31, 0.1  # the numbers under the last panel; between two scenes
LEGEND_ROW = 0.15


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """One video of the figure.

    Attributes:
        labels: Its annotators.
        methods: What to show, ours first; a panel for each.
        pictures: Its frames, at equal distances over the part shown; `framed` fills them in.
        start: Of the part shown, seconds.
        end: Likewise.
        title: Above it; empty for none.
    """

    labels: VideoLabels
    methods: tuple[Watched, ...]
    pictures: tuple[ImageU8, ...]
    start: float
    end: float
    title: str = ""

    @classmethod
    def of(
        cls,
        video: Path | str,
        labels: VideoLabels,
        methods: Sequence[Watched],
        *,
        width: Width = "page",
        start: float | None = None,
        end: float | None = None,
        title: str = "",
    ) -> Scene:
        """The scene of a video, with its frames.

        Args:
            video: The file.
            labels: Its annotators.
            methods: Traces over it.
            width: Of the figure that it is for: how many frames fit.
            start: Of the part to show, seconds; None: its beginning.
            end: Likewise; None: where the labels end, or the video, if that is sooner.
            title: Above it.

        Raises:
            ConfigError: No method is given, or nothing of the video lies in the part.
            SourceError: The video cannot be read.
        """
        if not methods:
            raise ConfigError("a figure of a video needs a method, whose curve it shows")
        inches(width)  # refused before the video is read
        known = min(labels.duration, *(method.duration for method in methods))
        first, last = part_of(video, known, start, end)
        pictures = pictures_at(video, _middles(first, last, FRAMES[width]))
        tall, wide = pictures[0].shape[:2]
        needed = ceil((inches(width) - LEFT - RIGHT) * tall / wide / TALLEST)
        if needed > len(pictures):  # upright ones, as of telephones
            pictures = pictures_at(video, _middles(first, last, needed))
        return cls(labels, tuple(methods), tuple(pictures), first, last, title)


def qualitative(
    scenes: Sequence[Scene],
    *,
    curve: Curve = "score",
    width: Width = "page",
    tolerance: float | None = None,
    moment: Moment = "centre",
) -> Picture:
    """Frames, annotators and, for each method, score, threshold and boundaries; one video under the other.

    The shade behind a curve lies within the tolerance of an annotator's boundary, the darker the more of them
    marked one there. A boundary is right (filled) or false (open) by the official rule: against the annotator
    whom the method's boundaries suit best in the whole video. The counts above a panel are of what it shows.

    Args:
        scenes: The videos.
        curve: The score ε itself, or how many standard deviations it stands above the recent ones.
        width: Of a column (3.25 inches) or of the page (6.875).
        tolerance: Seconds; None takes 0.05 of a video's length, the strictest relative distance of the paper.
        moment: Which moment of a boundary is shown and judged.

    Raises:
        ConfigError: There is no scene, an argument is none of its values, or a method has no z.
    """
    if not scenes:
        raise ConfigError("a figure needs a video")
    check_choices(curve, width, moment)
    for method in (method for scene in scenes for method in scene.methods):
        if curve == "z" and method.z is None:
            raise no_z(method.name)
    columns = 3 if width == "column" else len(LEGEND)
    legend = LEGEND_ROW * ceil(len(LEGEND) / columns) + 0.04
    heights = [_height(scene, width) for scene in scenes]
    whole = TOP + sum(heights) + BETWEEN * (len(scenes) - 1) + legend
    with printing():
        figure = Figure(figsize=(inches(width), whole), facecolor="white")
        sheet = _Sheet(figure, whole)
        for number, scene in enumerate(scenes):
            top = TOP + sum(heights[:number]) + BETWEEN * number
            near = tolerance_of(scene.labels, tolerance)
            panels = [_panel(scene, method, near, curve, moment) for method in scene.methods]
            _draw_scene(sheet, scene, panels, near, top, PANEL[width])
        figure.legend(
            handles=[make() for make in LEGEND],
            loc="lower center",
            bbox_to_anchor=(0.5, 0.0),
            ncols=columns,
            frameon=False,
            fontsize=LETTERS - 0.5,
            handlelength=1.9,
            columnspacing=1.2,
            handletextpad=0.5,
            labelspacing=0.25,
            borderpad=0.15,
        )
        figure.draw_without_rendering()
    return Picture(figure)


def _panel(scene: Scene, method: Watched, near: float, curve: Curve, moment: Moment) -> Panel:
    found = judged(method.times(moment), scene.labels, near)
    return Panel.of(method, found.between(scene.start, scene.end), curve)


class _Sheet:
    """A figure on which places are given in inches from its upper left corner."""

    def __init__(self, figure: Figure, height: float) -> None:
        self.figure = figure
        self._width: float = figure.get_figwidth()
        self._height = height

    @property
    def across(self) -> float:
        """Inches between the margins."""
        return self._width - LEFT - RIGHT

    def axes(self, top: float, height: float, left: float = LEFT, width: float | None = None) -> Axes:
        """New axes."""
        width = self.across if width is None else width
        foot = (self._height - top - height) / self._height
        return self.figure.add_axes((left / self._width, foot, width / self._width, height / self._height))

    def text(self, top: float, words: str, **how: object) -> None:
        """Words at the left margin, whose middle is `top` inches down."""
        place = LEFT / self._width, 1 - top / self._height
        self.figure.text(*place, words, va="center", **how)  # type: ignore[arg-type]


def _height(scene: Scene, width: Width) -> float:
    across = inches(width) - LEFT - RIGHT
    frames = _frame_height(scene, across)
    panels = len(scene.methods) * (HEADING + PANEL[width])
    return (TITLE if scene.title else 0.0) + frames + 0.05 + _rows(scene) + panels + TIMES


def _frame_height(scene: Scene, across: float) -> float:
    tall, wide = scene.pictures[0].shape[:2]
    return min(TALLEST, across / len(scene.pictures) * float(tall) / float(wide))


def _rows(scene: Scene) -> float:
    return max(LEAST_ROWS, ROW * len(scene.labels.boundaries))


def _draw_scene(
    sheet: _Sheet, scene: Scene, panels: Sequence[Panel], near: float, top: float, panel_height: float
) -> None:
    if scene.title:
        title = shortened(printable(scene.title), 90 if sheet.across > 5 else 42)
        sheet.text(top + TITLE / 2, title, fontweight="bold")
        top += TITLE
    tall = _frame_height(scene, sheet.across)
    _draw_frames(sheet, scene.pictures, top, tall)
    top += tall + 0.05
    draw_annotators(sheet.axes(top, _rows(scene)), scene.labels, near, scene.start, scene.end)
    top += _rows(scene)
    for panel in panels:
        sheet.text(top + 0.6 * HEADING, panel.heading(56 if sheet.across > 5 else 22))
        axes = sheet.axes(top + HEADING, panel_height)
        draw_panel(axes, panel, scene.labels, near, scene.start, scene.end)
        draw_time(axes, last=panel is panels[-1])
        top += HEADING + panel_height


def _draw_frames(sheet: _Sheet, pictures: Sequence[ImageU8], top: float, tall: float) -> None:
    """Frames side by side; the middle of each is over the moment that it shows."""
    cell = sheet.across / len(pictures)
    for number, picture in enumerate(pictures):
        height, width = picture.shape[:2]
        wide = min(cell - 0.02, tall * width / height)
        axes = sheet.axes(top, tall, LEFT + cell * (number + 0.5) - wide / 2, wide)
        axes.imshow(picture, interpolation="antialiased", aspect="auto")
        axes.set_axis_off()


def _middles(first: float, last: float, count: int) -> list[float]:
    """The middles of `count` equal parts, seconds."""
    return [first + (last - first) * (number + 0.5) / count for number in range(count)]


def part_of(video: Path | str, known: float, start: float | None, end: float | None) -> tuple[float, float]:
    """From where to where the figure goes, seconds.

    Args:
        video: For the message.
        known: How far the labels, or the video, go.
        start: What was asked for; None: the beginning.
        end: Likewise; None, or what lies beyond: as far as is known.

    Raises:
        ConfigError: Nothing lies between.
    """
    first = 0.0 if start is None else a_number("start", start)
    last = known if end is None else min(a_number("end", end), known)
    if not 0 <= first < last:
        raise ConfigError(
            f"{printable(str(video))}: nothing to show from {first:g} to {last:g} s;"
            f" what is labelled and was watched goes from 0 to {known:g} s"
        )
    return first, last


def check_choices(curve: Curve, width: Width, moment: Moment) -> None:
    """Refuse what is none of the values that there are.

    Raises:
        ConfigError: Likewise.
    """
    inches(width)
    if curve not in ("score", "z"):
        raise ConfigError(f"curve is {curve!r}; give 'score' or 'z'")
    if moment not in ("centre", "onset"):
        raise ConfigError(f"moment is {moment!r}; give 'centre' or 'onset'")


def no_z(name: str) -> ConfigError:
    """The error for a method that has no z."""
    return ConfigError(f"{name} has no z, for no discriminator judges its scores; show its score instead")
