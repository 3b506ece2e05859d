"""A page to look at: some examples of each kind, decoded from the written files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ongebd.common.lettering import lettering
from ongebd.common.text import printable, shortened
from ongebd.common.writing import write_whole
from ongebd.errors import OngebdError, os_errors
from ongebd.lab.composites.config import BOUNDARY_KINDS, DISTRACTOR_KINDS, MOTIONS
from ongebd.lab.composites.records import (
    CompositeBoundary,
    CompositeDistractor,
    Composites,
    CompositeVideo,
)
from ongebd.types import ImageU8
from ongebd.video.reader import VideoReader

SHEET = "contact-sheet.png"

_WIDE, _HIGH = 128, 72  # the box in pixels that a thumbnail fits into
_ACROSS = 3  # examples in a row
_DPI = 100
_LEFT, _TOP, _CAPTION, _GAP, _BETWEEN = 150, 64, 17, 2, 22  # pixels
_STRIP, _ROW = 4 * _WIDE + 3 * _GAP, _HIGH + _CAPTION + 8
_MARK = np.array([213, 94, 0], np.uint8)  # Okabe and Ito's vermilion
_AROUND = 0.25  # seconds before and after a boundary
_AROUND_MOTION = 0.5  # where the motion changes


@dataclass(frozen=True, slots=True)
class _Example:
    """Four frames of a video that show a boundary or a distractor; those at `marked` are outlined."""

    video: CompositeVideo
    caption: str
    frames: list[int]
    marked: tuple[int, ...]


def write_contact_sheet(composites: Composites) -> Path:
    """Draw `contact-sheet.png` into the folder of the videos: three examples of each kind, spread evenly.

    A sudden boundary is shown a quarter second before (a half, where the motion changes), in the last frame
    before, in the labelled frame (outlined) and as long after. One that takes time is shown in the last frame
    before, halfway to its centre, at its centre (outlined) and in the first frame after. A distractor is
    shown just before, twice within (outlined) and just after.

    Returns:
        The picture's path.

    Raises:
        SourceError: A video can't be read.
        OngebdError: The picture can't be written.
    """
    from matplotlib.image import imsave

    path = composites.folder / SHEET
    page = _drawn(composites, _examples(composites))
    with os_errors(path, "free some space", OngebdError), write_whole(path) as part:
        imsave(part, page, format="png", metadata={"Software": None})  # type: ignore[dict-item]
    return path


def _examples(composites: Composites) -> dict[str, tuple[int, list[_Example]]]:
    """By kind: how many there are, and the chosen ones."""
    found: dict[str, list[_Example]] = defaultdict(list)
    for video in composites.videos.values():
        for boundary in video.boundaries:
            found[boundary.kind].append(_of_boundary(video, boundary))
        for distractor in video.distractors:
            found[distractor.kind].append(_of_distractor(video, distractor))
    chosen = {}
    for kind in (*BOUNDARY_KINDS, *DISTRACTOR_KINDS):
        there = found[kind]
        if there:
            every = max(len(there) / _ACROSS, 1)
            places = [int((place + 0.5) * every) for place in range(min(len(there), _ACROSS))]
            chosen[kind] = len(there), [there[place] for place in places]
    return chosen


def _of_boundary(video: CompositeVideo, boundary: CompositeBoundary) -> _Example:
    first, frame, end = (round(time * video.fps) for time in (boundary.start, boundary.time, boundary.end))
    around = round((_AROUND_MOTION if boundary.kind in MOTIONS else _AROUND) * video.fps)
    if first == end:
        frames, seconds = [frame - around, frame - 1, frame, frame + around], ""
    else:
        frames = [first - 1, (first + frame) // 2, frame, end]
        seconds = f" ({boundary.end - boundary.start:.2f} s long)"
    return _Example(video, f"{boundary.time:.3f} s{seconds}", _within(video, frames), (2,))


def _of_distractor(video: CompositeVideo, distractor: CompositeDistractor) -> _Example:
    first, stop = (round(time * video.fps) for time in (distractor.start, distractor.end))
    frames = [first - 1, first + (stop - first) // 3, first + (stop - first) * 2 // 3, stop]
    caption = f"{distractor.start:.3f} – {distractor.end:.3f} s"
    return _Example(video, caption, _within(video, frames), (1, 2))


def _within(video: CompositeVideo, frames: Sequence[int]) -> list[int]:
    return [min(max(frame, 0), video.frames - 1) for frame in frames]


def _thumbnails(examples: Sequence[_Example]) -> dict[tuple[str, int], ImageU8]:
    """By video and frame, without what is too wide or too tall for the box."""
    wanted: dict[str, set[int]] = defaultdict(set)
    for example in examples:
        wanted[example.video.id].update(example.frames)
    pictures: dict[tuple[str, int], ImageU8] = {}
    for name, path in {example.video.id: example.video.path for example in examples}.items():
        with VideoReader(path, short_side=_HIGH) as reader:
            for frame in reader:
                if frame.index in wanted[name]:
                    height, width = frame.rgb.shape[:2]
                    top, left = max(0, (height - _HIGH) // 2), max(0, (width - _WIDE) // 2)
                    pictures[name, frame.index] = frame.rgb[top : top + _HIGH, left : left + _WIDE]
    return pictures


def _drawn(composites: Composites, rows: dict[str, tuple[int, list[_Example]]]) -> ImageU8:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    pictures = _thumbnails([example for _, examples in rows.values() for example in examples])
    width, height = _LEFT + _ACROSS * (_STRIP + _BETWEEN), _TOP + len(rows) * _ROW + 10
    with lettering(8):
        figure = Figure(figsize=((width + 0.01) / _DPI, (height + 0.01) / _DPI), dpi=_DPI)

        def write(x: float, y: float, text: str, **look: Any) -> None:
            figure.text(x / width, 1 - y / height, printable(text), va="top", **look)

        total = sum(video.duration for video in composites.videos.values())
        write(10, 10, f"{len(composites.videos)} videos, {total / 60:.1f} min", fontsize=13)
        about = "outlined: the labelled frame of a boundary; frames of a distractor, which is not a boundary"
        write(10, 36, about, color="#444444")
        for top, (kind, (count, examples)) in zip(range(_TOP, height, _ROW), rows.items(), strict=False):
            write(10, top + _CAPTION, kind, fontsize=12)
            write(10, top + _CAPTION + 20, f"{len(examples)} of {count}", color="#444444")
            for number, example in enumerate(examples):
                caption = f"{example.caption}   {shortened(example.video.id, 24)}"
                write(_LEFT + number * (_STRIP + _BETWEEN), top + 2, caption, color="#222222")
        canvas = FigureCanvasAgg(figure)
        canvas.draw()  # type: ignore[no-untyped-call]
        page: ImageU8 = np.array(canvas.buffer_rgba())[:, :, :3]  # type: ignore[no-untyped-call]
    # Not as images of the figure: those take half a gigabyte.
    for top, (_, examples) in zip(range(_TOP, height, _ROW), rows.values(), strict=False):
        for number, example in enumerate(examples):
            for order, frame in enumerate(example.frames):
                left = _LEFT + number * (_STRIP + _BETWEEN) + order * (_WIDE + _GAP)
                _paste(
                    page[top + _CAPTION :, left:], pictures[example.video.id, frame], order in example.marked
                )
    return page


def _paste(page: ImageU8, picture: ImageU8, outlined: bool) -> None:
    high, wide = picture.shape[:2]
    left = (_WIDE - wide) // 2
    box = page[:high, left : left + wide]
    box[:] = picture
    if outlined:
        for edge in (slice(0, 2), slice(-2, None)):
            box[edge] = _MARK
            box[:, edge] = _MARK
