"""From a plan to pictures: frames of clips, pieces, joins, the camera, what is laid over them."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from math import ceil
from pathlib import Path

import av.error
import numpy as np
import numpy.typing as npt
from av.codec.context import ThreadType
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ongebd.errors import SourceError
from ongebd.lab.composites.clips import Clip
from ongebd.lab.composites.codec import Recompressor
from ongebd.lab.composites.config import CAMERA
from ongebd.lab.composites.distractors import applied, camera
from ongebd.lab.composites.pictures import SIDE, resampled, small_luma
from ongebd.lab.composites.plan import Distractor, Segment, VideoPlan
from ongebd.types import ImageU8
from ongebd.video.picture import Fit, RgbMaker
from ongebd.video.source import open_container, pick_stream

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


_SEEK_FROM = 5.0  # seconds; nearer to the start, decoding from there is as fast
_LEAD = 2.0  # seconds to seek before the wanted frame


def pictures_at(clip: Clip, numbers: Sequence[int], short_side: int) -> Iterator[ImageU8]:
    """The pictures of some frames, in the given order.

    Args:
        clip: The clip.
        numbers: Of the frames, from 0; never decreasing or never increasing. In the latter case all pictures
            are held in memory.
        short_side: Of the pictures, pixels.

    Yields:
        Upright RGB, (height, width, 3).

    Raises:
        SourceError: The file has changed since it was read.
    """
    if numbers[-1] < numbers[0]:
        wanted = sorted(set(numbers))
        held = dict(zip(wanted, pictures_at(clip, wanted, short_side), strict=True))
        yield from (held[number] for number in numbers)
        return
    at = 0
    with closing(_numbered(clip, numbers[0])) as frames:
        maker = RgbMaker(Fit(short_side))
        for number, frame in frames:
            if number < numbers[at]:
                continue
            if number > numbers[at]:
                break
            picture = maker(frame)
            while at < len(numbers) and numbers[at] == number:
                yield picture
                at += 1
            if at == len(numbers):
                return
    raise SourceError(f"{clip.path}: has changed since it was read; compose again")


def _numbered(clip: Clip, first: int) -> Generator[tuple[int, VideoFrame], None, None]:
    """Frames with their numbers, from one at or before `first` on.

    Seeking makes some files decode to other pictures, so the first one is compared.
    """
    if clip.pts is not None and clip.times[first] > _SEEK_FROM:
        with closing(_sought(clip, clip.pts, first)) as frames:
            for number, frame in frames:
                if number >= first:
                    picture = small_luma(RgbMaker(Fit(SIDE))(frame))
                    if number > first or not np.array_equal(picture, clip.luma[first]):
                        break
                    yield number, frame
                    yield from frames
                    return
    yield from enumerate(_decoded(clip.path))


def _sought(
    clip: Clip, pts: npt.NDArray[np.int64], first: int
) -> Generator[tuple[int, VideoFrame], None, None]:
    number_of = {int(stamp): number for number, stamp in enumerate(pts)}
    for frame in _decoded(clip.path, int(pts[clip.at(clip.times[first] - _LEAD)])):
        if frame.pts is not None and frame.pts in number_of:
            yield number_of[frame.pts], frame


def _decoded(path: Path, since: int | None = None) -> Iterator[VideoFrame]:
    """Every frame that can be decoded, from a timestamp or the start on; none if that can't be sought.

    Packets that can't be decoded are skipped, always the same ones.
    """
    with open_container(path) as container:
        stream = pick_stream(container, None, str(path))
        stream.thread_type = ThreadType.SLICE
        packets = container.demux(stream)
        packet: Packet[VideoStream] | None
        try:
            if since is not None:
                container.seek(since, stream=stream, backward=True)
        except (av.error.FFmpegError, OSError):
            return
        while True:
            try:
                packet = next(packets, None)
            except (av.error.FFmpegError, OSError):
                packet = None  # cut off: only what the decoder holds back is left
            try:
                yield from stream.codec_context.decode(packet)
            except av.error.EOFError:
                return
            except (av.error.FFmpegError, ValueError):
                if packet is not None:
                    continue
            if packet is None:
                return
