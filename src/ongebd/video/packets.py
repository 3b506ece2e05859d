"""The newest packets of a source, still coded, and the pieces of video that are cut from them."""

from __future__ import annotations

import io
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
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
    """One packet, with times in units of its stream.

    Attributes:
        data: As the source coded it; a raw picture as JPEG.
        duration: 0 if unknown.
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
class Piece:
    """A piece of a source's video.

    Attributes:
        packets: In the order in which they came, beginning with a keyframe.
        begin: Seconds of the source at which the piece should begin; the keyframe may be earlier.
        sample: A NUT file of one packet, from which decoders and muxers learn the coding.
        time_base: Unit of pts and dts, in seconds.
        turn: What brings the picture upright.
        as_opened: Whether `sample` fits; otherwise the stream changed later, and only its packets say how.
    """

    packets: tuple[KeptPacket, ...]
    begin: float
    sample: bytes
    time_base: Fraction
    turn: Turn
    as_opened: bool


Done = Callable[[Piece | None], object]
"""Takes a piece when its last packet has come; None if there was no keyframe to begin with."""


class _GrowingPiece:
    """A piece whose end may not have come yet."""

    def __init__(self, begin: float, end: float, done: Done, packets: Iterable[KeptPacket]) -> None:
        self.begin, self.end, self.done = begin, end, done
        self.packets: list[KeptPacket] = []
        self.size = 0
        for packet in packets:
            self.take(packet)

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
        as_opened: See `Piece`.

    Attributes:
        turn: What brings the pictures upright.
        size: Bytes of the packets that are kept now.
    """

    def __init__(
        self, stream: VideoStream, seconds: float, most_bytes: int, *, as_opened: bool = True
    ) -> None:
        self.turn: Turn = UPRIGHT
        self.size = 0
        self._stream, self._seconds, self._most = stream, seconds, most_bytes
        self._as_opened = as_opened
        self._squeezer = _Squeezer(stream) if _is_raw(stream) else None
        self._groups: deque[list[KeptPacket]] = deque()  # each begins with a keyframe
        self._newest = 0.0
        self._time_base = stream.time_base or Fraction(1, 90_000)
        self._sample: bytes | None = None
        self._growing: list[_GrowingPiece] = []
        self._over = False
        self._lock = threading.Lock()

    def add(self, packet: Packet[VideoStream], time: float) -> None:
        """Keep a copy of the source's next packet, unless it is empty or damaged raw video."""
        try:
            data = bytes(packet) if self._squeezer is None else self._squeezer(packet)
        except av.error.FFmpegError:  # the reader counts it as damaged
            return
        if not data:
            return
        if self._sample is None and packet.is_keyframe:
            self._time_base = packet.time_base or self._time_base
            self._sample = _sample(data, self._stream, jpeg=self._squeezer is not None)
        kept = KeptPacket(data, packet.pts, packet.dts, packet.duration or 0, packet.is_keyframe, time)
        self._keep([kept])

    def cut(self, begin: float, end: float, done: Done) -> None:
        """Cut a piece of some seconds, beginning with the last keyframe before it if that is still kept.

        `done` gets the piece now, or in the reader's thread when the source has come to its end.
        """
        with self._lock:
            groups = list(self._groups)
            while len(groups) > 1 and groups[1][0].time <= begin:
                del groups[0]
            piece = _GrowingPiece(begin, end, done, (packet for group in groups for packet in group))
            self._growing.append(piece)
        self._hand_over()

    def end(self) -> None:
        """No more packets will come; growing pieces end here. A second call does nothing."""
        self._over = True
        self._hand_over()

    def branch(self, pts: int | None, *, same_picture: bool) -> RecentPackets:
        """End here, at a break of the source's clock or picture, and continue in the object returned.

        It has the packets after the break if they begin with a keyframe.

        Args:
            pts: Of the first picture after the break; None if it has none.
            same_picture: Whether size and format are as before.
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
        if after and after[0].is_keyframe:
            then._sample, then._time_base = self._sample, self._time_base
            then._keep(after)
        return then

    def _keep(self, packets: Iterable[KeptPacket]) -> None:
        with self._lock:
            for kept in packets:
                if kept.is_keyframe:
                    self._groups.append([])
                if self._groups:
                    self._groups[-1].append(kept)
                    self.size += len(kept.data)
                self._newest = kept.time
                for piece in self._growing:
                    piece.take(kept)
            while self._groups:  # drop what is too old or too much
                old = len(self._groups) > 1 and self._groups[1][0].time <= self._newest - self._seconds
                if not old and self.size <= self._most:
                    break
                self.size -= sum(len(packet.data) for packet in self._groups.popleft())
        self._hand_over()

    def _hand_over(self) -> None:
        """Pass on the pieces that are complete."""
        with self._lock:
            growing, self._growing = self._growing, []
            ready: list[_GrowingPiece] = []
            for piece in growing:
                full = piece.size >= self._most * 3 // 2
                complete = self._over or full or self._newest >= piece.end
                (ready if complete else self._growing).append(piece)
        for piece in ready:
            if piece.packets and self._sample:
                packets, how = (
                    tuple(piece.packets),
                    (self._sample, self._time_base, self.turn, self._as_opened),
                )
                piece.done(Piece(packets, piece.begin, *how))
            else:
                piece.done(None)


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


def _sample(data: bytes, source: VideoStream, *, jpeg: bool) -> bytes:
    """A packet as a file: decoders and muxers learn from open sources only, and ours will be closed."""
    file = io.BytesIO()
    try:
        with av.open(file, "w", format="nut") as out:
            if jpeg:
                stream = out.add_stream("mjpeg", rate=25, pix_fmt="yuvj420p")
                stream.width, stream.height = source.width, source.height
            else:
                stream = out.add_stream_from_template(source, opaque=True)
            only = cast("Packet[VideoStream]", Packet(data))
            only.pts, only.dts, only.time_base, only.is_keyframe = 0, 0, Fraction(1, 25), True
            only.stream = stream
            out.mux_one(only)
    except (av.error.FFmpegError, ValueError):  # NUT has no name for this codec, and no browser knows it
        return b""
    return file.getvalue()
