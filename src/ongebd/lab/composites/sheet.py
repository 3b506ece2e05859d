"""A page to look at: three examples of each kind, decoded from the written files."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from ongebd.common.writing import write_whole
from ongebd.errors import OngebdError, os_errors
from ongebd.lab.composites.config import BOUNDARY_KINDS, DISTRACTOR_KINDS
from ongebd.lab.composites.distractors import words
from ongebd.lab.composites.records import CompositeBoundary, CompositeDistractor, Composites
from ongebd.video.reader import VideoReader

SHEET = "contact-sheet.png"

_WIDE, _HIGH = 128, 72  # pixels of a frame, at most
_EXAMPLES = 3  # in a row
_LEFT, _EXAMPLE, _ROW = 150, 4 * (_WIDE + 2) + 20, _HIGH + 8
_AROUND = 0.25  # seconds


def write_contact_sheet(composites: Composites) -> Path:
    """Draw `contact-sheet.png` into the folder of the videos: a row for each kind, with its count.

    Each example has four frames. The last two of a sudden boundary show what is new. Of anything else, the
    first is just before, two are within, and the last is just after.

    Returns:
        The picture's path.

    Raises:
        SourceError: A video can't be read.
        OngebdError: The picture can't be written.
    """
    from matplotlib.image import imsave

    found = defaultdict(list)
    for video in composites.videos.values():
        events: tuple[CompositeBoundary | CompositeDistractor, ...] = (*video.boundaries, *video.distractors)
        for each in events:
            first, stop = round(each.start * video.fps), round(each.end * video.fps)
            if first == stop:
                away = round(_AROUND * video.fps)
                frames = [first - away, first - 1, first, first + away]
            else:
                third = (stop - first) // 3
                frames = [first - 1, first + third, stop - 1 - third, stop]
            found[each.kind].append((video, [min(max(frame, 0), video.frames - 1) for frame in frames]))

    kinds = [kind for kind in (*BOUNDARY_KINDS, *DISTRACTOR_KINDS) if kind in found]
    page = np.full((len(kinds) * _ROW, _LEFT + _EXAMPLES * _EXAMPLE, 3), 255, np.uint8)
    places = defaultdict(list)  # of each frame on the page, by video
    for row, kind in enumerate(kinds):
        label = words(f"{kind} ({len(found[kind])})", 12)[:_ROW, : _LEFT - 6]
        box = page[row * _ROW : row * _ROW + len(label), 6 : 6 + label.shape[1]]
        box -= (255 * label).astype(np.uint8)[..., None]
        shown = min(len(found[kind]), _EXAMPLES)
        for column in range(shown):
            video, frames = found[kind][(2 * column + 1) * len(found[kind]) // (2 * shown)]
            for order, number in enumerate(frames):
                left = _LEFT + column * _EXAMPLE + order * (_WIDE + 2)
                places[video.path].append((number, row * _ROW, left))
    for path, wanted in places.items():
        with VideoReader(path, short_side=_HIGH) as reader:
            for frame in reader:
                for _, top, left in (place for place in wanted if place[0] == frame.index):
                    height, width = frame.rgb.shape[:2]
                    y, x = max(0, (height - _HIGH) // 2), max(0, (width - _WIDE) // 2)
                    picture = frame.rgb[y : y + _HIGH, x : x + _WIDE]
                    page[top : top + len(picture), left : left + picture.shape[1]] = picture

    sheet = composites.folder / SHEET
    with os_errors(sheet, "free some space", OngebdError), write_whole(sheet) as part:
        imsave(part, page, format="png", metadata={"Software": None})  # type: ignore[dict-item]
    return sheet
