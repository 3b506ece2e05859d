"""Frames of a clip by their numbers: found by timestamp where the file allows it, upright, resized."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
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
from ongebd.lab.composites.pictures import SIDE, small_luma
from ongebd.types import ImageU8
from ongebd.video.picture import Fit, RgbMaker
from ongebd.video.source import open_container, pick_stream

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
