"""H.264 through PyAV: the files that are written, and a stretch that goes through a bad encoding and back.

Where PyAV's FFmpeg was built without libx264 (which is GPL; its wheels have it), MPEG-4 part 2 is written.
Encoders run on one thread, so that the bytes do not depend on the number of processors.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import av
import av.error
import numpy as np
from av.codec.codec import UnknownCodecError
from av.codec.context import Flags, ThreadType
from av.container import OutputContainer
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ongebd.errors import OngebdError
from ongebd.types import ImageU8


@cache
def encoder() -> str:
    """The encoder that is used: libx264, or mpeg4 where that is not there."""
    try:
        av.Codec("libx264", "w")
    except UnknownCodecError:
        return "mpeg4"
    return "libx264"


def _options(crf: float, keyframes: int) -> dict[str, str]:
    """The encoder's options for a quality, and the most frames between two keyframes."""
    if encoder() == "libx264":
        # Without MB-tree: with it, the same pictures give other bytes now and then (x264 core 165, AVX-512).
        return {"crf": f"{crf:g}", "preset": "veryfast", "g": str(keyframes), "threads": "1", "mbtree": "0"}
    quality = min(31, max(2, round(crf / 5)))  # MPEG-4's quantiser: 2 is very good, 31 the worst
    return {"qmin": str(quality), "qmax": str(quality), "g": str(keyframes), "threads": "1"}


class VideoFile:
    """Writes pictures into an MP4 file, one after another; the n-th is shown at n / fps seconds.

    Args:
        path: The file; it is written as MP4 whatever its ending is.
        size: (width, height), even.
        fps: Frames a second.
        crf: Quality.

    Raises:
        OngebdError: The file cannot be written.
    """

    def __init__(self, path: Path, size: tuple[int, int], fps: Fraction, crf: int) -> None:
        self._path = path
        try:
            self._file: OutputContainer = av.open(str(path), "w", format="mp4")
        except OSError as problem:
            raise self._refusal(problem) from None
        self._file.flags |= 0x0400  # AVFMT_FLAG_BITEXACT: no date and no version in it
        options = _options(crf, 2 * round(fps))
        self._stream = cast("VideoStream", self._file.add_stream(encoder(), rate=fps, options=options))
        self._stream.width, self._stream.height, self._stream.pix_fmt = *size, "yuv420p"
        self._stream.codec_context.time_base = 1 / fps
        self._base = 1 / fps
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._file.mux(self._stream.encode(None))
            self._file.close()
        except OSError as problem:
            if kind is None:
                raise self._refusal(problem) from None

    def add(self, picture: ImageU8) -> None:
        """Write a picture, (height, width, 3).

        Raises:
            OngebdError: The disk is full, say.
        """
        frame = VideoFrame.from_ndarray(np.ascontiguousarray(picture), "rgb24")
        frame.pts, frame.time_base = self._count, self._base
        self._count += 1
        try:
            self._file.mux(self._stream.encode(frame))
        except OSError as problem:
            raise self._refusal(problem) from None

    def _refusal(self, problem: OSError) -> OngebdError:
        why = problem.strerror or str(problem)
        return OngebdError(
            f"cannot write {self._path}: {why}; free some space or write elsewhere (see --out)"
        )


class Recompressor:
    """Pictures after a bad encoding: low bitrate, short groups of pictures, so that the quality pulses.

    Args:
        size: (width, height), even.
        strength: 0 (crf 34) to 1 (crf 44).
        fps: Frames a second; a keyframe comes twice a second.
    """

    def __init__(self, size: tuple[int, int], strength: float, fps: Fraction) -> None:
        options = _options(34 + 10 * strength, max(2, round(fps / 2)))
        if encoder() == "libx264":
            options |= {"tune": "zerolatency", "bf": "0", "sc_threshold": "0"}
        self._writer = cast("VideoCodecContext", av.CodecContext.create(encoder(), "w"))
        self._writer.width, self._writer.height = size
        self._writer.pix_fmt = "yuv420p"
        self._writer.time_base, self._writer.framerate = 1 / fps, fps
        self._writer.options = options
        decoder = "h264" if encoder() == "libx264" else "mpeg4"
        self._reader = cast("VideoCodecContext", av.CodecContext.create(decoder, "r"))
        self._reader.flags |= Flags.low_delay
        self._reader.thread_type, self._reader.thread_count = ThreadType.SLICE, 1
        self._count = 0

    def __call__(self, picture: ImageU8) -> ImageU8:
        """The next picture, (height, width, 3), as it comes back."""
        frame = VideoFrame.from_ndarray(np.ascontiguousarray(picture), "rgb24")
        frame.pts = self._count
        self._count += 1
        for packet in self._writer.encode(frame):
            for back in self._reader.decode(packet):
                return np.asarray(back.to_ndarray(format="rgb24"), dtype=np.uint8)
        raise OngebdError(f"the encoder {encoder()} holds frames back; PyAV's own wheel does not")
