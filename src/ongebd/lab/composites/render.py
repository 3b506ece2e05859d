"""From a plan to pictures, one after another: pieces, joins, the camera, what is laid over them."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from math import ceil

import numpy as np

from ongebd.lab.composites.clips import Clip
from ongebd.lab.composites.codec import Recompressor
from ongebd.lab.composites.effects import applied, camera
from ongebd.lab.composites.frames import pictures_at
from ongebd.lab.composites.kinds import CAMERA
from ongebd.lab.composites.pictures import resampled
from ongebd.lab.composites.plan import Distractor, Join, Segment, VideoPlan
from ongebd.types import ImageU8

_FINEST = 2.0  # a part of a picture is decoded at most this much larger than the whole would be


def render(plan: VideoPlan, clips: Mapping[str, Clip]) -> Generator[ImageU8, None, None]:
    """The pictures of a video, before they are encoded.

    At most two pictures are held (and a backwards piece, whole).

    Args:
        plan: Of the video.
        clips: The clips by name, as `ClipLibrary.clips` has them.

    Yields:
        RGB, uint8, (plan.height, plan.width, 3), plan.frames of them.

    Raises:
        SourceError: A clip is not what it was.
    """
    running: list[tuple[Segment, Iterator[ImageU8]]] = []
    upcoming = list(plan.segments)
    distractor: Distractor | None = None
    recompressor: Recompressor | None = None
    fps = float(plan.fps)
    for frame in range(plan.frames):
        while upcoming and upcoming[0].first <= frame:
            segment = upcoming.pop(0)
            running.append((segment, _pieces(plan, segment, clips[segment.clip])))
        running = [(segment, pictures) for segment, pictures in running if frame < segment.stop]
        picture = _joined(plan, frame, [next(pictures) for _, pictures in running])
        now = next((each for each in plan.distractors if each.first <= frame < each.stop), None)
        if now is not distractor:
            distractor, recompressor = now, None
            if now is not None and now.kind == "compression":
                recompressor = Recompressor((plan.width, plan.height), now.strength, plan.fps)
        if now is not None:
            picture = applied(picture, now, frame, fps)
        yield picture if recompressor is None else recompressor(picture)


def _joined(plan: VideoPlan, frame: int, pictures: list[ImageU8]) -> ImageU8:
    """One picture, or two mixed as the join between them asks."""
    if len(pictures) == 1:
        return pictures[0]
    join = next(join for join in plan.joins if join.first <= frame < join.first + join.frames)
    share = (frame - join.first + 1) / (join.frames + 1)
    if join.kind == "fade":
        return _faded(join, share, pictures)
    first, second = (picture.astype(np.float32) for picture in pictures)
    return (first + (second - first) * np.float32(share) + np.float32(0.5)).astype(np.uint8)


def _faded(join: Join, share: float, pictures: list[ImageU8]) -> ImageU8:
    light = np.float32(abs(1 - 2 * share))
    blank = np.float32(255 * (1 - light) if join.white else 0)
    picture = pictures[0] if share < 0.5 else pictures[1]
    return (picture.astype(np.float32) * light + blank + np.float32(0.5)).astype(np.uint8)


def _pieces(plan: VideoPlan, segment: Segment, clip: Clip) -> Iterator[ImageU8]:
    """The pictures of one segment, framed, as the camera moves."""
    numbers = [clip.at(segment.source_time(_held(plan, frame), plan.fps)) for frame in _span(segment)]
    zoom = min(segment.framing.zoom * plan.margin, _FINEST)
    cover = max(plan.width / clip.width, plan.height / clip.height)
    short_side = max(8, ceil(min(clip.width, clip.height) * cover * zoom - 0.01))
    for frame, picture in zip(_span(segment), pictures_at(clip, numbers, short_side), strict=True):
        yield _looked_at(plan, segment, frame, picture)


def _span(segment: Segment) -> range:
    return range(segment.first, segment.stop)


def _held(plan: VideoPlan, frame: int) -> int:
    """The frame whose moment is shown: in a freeze, its first one. What was missed is skipped after it."""
    for each in plan.distractors:
        if each.kind == "freeze" and each.first <= frame < each.stop:
            return each.first
    return frame


def _looked_at(plan: VideoPlan, segment: Segment, frame: int, picture: ImageU8) -> ImageU8:
    """The part of a decoded picture that is seen, at the video's size."""
    height, width = picture.shape[:2]
    size = plan.width, plan.height
    scale = min(width / size[0], height / size[1])  # of the largest part that has the video's shape
    zoom, shift_x, shift_y = plan.margin, 0.0, 0.0
    for each in plan.distractors:
        if each.kind in CAMERA and each.first <= frame < each.stop:
            more, shift_x, shift_y = camera(each, frame, float(plan.fps))
            zoom *= more
    framing = segment.framing
    outer = size[0] * scale / framing.zoom, size[1] * scale / framing.zoom
    part = outer[0] / zoom, outer[1] / zoom
    x = (width - size[0] * scale) / 2 + (size[0] * scale - outer[0]) * framing.x
    y = (height - size[1] * scale) / 2 + (size[1] * scale - outer[1]) * framing.y
    x += (outer[0] - part[0]) / 2 + shift_x * part[0]
    y += (outer[1] - part[1]) / 2 + shift_y * part[1]
    x, y = (min(max(at, 0.0), limit) for at, limit in ((x, width - part[0]), (y, height - part[1])))
    at_rest = zoom == plan.margin and not (shift_x or shift_y)
    if at_rest and abs(part[0] - size[0]) < 1.5 and abs(part[1] - size[1]) < 1.5:  # cut it out, as it is
        part = float(size[0]), float(size[1])
        x, y = (
            float(min(round(at), round(limit))) for at, limit in ((x, width - size[0]), (y, height - size[1]))
        )
    seen = resampled(picture, x, y, *part, size)
    return np.ascontiguousarray(seen[:, ::-1]) if framing.mirror else seen
