"""A page to look at: some examples of each kind, decoded from the written files."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ongebd.common.lettering import lettering
from ongebd.common.text import printable, shortened
from ongebd.errors import OngebdError
from ongebd.lab.composites.kinds import BOUNDARY_KINDS, DISTRACTOR_KINDS, MOTIONS
from ongebd.lab.composites.records import (
    CompositeBoundary,
    CompositeDistractor,
    Composites,
    CompositeVideo,
)
from ongebd.types import ImageU8
from ongebd.video.reader import VideoReader

SHEET = "contact-sheet.png"

_THUMBNAIL = (128, 72)  # the box in pixels, width and height, that a thumbnail fits into
_ACROSS = 3  # examples in a row
_DPI = 100
_LEFT, _TOP, _CAPTION, _GAP, _BETWEEN = 150, 64, 17, 2, 22  # pixels
_MARK = np.array([213, 94, 0], np.uint8)  # Okabe and Ito's vermilion
_AROUND = 0.25  # seconds before and after a boundary
_AROUND_MOTION = 0.5  # where it is the motion that changes


@dataclass(frozen=True, slots=True)
class _Example:
    """Four frames of a video that show a boundary or a distractor; those at `marked` are outlined."""

    video: CompositeVideo
    caption: str
    frames: tuple[int, int, int, int]
    marked: tuple[int, ...]


def write_contact_sheet(composites: Composites, rows_per_kind: int = 1) -> Path:
    """Draw `contact-sheet.png` into the folder of the videos.

    A boundary is shown a quarter second before it (a half, where it is the motion that changes), in the last
    frame before, in the labelled frame (outlined) and as long after. One that takes time is shown in the last
    frame before, halfway to its centre, at its centre (outlined) and in the first frame after. A distractor
    is shown just before, twice within (outlined) and just after.

    Args:
        composites: Of `read_composites`; the files are there.
        rows_per_kind: Each has three examples, taken evenly from all videos.

    Returns:
        The picture's path.

    Raises:
        SourceError: A video cannot be read.
        OngebdError: The picture cannot be written.
    """
    rows = _rows(composites.videos.values(), _ACROSS * rows_per_kind)
    pictures = _pictures([example for _, _, examples in rows for example in examples])
    path = composites.folder / SHEET
    aside = path.with_name(f".{SHEET}.part")
    png = _drawn(composites, rows, pictures)
    try:
        aside.write_bytes(png)
        aside.replace(path)
    except OSError as problem:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise OngebdError(f"cannot write {path}: {problem.strerror}; free some space") from None
    return path


def _rows(videos: Iterable[CompositeVideo], most: int) -> list[tuple[str, str, list[_Example]]]:
    """(kind, how many of how many are shown, examples) in rows of `_ACROSS`."""
    boundaries: dict[str, list[_Example]] = defaultdict(list)
    distractors: dict[str, list[_Example]] = defaultdict(list)
    for video in videos:
        for boundary in video.boundaries:
            boundaries[boundary.kind].append(_of_boundary(video, boundary))
        for distractor in video.distractors:
            distractors[distractor.kind].append(_of_distractor(video, distractor))
    rows = []
    for kinds, found in ((BOUNDARY_KINDS, boundaries), (DISTRACTOR_KINDS, distractors)):
        for kind in kinds:
            there = found[kind]
            if not there:
                continue
            chosen = [there[place] for place in _evenly(len(there), most)]
            for start in range(0, len(chosen), _ACROSS):
                counted = f"{len(chosen)} of {len(there)}" if start == 0 else ""
                rows.append((kind if start == 0 else "", counted, chosen[start : start + _ACROSS]))
    return rows


def _evenly(count: int, most: int) -> list[int]:
    """Places spread over a list.

    >>> _evenly(10, 3), _evenly(2, 3)
    ([1, 5, 8], [0, 1])
    """
    if count <= most:
        return list(range(count))
    return [int((place + 0.5) * count / most) for place in range(most)]


def _of_boundary(video: CompositeVideo, boundary: CompositeBoundary) -> _Example:
    first, frame, end = (round(time * video.fps) for time in (boundary.start, boundary.time, boundary.end))
    around = round((_AROUND_MOTION if boundary.kind in MOTIONS else _AROUND) * video.fps)
    frames = (first - 1, (first + frame) // 2, frame, end)
    if first == end:
        frames = (frame - around, frame - 1, frame, frame + around)
    seconds = f" ({boundary.end - boundary.start:.2f} s long)" if first != end else ""
    return _Example(video, f"{boundary.time:.3f} s{seconds}", _within(video, frames), (2,))


def _of_distractor(video: CompositeVideo, distractor: CompositeDistractor) -> _Example:
    first, stop = (round(time * video.fps) for time in (distractor.start, distractor.end))
    frames = (first - 1, first + (stop - first) // 3, first + (stop - first) * 2 // 3, stop)
    caption = f"{distractor.start:.3f} – {distractor.end:.3f} s"
    return _Example(video, caption, _within(video, frames), (1, 2))


def _within(video: CompositeVideo, frames: Sequence[int]) -> tuple[int, int, int, int]:
    a, b, c, d = (min(max(frame, 0), video.frames - 1) for frame in frames)
    return a, b, c, d


def _pictures(examples: Sequence[_Example]) -> dict[tuple[str, int], ImageU8]:
    """Thumbnails by video and frame, decoded from the written files."""
    wanted: dict[str, tuple[CompositeVideo, set[int]]] = {}
    for example in examples:
        wanted.setdefault(example.video.id, (example.video, set()))[1].update(example.frames)
    pictures: dict[tuple[str, int], ImageU8] = {}
    for name, (video, frames) in wanted.items():
        with VideoReader(video.path, short_side=_THUMBNAIL[1]) as reader:
            for frame in reader:
                if frame.index in frames:
                    pictures[name, frame.index] = _fitted(frame.rgb)
    return pictures


def _fitted(picture: ImageU8) -> ImageU8:
    """A thumbnail without what is too wide or too tall for its box."""
    width, height = _THUMBNAIL
    top, left = max(0, (picture.shape[0] - height) // 2), max(0, (picture.shape[1] - width) // 2)
    return picture[top : top + height, left : left + width]


def _drawn(
    composites: Composites,
    rows: Sequence[tuple[str, str, list[_Example]]],
    pictures: dict[tuple[str, int], ImageU8],
) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.image import imsave

    wide, high = _THUMBNAIL
    strip = 4 * wide + 3 * _GAP
    row = high + _CAPTION + 8
    width = _LEFT + _ACROSS * (strip + _BETWEEN)
    height = _TOP + len(rows) * row + 10
    pasted: list[tuple[ImageU8, int, int, bool]] = []
    with lettering(8):
        figure = Figure(figsize=((width + 0.01) / _DPI, (height + 0.01) / _DPI), dpi=_DPI)

        def write(x: float, y: float, text: str, **look: Any) -> None:
            figure.text(x / width, 1 - y / height, printable(text), va="top", **look)

        total = sum(video.duration for video in composites.videos.values())
        write(10, 10, f"{len(composites.videos)} videos, {total / 60:.1f} min", fontsize=13)
        write(
            10,
            36,
            "outlined: the labelled frame of a boundary; what must not be taken for one",
            color="#444444",
        )
        for place, (kind, counted, examples) in enumerate(rows):
            top = _TOP + place * row
            write(10, top + _CAPTION, kind, fontsize=12)
            write(10, top + _CAPTION + 20, counted, color="#444444")
            for number, example in enumerate(examples):
                left = _LEFT + number * (strip + _BETWEEN)
                name = shortened(example.video.id, 24)
                write(left, top + 2, f"{example.caption}   {name}", color="#222222")
                for order, frame in enumerate(example.frames):
                    x = left + order * (wide + _GAP)
                    picture = pictures.get((example.video.id, frame))
                    if picture is not None:
                        pasted.append((picture, x, top + _CAPTION, order in example.marked))
        canvas = FigureCanvasAgg(figure)
        canvas.draw()  # type: ignore[no-untyped-call]
        page = np.array(canvas.buffer_rgba())[:, :, :3]  # type: ignore[no-untyped-call]
    for picture, x, y, outlined in pasted:  # not as images of the figure: those take half a gigabyte
        _paste(page, picture, x, y, outlined=outlined)
    buffer = io.BytesIO()
    imsave(buffer, page, format="png", metadata={"Software": None})  # type: ignore[dict-item]
    return buffer.getvalue()


def _paste(page: ImageU8, picture: ImageU8, x: int, y: int, *, outlined: bool) -> None:
    high, wide = picture.shape[:2]
    x += (_THUMBNAIL[0] - wide) // 2
    page[y : y + high, x : x + wide] = picture
    if outlined:
        for edge in (slice(0, 2), slice(-2, None)):
            page[y : y + high, x : x + wide][edge] = _MARK
            page[y : y + high, x : x + wide][:, edge] = _MARK
