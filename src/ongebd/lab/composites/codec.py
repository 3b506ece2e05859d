"""H.264 through PyAV: the files that are written, and a stretch that goes through a bad encoding and back.

Encoders run on one thread, so that the bytes don't depend on the number of processors.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import cast

import av
import numpy as np
from av.codec.codec import UnknownCodecError
from av.codec.context import Flags, ThreadType
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ongebd.errors import OngebdError
from ongebd.types import ImageU8

ENCODER = "libx264"
_BITEXACT = 0x0400  # AVFMT_FLAG_BITEXACT: no date and no version in the file


def check_encoder() -> None:
    """Refuse a PyAV without the encoder."""
    try:
        av.Codec(ENCODER, "w")
    except UnknownCodecError:
        raise OngebdError(f"PyAV has no {ENCODER}; install PyAV's own wheel with pip") from None


def _options(crf: float, keyframes: int) -> dict[str, str]:
    """The encoder's options for a quality, and the most frames between two keyframes."""
    # Without MB-tree: with it, the same pictures sometimes give other bytes (x264 core 165, AVX-512).
    fixed = {"preset": "veryfast", "mbtree": "0", "threads": "1"}
    return {"crf": f"{crf:g}", "g": str(keyframes), **fixed}


def _frame(picture: ImageU8, number: int) -> VideoFrame:
    frame = VideoFrame.from_ndarray(np.ascontiguousarray(picture), "rgb24")
    frame.pts = number
    return frame


def write_mp4(
    path: Path, pictures: Iterable[ImageU8], size: tuple[int, int], fps: Fraction, crf: int
) -> None:
    """Write pictures of an even size (width, height); the n-th is shown at n / fps seconds.

    The file is MP4 whatever its ending is. An OSError means that the disk is full, for example.
    """
    with av.open(str(path), "w", format="mp4") as file:
        file.flags |= _BITEXACT
        options = _options(crf, 2 * round(fps))
        stream = cast("VideoStream", file.add_stream(ENCODER, rate=fps, options=options))
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        stream.codec_context.time_base = 1 / fps
        for number, picture in enumerate(pictures):
            frame = _frame(picture, number)
            frame.time_base = 1 / fps
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))


class Recompressor:
    """Pictures after a bad encoding: low bitrate, short groups of pictures, so that the quality pulses.

    Args:
        size: (width, height), even.
        strength: 0 (crf 34) to 1 (crf 44).
        fps: Frames a second; a keyframe comes twice a second.
    """

    def __init__(self, size: tuple[int, int], strength: float, fps: Fraction) -> None:
        immediate = {"tune": "zerolatency", "bf": "0", "sc_threshold": "0"}
        options = _options(34 + 10 * strength, max(2, round(fps / 2))) | immediate
        self._writer = cast("VideoCodecContext", av.CodecContext.create(ENCODER, "w"))
        self._writer.width, self._writer.height = size
        self._writer.pix_fmt = "yuv420p"
        self._writer.time_base, self._writer.framerate = 1 / fps, fps
        self._writer.options = options
        self._reader = av.CodecContext.create("h264", "r")
        self._reader.flags |= Flags.low_delay
        self._reader.thread_type, self._reader.thread_count = ThreadType.SLICE, 1
        self._count = 0

    def __call__(self, picture: ImageU8) -> ImageU8:
        """The next picture, (height, width, 3), as it comes back."""
        packets = self._writer.encode(_frame(picture, self._count))
        self._count += 1
        for packet in packets:
            for back in self._reader.decode(packet):
                return np.asarray(back.to_ndarray(format="rgb24"), dtype=np.uint8)
        raise OngebdError(f"the encoder {ENCODER} holds frames back; PyAV's own wheel doesn't")
