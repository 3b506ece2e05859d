"""Raw pictures of a camera, made small enough to keep seconds of them."""

from __future__ import annotations

from fractions import Fraction
from typing import cast

from av.codec.context import CodecContext
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.reformatter import ColorRange
from av.video.stream import VideoStream

QUALITY = "4"
"""Of FFmpeg's scale from 2 (best) to 31."""


class Squeezer:
    """Codes each raw picture as JPEG: a tenth of the bytes and less, one picture at a time.

    Args:
        stream: Of an open source that sends raw video.
    """

    decoder = "mjpeg"
    pixels = "yuvj420p"

    def __init__(self, stream: VideoStream) -> None:
        raw = stream.codec_context
        self._reader = cast("VideoCodecContext", CodecContext.create(raw.name, "r"))
        self._reader.width, self._reader.height, self._reader.pix_fmt = raw.width, raw.height, raw.pix_fmt
        self._writer = cast("VideoCodecContext", CodecContext.create(self.decoder, "w"))
        self._writer.width, self._writer.height, self._writer.pix_fmt = raw.width, raw.height, self.pixels
        self._writer.time_base, self._writer.thread_count = Fraction(1, 25), 1
        self._writer.options = {"qmin": QUALITY, "qmax": QUALITY}

    @staticmethod
    def is_for(stream: VideoStream) -> bool:
        """Whether the stream sends raw pictures, of a known size and format."""
        context = stream.codec_context
        return context.name == "rawvideo" and bool(context.width and context.height and context.pix_fmt)

    def __call__(self, packet: Packet[VideoStream]) -> bytes:
        """The picture of a packet as JPEG; nothing if there is none in it.

        Raises:
            av.error.FFmpegError: It is damaged.
        """
        copy = cast("Packet[VideoStream]", Packet(bytes(packet)))  # the reader decodes the packet itself
        coded = [
            bytes(small)
            for picture in self._reader.decode(copy)
            for small in self._writer.encode(
                picture.reformat(format=self.pixels, dst_color_range=ColorRange.JPEG)
            )
        ]
        return b"".join(coded)
