"""From a plan to pictures, one after another: pieces, joins, the camera, what is laid over them."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from math import ceil

import numpy as np

from ongebd.lab.composites.codec import Recompressor
from ongebd.lab.composites.config import CAMERA
from ongebd.lab.composites.distractors import applied, camera
from ongebd.lab.composites.frames import pictures_at
from ongebd.lab.composites.pictures import resampled
from ongebd.lab.composites.plan import Distractor, Segment, VideoPlan
from ongebd.types import ImageU8

_FINEST = 2.0  # a cropped picture is decoded at most so much larger than the whole one


def render(plan: VideoPlan) -> Generator[ImageU8, None, None]:
    """The pictures of a video, before they are encoded.

    At most two pictures are held in memory (and a backwards piece as a whole).

    Yields:
        RGB, uint8, (plan.height, plan.width, 3), plan.frames of them.

    Raises:
        SourceError: A clip has changed.
    """
    running: list[tuple[Segment, Iterator[ImageU8]]] = []
    upcoming = list(plan.segments)
    distractor: Distractor | None = None
    recompressor: Recompressor | None = None
    for frame in range(plan.frames):
        while upcoming and upcoming[0].first <= frame:
            segment = upcoming.pop(0)
            running.append((segment, _pieces(plan, segment)))
        running = [(segment, pictures) for segment, pictures in running if frame < segment.stop]
        picture = _joined(plan, frame, [next(pictures) for _, pictures in running])
        now = _distractor_at(plan, frame)
        if now is not distractor:
            distractor, recompressor = now, None
            if now is not None and now.kind == "compression":
                recompressor = Recompressor((plan.width, plan.height), now.strength, plan.fps)
        if now is not None:
            picture = applied(picture, now, frame, float(plan.fps))
        yield picture if recompressor is None else recompressor(picture)


def _distractor_at(plan: VideoPlan, frame: int) -> Distractor | None:
    return next((each for each in plan.distractors if each.first <= frame < each.stop), None)


def _joined(plan: VideoPlan, frame: int, pictures: list[ImageU8]) -> ImageU8:
    """One picture, or two mixed as the join between them requires."""
    if len(pictures) == 1:
        return pictures[0]
    join = next(join for join in plan.joins if join.first <= frame < join.first + join.frames)
    share = (frame - join.first + 1) / (join.frames + 1)
    first, second = (picture.astype(np.float32) for picture in pictures)
    if join.kind == "fade":
        light = np.float32(abs(1 - 2 * share))
        blank = np.float32(255 * (1 - light) if join.white else 0)
        mixed = (first if share < 0.5 else second) * light + blank
    else:
        mixed = first + (second - first) * np.float32(share)
    return (mixed + np.float32(0.5)).astype(np.uint8)


def _pieces(plan: VideoPlan, segment: Segment) -> Iterator[ImageU8]:
    """The pictures of one segment, framed, as the camera moves."""
    clip, frames = segment.piece.clip, range(segment.first, segment.stop)
    numbers = []
    for frame in frames:
        freeze = _distractor_at(plan, frame)
        if freeze is not None and freeze.kind == "freeze":  # shows its first frame; what it missed is skipped
            frame = freeze.first
        numbers.append(clip.at(segment.source_time(frame, plan.fps)))
    zoom = min(segment.piece.framing.zoom * plan.margin, _FINEST)
    cover = max(plan.width / clip.width, plan.height / clip.height)
    short_side = max(8, ceil(min(clip.width, clip.height) * cover * zoom - 0.01))
    for frame, picture in zip(frames, pictures_at(clip, numbers, short_side), strict=True):
        yield _visible(plan, segment, frame, picture)


def _visible(plan: VideoPlan, segment: Segment, frame: int, picture: ImageU8) -> ImageU8:
    """The part of a decoded picture that is seen, at the video's size."""
    height, width = picture.shape[:2]
    size = plan.width, plan.height
    scale = min(width / size[0], height / size[1])  # of the largest part that has the video's shape
    zoom, shift_x, shift_y = plan.margin, 0.0, 0.0
    moved = _distractor_at(plan, frame)
    if moved is not None and moved.kind in CAMERA:
        more, shift_x, shift_y = camera(moved, frame, float(plan.fps))
        zoom *= more
    framing = segment.piece.framing
    outer = size[0] * scale / framing.zoom, size[1] * scale / framing.zoom
    part = outer[0] / zoom, outer[1] / zoom
    x = (width - size[0] * scale) / 2 + (size[0] * scale - outer[0]) * framing.x
    y = (height - size[1] * scale) / 2 + (size[1] * scale - outer[1]) * framing.y
    x += (outer[0] - part[0]) / 2 + shift_x * part[0]
    y += (outer[1] - part[1]) / 2 + shift_y * part[1]
    x, y = (min(max(at, 0.0), limit) for at, limit in ((x, width - part[0]), (y, height - part[1])))
    at_rest = zoom == plan.margin and not (shift_x or shift_y)
    if at_rest and abs(part[0] - size[0]) < 1.5 and abs(part[1] - size[1]) < 1.5:  # cut it out unchanged
        part = float(size[0]), float(size[1])
        x, y = (
            float(min(round(at), round(limit))) for at, limit in ((x, width - size[0]), (y, height - size[1]))
        )
    seen = resampled(picture, x, y, *part, size)
    return np.ascontiguousarray(seen[:, ::-1]) if framing.mirror else seen
