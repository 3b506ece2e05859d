"""The newest packets of a source, still coded, and the pieces of video that are cut from them."""

from __future__ import annotations

import io
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import takewhile
from typing import cast

import av
import av.error
from av.codec.context import CodecContext
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.reformatter import ColorRange
from av.video.stream import VideoStream

from ongebd.video.picture import UPRIGHT, Turn

_JPEG_QUALITY = "4"
"""On FFmpeg's scale from 2 (best) to 31."""


@dataclass(frozen=True, slots=True, eq=False)
class KeptPacket:
    """One packet.

    Attributes:
        data: As the source coded it; a raw picture as JPEG.
        pts: When it is shown, in units of its stream; None if the source doesn't say.
        dts: When it is decoded, likewise.
        duration: Likewise; 0 if unknown.
        is_keyframe: Whether decoding can begin with it.
        time: Seconds of the source that were decoded when it came: the picture's own time, less the delay of
            the decoder.
    """

    data: bytes
    pts: int | None
    dts: int | None
    duration: int
    is_keyframe: bool
    time: float


@dataclass(frozen=True, slots=True)
class Coding:
    """How to read packets.

    Attributes:
        decoder: FFmpeg's name of the decoder.
        codec: FFmpeg's name of the codec.
        width: Of the coded picture, in pixels.
        height: Likewise.
        pixels: FFmpeg's name of the pixel format; None if unknown.
        extradata: What else the decoder must know; None if the packets say it.
        time_base: Unit of pts and dts, in seconds.
        sample: A NUT file of one packet, from which a muxer learns all of this; empty if there is none.
        turn: What brings the picture upright.
        as_opened: Whether the stream was like this when it was opened; only the packets know of a later
            change.
    """

    decoder: str
    codec: str
    width: int
    height: int
    pixels: str | None
    extradata: bytes | None
    time_base: Fraction
    sample: bytes
    turn: Turn = UPRIGHT
    as_opened: bool = True


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a source's video.

    Attributes:
        coding: How to read its packets.
        packets: In the order in which they came, beginning with a keyframe.
        begin: Seconds of the source at which the piece should begin; the keyframe may be earlier.
    """

    coding: Coding
    packets: tuple[KeptPacket, ...]
    begin: float


Done = Callable[[Piece | None], object]
"""Takes a piece when its last packet has come; None if there was no keyframe to begin with."""


class _GrowingPiece:
    """A piece whose end hasn't come yet."""

    def __init__(self, begin: float, end: float, done: Done, packets: list[KeptPacket]) -> None:
        self.begin, self.end, self.done, self.packets = begin, end, done, packets
        self.size = sum(len(packet.data) for packet in packets)

    def take(self, packet: KeptPacket) -> None:
        """The next packet; packets before the first keyframe can't be decoded."""
        if packet.time < self.end and (self.packets or packet.is_keyframe):
            self.packets.append(packet)
            self.size += len(packet.data)


class RecentPackets:
    """The packets of the newest seconds of one source, always beginning with a keyframe.

    The reader's thread adds packets; any thread may cut pieces. Pieces share the packets' bytes.

    Args:
        stream: Of the open source; not touched after `end`.
        seconds: How much to keep, in the source's own time. An older keyframe and all since then stay too.
        most_bytes: Keep no more than this: the oldest packets go, up to the next keyframe. A piece may be
            half as large again, and ends there.
        as_opened: See `Coding`.
    """

    def __init__(
        self, stream: VideoStream, seconds: float, most_bytes: int, *, as_opened: bool = True
    ) -> None:
        self.turn: Turn = UPRIGHT
        self._stream, self._seconds, self._most = stream, seconds, most_bytes
        self._as_opened = as_opened
        self._squeezer = _Squeezer(stream) if _is_raw(stream) else None
        self._groups: deque[list[KeptPacket]] = deque()  # each begins with a keyframe
        self._bytes = 0
        self._newest = 0.0
        self._coding: Coding | None = None
        self._growing: list[_GrowingPiece] = []
        self._over = False
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes of the packets that are kept now."""
        return self._bytes

    def add(self, packet: Packet[VideoStream], time: float) -> None:
        """Keep a copy of the source's next packet, unless it is empty or damaged raw video.

        Args:
            packet: The packet.
            time: See `KeptPacket`.
        """
        try:
            data = bytes(packet) if self._squeezer is None else self._squeezer(packet)
        except av.error.FFmpegError:  # the reader counts it as damaged
            return
        if not data:
            return
        if self._coding is None and packet.is_keyframe:
            self._coding = self._coding_of(packet)
        kept = KeptPacket(data, packet.pts, packet.dts, packet.duration or 0, packet.is_keyframe, time)
        self._keep((kept,))

    def cut(self, begin: float, end: float, done: Done) -> None:
        """Cut a piece, beginning with the last keyframe before `begin` if it is still kept.

        Args:
            begin: Seconds of the source.
            end: Likewise. If the source hasn't come so far, `done` gets the piece when it has.
            done: Called from here or from the reader's thread.
        """
        with self._lock:
            groups = list(self._groups)
            while len(groups) > 1 and groups[1][0].time <= begin:
                del groups[0]
            packets = [packet for group in groups for packet in group if packet.time < end]
            piece = _GrowingPiece(begin, end, done, packets)
            if not (self._over or self._is_complete(piece)):
                self._growing.append(piece)
                return
        self._hand_over([piece])

    def end(self) -> None:
        """No more packets will come; growing pieces end here. A second call does nothing."""
        with self._lock:
            self._over = True
            ready, self._growing = self._growing, []
        self._hand_over(ready)

    def branch(self, pts: int | None, *, same_picture: bool) -> RecentPackets:
        """End here, at a break of the source's clock or picture, and continue in a new object.

        Args:
            pts: Of the first picture after the break; None if it has none.
            same_picture: Whether size and format are as before.

        Returns:
            The new object, with the packets after the break if they begin with a keyframe.
        """
        kept = [packet for group in self._groups for packet in group]
        place = next((n for n in range(len(kept) - 1, -1, -1) if kept[n].pts == pts), len(kept))
        after = kept[place:] if pts is not None else []
        with self._lock:
            for piece in self._growing:
                piece.packets = list(takewhile(lambda one: not after or one is not after[0], piece.packets))
        self.end()
        as_opened = self._as_opened and same_picture
        then = RecentPackets(self._stream, self._seconds, self._most, as_opened=as_opened)
        if after and after[0].is_keyframe and self._coding is not None:
            then._coding = replace(self._coding, as_opened=as_opened)
            then._keep(after)
        return then

    def _keep(self, packets: Iterable[KeptPacket]) -> None:
        with self._lock:
            for kept in packets:
                if kept.is_keyframe:
                    self._groups.append([])
                if self._groups:
                    self._groups[-1].append(kept)
                    self._bytes += len(kept.data)
                self._newest = kept.time
                for piece in self._growing:
                    piece.take(kept)
            self._forget()
            ready = [piece for piece in self._growing if self._is_complete(piece)]
            self._growing = [piece for piece in self._growing if piece not in ready]
        self._hand_over(ready)

    def _is_complete(self, piece: _GrowingPiece) -> bool:
        return self._newest >= piece.end or piece.size >= self._most * 3 // 2

    def _forget(self) -> None:
        """Drop what is too old or too much."""
        while self._groups:
            old = len(self._groups) > 1 and self._groups[1][0].time <= self._newest - self._seconds
            if not old and self._bytes <= self._most:
                return
            self._bytes -= sum(len(packet.data) for packet in self._groups.popleft())

    def _hand_over(self, ready: list[_GrowingPiece]) -> None:
        for piece in ready:
            if piece.packets and self._coding is not None:
                piece.done(Piece(replace(self._coding, turn=self.turn), tuple(piece.packets), piece.begin))
            else:
                piece.done(None)

    def _coding_of(self, packet: Packet[VideoStream]) -> Coding:
        context = self._stream.codec_context
        time_base = packet.time_base or self._stream.time_base or Fraction(1, 90_000)
        if self._squeezer is not None:
            size = context.width, context.height
            return Coding("mjpeg", "mjpeg", *size, "yuvj420p", None, time_base, b"")
        return Coding(
            decoder=context.name,
            codec=context.codec.canonical_name,
            width=context.width,
            height=context.height,
            pixels=context.pix_fmt,
            extradata=context.extradata,
            time_base=time_base,
            sample=_sample(self._stream, packet, time_base),
            as_opened=self._as_opened,
        )


class _Squeezer:
    """Codes each raw picture of a camera as JPEG, a tenth of the bytes or less."""

    def __init__(self, stream: VideoStream) -> None:
        raw = stream.codec_context
        self._reader = cast("VideoCodecContext", CodecContext.create(raw.name, "r"))
        self._writer = CodecContext.create("mjpeg", "w")
        for context, pixels in ((self._reader, raw.pix_fmt), (self._writer, "yuvj420p")):
            context.width, context.height, context.pix_fmt = raw.width, raw.height, pixels
        self._writer.time_base, self._writer.thread_count = Fraction(1, 25), 1
        self._writer.options = {"qmin": _JPEG_QUALITY, "qmax": _JPEG_QUALITY}

    def __call__(self, packet: Packet[VideoStream]) -> bytes:
        """The packet's picture as JPEG; empty if it holds none."""
        if not packet.size:
            return b""
        copy = cast("Packet[VideoStream]", Packet(bytes(packet)))  # the reader decodes the packet itself
        pictures = [
            picture.reformat(format="yuvj420p", dst_color_range=ColorRange.JPEG)
            for picture in self._reader.decode(copy)
        ]
        return b"".join(bytes(small) for picture in pictures for small in self._writer.encode(picture))


def _is_raw(stream: VideoStream) -> bool:
    context = stream.codec_context
    return context.name == "rawvideo" and bool(context.width and context.height and context.pix_fmt)


def _sample(stream: VideoStream, packet: Packet[VideoStream], time_base: Fraction) -> bytes:
    """The packet as a file: a muxer needs an open source to learn from, and ours will be closed."""
    file = io.BytesIO()
    try:
        with av.open(file, "w", format="nut") as out:
            only = cast("Packet[VideoStream]", Packet(bytes(packet)))
            only.pts, only.dts, only.time_base, only.is_keyframe = 0, 0, time_base, True
            only.stream = out.add_stream_from_template(stream, opaque=True)
            out.mux_one(only)
    except (av.error.FFmpegError, ValueError):  # NUT has no name for this codec, and no player knows it
        return b""
    return file.getvalue()
