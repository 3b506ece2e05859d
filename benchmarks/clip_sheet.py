"""A picture to look at: ten real clips as film strips, what raters marked, and what one or two methods found.

    python benchmarks/clip_sheet.py --clips DIR --labels model_rated_clips.json --work DIR --out sheet.png
        [--methods window-mean …] [--predictions NAME=FOLDER …] [--ids NAME …]

The clips are the first ten of the folder by the hash of their name, so that nobody chose them; `--ids` names
others. Raters are three passes of a vision-language model, not people. A method's mark is its *onset*, the
first frame that fired; a bar reaches to its centre and the frame at which that was decided. Below, in grey,
the score of the first method with its threshold.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from footage.films import Film
from footage.listening import Curve, Found, Listening
from footage.methods import method_of
from footage.scores import row
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from real_clips import films_of, pairs, predicted

from ongebd.common.lettering import lettering
from ongebd.data import LabelSet, VideoLabels, read_labels
from ongebd.errors import OngebdError
from ongebd.video import VideoReader

WIDTH, PANEL, DPI = 20.0, 3.15, 100  # inches, inches, pixels an inch
LEFT, RIGHT = 0.105, 0.988  # of the axes, as parts of the width
STRIP, MARKS, CURVE, TITLE = 0.95, 1.05, 0.45, 0.30  # inches
# Colours that the colour-blind tell apart (Okabe and Ito); methods differ in their marks too.
RATER, COLOURS, SHAPES = "#1A1A1A", ("#D55E00", "#0072B2"), ("v", "^")
SCORE, THRESHOLD, GRID = "#7A7A7A", "#B0B0B0", "#E4E4E4"
Picture = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Shown:
    """One clip with all that is drawn of it."""

    video: VideoLabels
    pictures: list[tuple[float, Picture]]
    found: Mapping[str, Found]
    curve: Curve | None
    f1: Mapping[str, float]


def main() -> int:
    """Look, draw, write."""
    asker = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asker.add_argument("--clips", type=Path, nargs="+", required=True, help="folders of clips")
    asker.add_argument("--labels", type=Path, required=True, help="the ratings")
    asker.add_argument("--work", type=Path, required=True, help="folder for features")
    asker.add_argument("--methods", nargs="*", default=["window-mean"], help="one or two")
    asker.add_argument("--predictions", nargs="*", default=[], metavar="NAME=FOLDER")
    asker.add_argument("--ids", nargs="+", help="clips, by the names of their files without ending")
    asker.add_argument("--count", type=int, default=10)
    asker.add_argument("--out", type=Path, default=Path("benchmarks/results/clip_sheet.png"))
    asked = asker.parse_args()
    try:
        draw(asked)
    except OngebdError as problem:
        print(f"clip_sheet: {problem}", file=sys.stderr)
        return 2
    return 0


def draw(asked: argparse.Namespace) -> None:
    """All of it."""
    labels = read_labels(asked.labels, dataset="custom")
    files = {path.stem for folder in asked.clips for path in folder.rglob("*")}
    here = labels.restrict(files, "the folders")
    chosen = here.restrict(asked.ids or drawn_lots(list(here.videos), asked.count), "--ids")
    shown = looked_at(asked, chosen, films_of(chosen, asked.clips))
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    with lettering(11):
        figure = sheet(shown)
        figure.savefig(asked.out, dpi=DPI, facecolor="white")
    for each in shown:
        print(each.video.id, *(f"{name} {f1:.2f}" for name, f1 in each.f1.items()))


def drawn_lots(names: Sequence[str], count: int) -> list[str]:
    """The first names by their hash: a draw that anybody can repeat."""
    return sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:count]


def looked_at(asked: argparse.Namespace, labels: LabelSet, films: Sequence[Film]) -> list[Shown]:
    """What is to be drawn of each clip."""
    listening = Listening(asked.work)
    methods = [method_of(name) for name in asked.methods]
    given = {name: predicted(name, Path(folder), labels) for name, folder in pairs(asked.predictions)}
    shown = []
    for film in films:
        heard = listening.one(methods, film)
        found = {name: each for name, (each, _) in heard.items()} | {n: g[film.id] for n, g in given.items()}
        curve = next((curve for _, curve in heard.values()), None)
        alone = labels.restrict([film.id], "one clip")
        video = alone.videos[film.id]
        f1 = {name: row("", alone, {film.id: each}).at(0.5)[2] for name, each in found.items()}
        shown.append(Shown(video, pictures_of(film.path, video.duration), found, curve, f1))
    return shown


def pictures_of(path: Path, duration: float) -> list[tuple[float, Picture]]:
    """Pictures some 0.5 to 1.2 s apart, each with the middle of the stretch that it stands for."""
    count = int(np.clip(round(duration / 0.75), 12, 20))
    wanted = [(place + 0.5) * duration / count for place in range(count)]
    pictures: list[tuple[float, Picture]] = []
    with VideoReader(path, short_side=160) as reader:
        for frame in reader:
            if len(pictures) < count and frame.time >= wanted[len(pictures)] - 0.02:
                pictures.append((wanted[len(pictures)], frame.rgb))
            if len(pictures) == count:
                break
    return pictures


def sheet(shown: Sequence[Shown]) -> Figure:
    """The picture."""
    head = 0.55
    height = head + PANEL * len(shown)
    figure = Figure(figsize=(WIDTH, height))
    for place, each in enumerate(shown):
        top = height - head - PANEL * place
        panel(figure, each, top, height)
    names = list(shown[0].found)
    handles: list[Line2D | Patch] = [Line2D([], [], color=RATER, marker="|", markersize=12, linewidth=0)]
    handles += [
        Line2D([], [], color=COLOURS[k % 2], marker=SHAPES[k % 2], markersize=9, linewidth=2)
        for k, _ in enumerate(names)
    ]
    handles += [Line2D([], [], color=SCORE), Line2D([], [], color=THRESHOLD, linestyle="--")]
    words = ["rated boundary (model ratings, not people)"]
    words += [f"{name}: onset, and to when its centre was decided" for name in names]
    words += [f"score of {names[0]}", "its threshold"]
    figure.legend(
        handles, words, loc="upper left", bbox_to_anchor=(LEFT - 0.008, 1.0), ncols=6, frameon=False
    )
    return figure


def panel(figure: Figure, shown: Shown, top: float, height: float) -> None:
    """One clip, from `top` inches downwards."""
    names = list(shown.found)
    marked = any(len(times) for times in shown.video.boundaries)
    scores = [f"{name} {shown.f1[name]:.2f}" for name in names] if marked else ["no rater saw a boundary"]
    title = f"{shown.video.id}    ({'F1 at ±0.5 s: ' if marked else ''}{', '.join(scores)})"
    figure.text(LEFT, (top - TITLE + 0.07) / height, title, fontsize=11.5, fontweight="bold", va="bottom")

    def below(offset: float, size: float) -> Axes:
        bottom = (top - offset - size) / height
        axes = figure.add_axes((LEFT, bottom, RIGHT - LEFT, size / height))
        axes.set_xlim(0, shown.video.duration)
        return axes

    strip(below(TITLE, STRIP), shown)
    marks(below(TITLE + STRIP, MARKS), shown)
    score(below(TITLE + STRIP + MARKS, CURVE), shown)


def strip(axes: Axes, shown: Shown) -> None:
    """The pictures, each over the stretch of time in whose middle it was taken."""
    inches = (RIGHT - LEFT) * WIDTH / len(shown.pictures)
    half = shown.video.duration / len(shown.pictures) / 2
    for middle, picture in shown.pictures:
        extent = (middle - half, middle + half, 0.0, 1.0)
        axes.imshow(
            filled(picture, inches / STRIP), extent=extent, aspect="auto", interpolation="antialiased"
        )
        axes.axvline(middle + half, color="white", linewidth=1.5)
    axes.set(xlim=(0, shown.video.duration), ylim=(0, 1), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def filled(picture: Picture, aspect: float) -> Picture:
    """The middle of a picture, in an aspect of width over height."""
    height, width = picture.shape[:2]
    wide, high = min(width, round(height * aspect)), min(height, round(width / aspect))
    left, top = (width - wide) // 2, (height - high) // 2
    return picture[top : top + high, left : left + wide]


def marks(axes: Axes, shown: Shown) -> None:
    """Raters' boundaries, a row each, and below them what the methods found."""
    raters = len(shown.video.boundaries)
    rows = raters + 1.5 * len(shown.found)
    for place, times in enumerate(shown.video.boundaries):
        axes.vlines(times, rows - place - 0.9, rows - place - 0.1, color=RATER, linewidth=2.2)
    labels = [(rows - place - 0.5, f"rater {place + 1}") for place in range(raters)]
    for place, (name, found) in enumerate(shown.found.items()):
        level = rows - raters - 1.5 * place - 0.75
        colour = COLOURS[place % 2]
        inside = found.onsets <= shown.video.duration
        onsets = found.onsets[inside]
        ends = np.fmax(onsets, found.decided[inside])
        levels = np.full(len(onsets), level)
        axes.hlines(levels, onsets, ends, color=colour, linewidth=3)
        axes.plot(onsets, levels, SHAPES[place % 2], color=colour, ms=9)
        labels.append((level, name))
        for onset, end, following in zip(onsets, ends, np.append(onsets, np.inf)[1:], strict=True):
            write_time(axes, onset, end, following, level, colour)
    axes.set(ylim=(0, rows), xticks=[])
    axes.set_yticks([level for level, _ in labels], [label for _, label in labels], fontsize=9)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", color=GRID)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)


def write_time(axes: Axes, onset: float, end: float, following: float, level: float, colour: str) -> None:
    """An onset's time behind its bar, where there is room before the next one."""
    width = 0.026 * axes.get_xlim()[1]
    last = end + width > axes.get_xlim()[1]
    if following < end + width:
        return
    axes.annotate(
        f"{onset:.1f}",
        (onset if last else end, level),
        xytext=(-7 if last else 6, 0),
        textcoords="offset points",
        ha="right" if last else "left",
        va="center",
        fontsize=9,
        color=colour,
    )


def score(axes: Axes, shown: Shown) -> None:
    """The first method's score of each frame."""
    axes.set_yticks([])
    axes.spines[["top", "left", "right"]].set_visible(False)
    axes.tick_params(axis="x", labelsize=9, pad=1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} s")
    if shown.curve is None or not len(shown.curve.times):
        return
    inside = shown.curve.times <= shown.video.duration
    times, scores, thresholds = (
        part[inside] for part in (shown.curve.times, shown.curve.scores, shown.curve.thresholds)
    )
    axes.fill_between(times, scores, color=SCORE, alpha=0.35, linewidth=0)
    axes.plot(times, scores, color=SCORE, linewidth=1.1)
    known = np.where(thresholds > 0, thresholds, np.nan)
    axes.plot(times, known, color=THRESHOLD, linewidth=1.1, linestyle="--")
    axes.set_ylim(0, 1.1 * max(float(scores.max(initial=0.0)), 1e-6))
    name = next(iter(shown.found))
    axes.set_ylabel(f"{name},\nscore", rotation=0, ha="right", va="center", fontsize=9)


if __name__ == "__main__":
    sys.exit(main())
