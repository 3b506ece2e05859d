"""The newest packets of a source as they came, and pieces of video that are cut out of them undecoded."""

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
from av.packet import Packet
from av.video.stream import VideoStream

from ongebd.video.squeezing import Squeezer
from ongebd.video.upright import AS_IT_IS, Turn


@dataclass(frozen=True, slots=True, eq=False)
class KeptPacket:
    """One packet.

    Attributes:
        data: As the source coded it; a raw picture as JPEG (`Squeezer`).
        pts: When it is shown, in units of its stream; None where the source does not say.
        dts: When it is decoded, likewise.
        duration: Likewise; 0 where it is not known.
        is_keyframe: Whether decoding can begin with it.
        time: Seconds of the source that had been decoded when it came: the picture's own time, less what the
            decoder holds back.
    """

    data: bytes
    pts: int | None
    dts: int | None
    duration: int
    is_keyframe: bool
    time: float


@dataclass(frozen=True, slots=True)
class Coding:
    """How packets are to be read.

    Attributes:
        decoder: FFmpeg's name of it.
        codec: FFmpeg's name of what it decodes.
        width: Of the coded picture, in pixels.
        height: Likewise.
        pixels: FFmpeg's name of the pixel format; None where it is not known.
        extradata: What the decoder must know besides; None where that stands in the packets.
        time_base: Unit of pts and dts, in seconds.
        sample: A file (NUT) of one packet, from which a muxer learns all of this; empty where there is none.
        turn: What brings the picture upright.
        as_told: Whether this was so when the source was opened; a later change stands in the packets.
    """

    decoder: str
    codec: str
    width: int
    height: int
    pixels: str | None
    extradata: bytes | None
    time_base: Fraction
    sample: bytes
    turn: Turn = AS_IT_IS
    as_told: bool = True


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a source's video.

    Attributes:
        coding: How its packets are to be read.
        packets: In the order in which they came, from a keyframe on.
        begin: Seconds of the source at which it was to begin; the keyframe may be before that.
    """

    coding: Coding
    packets: tuple[KeptPacket, ...]
    begin: float


Done = Callable[[Piece | None], object]
"""Takes a piece when its last packet is there; None if there was no keyframe to begin with."""


class _OpenCut:
    """A piece that still grows."""

    def __init__(self, begin: float, end: float, done: Done, packets: list[KeptPacket]) -> None:
        self.begin, self.end, self.done, self.packets = begin, end, done, packets
        self.size = sum(len(packet.data) for packet in packets)

    def take(self, packet: KeptPacket) -> None:
        """The next packet; those before the first keyframe are of no use."""
        if self.packets or packet.is_keyframe:
            self.packets.append(packet)
            self.size += len(packet.data)


class RecentPackets:
    """The packets of the newest seconds of one source, always from a keyframe on.

    Packets come in the reader's thread; pieces may be cut from any. What is cut shares the packets' bytes.

    Args:
        stream: Of the open source; not touched after `end`.
        seconds: How much is kept, by the source's own time. A keyframe before that, and all since, stay too.
        most_bytes: More is not kept: the oldest go, up to the next keyframe. A piece may be half as large
            again, and ends there.
        as_told: See `Coding`.
    """

    def __init__(self, stream: VideoStream, seconds: float, most_bytes: int, *, as_told: bool = True) -> None:
        self.turn: Turn = AS_IT_IS
        self._stream, self._seconds, self._most, self._as_told = stream, seconds, most_bytes, as_told
        self._squeezer = Squeezer(stream) if Squeezer.is_for(stream) else None
        self._groups: deque[list[KeptPacket]] = deque()  # each begins with a keyframe
        self._bytes = 0
        self._newest = 0.0
        self._coding: Coding | None = None
        self._open: list[_OpenCut] = []
        self._over = False
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes of the packets that are kept now."""
        return self._bytes

    def add(self, packet: Packet[VideoStream], time: float) -> None:
        """Keep a packet of the stream; its bytes are copied. What cannot be read of raw video is left out.

        Args:
            packet: The next one of the source.
            time: See `KeptPacket`.
        """
        data = self._data(packet)
        if not data:
            return
        if self._coding is None and packet.is_keyframe:
            self._coding = _coding(self._stream, packet, self._as_told, self._squeezer)
        kept = KeptPacket(data, packet.pts, packet.dts, packet.duration or 0, packet.is_keyframe, time)
        self._keep((kept,))

    def cut(self, begin: float, end: float, done: Done) -> None:
        """Cut out a piece, from the last keyframe before `begin` on, as far as there is one.

        Args:
            begin: Seconds of the source.
            end: Likewise; where the source has not come so far, the piece is handed over when it has.
            done: Is called at once, or in the reader's thread.
        """
        with self._lock:
            groups = list(self._groups)
            while len(groups) > 1 and groups[1][0].time <= begin:
                del groups[0]
            packets = [packet for group in groups for packet in group if packet.time < end]
            cut = _OpenCut(begin, end, done, packets)
            if not (self._over or self._is_complete(cut)):
                self._open.append(cut)
                return
        self._hand_over([cut])

    def end(self) -> None:
        """No packet comes any more; pieces that still grow end here. A second time does nothing."""
        with self._lock:
            self._over = True
            ready, self._open = self._open, []
        self._hand_over(ready)

    def branch(self, pts: int | None, *, same_picture: bool) -> RecentPackets:
        """End here, at a break of the source's clock or picture, and go on anew.

        Args:
            pts: Of the first picture behind the break; None where it has none.
            same_picture: Whether size and format are as before.

        Returns:
            What goes on: with the packets behind the break, if they begin with a keyframe.
        """
        kept = [packet for group in self._groups for packet in group]
        place = next((n for n in range(len(kept) - 1, -1, -1) if kept[n].pts == pts), len(kept))
        behind = kept[place:] if pts is not None else []
        with self._lock:
            for cut in self._open:
                cut.packets = list(takewhile(lambda one: not behind or one is not behind[0], cut.packets))
        self.end()
        then = RecentPackets(self._stream, self._seconds, self._most, as_told=self._as_told and same_picture)
        if behind and behind[0].is_keyframe and self._coding is not None:
            then._coding = replace(self._coding, as_told=then._as_told)
            then._keep(behind)
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
                for cut in self._open:
                    if kept.time < cut.end:
                        cut.take(kept)
            self._forget()
            ready = [cut for cut in self._open if self._is_complete(cut)]
            self._open = [cut for cut in self._open if cut not in ready]
        self._hand_over(ready)

    def _is_complete(self, cut: _OpenCut) -> bool:
        return self._newest >= cut.end or cut.size >= self._most * 3 // 2

    def _data(self, packet: Packet[VideoStream]) -> bytes:
        if self._squeezer is None or not packet.size:
            return bytes(packet)
        try:
            return self._squeezer(packet)
        except av.error.FFmpegError:  # the reader counts it as damaged
            return b""

    def _forget(self) -> None:
        """Let go of what is too old, or too much."""
        while self._groups:
            old = len(self._groups) > 1 and self._groups[1][0].time <= self._newest - self._seconds
            if not old and self._bytes <= self._most:
                return
            self._bytes -= sum(len(packet.data) for packet in self._groups.popleft())

    def _hand_over(self, ready: list[_OpenCut]) -> None:
        for cut in ready:
            if cut.packets and self._coding is not None:
                cut.done(Piece(replace(self._coding, turn=self.turn), tuple(cut.packets), cut.begin))
            else:
                cut.done(None)


def _coding(
    stream: VideoStream, packet: Packet[VideoStream], as_told: bool, squeezer: Squeezer | None
) -> Coding:
    context = stream.codec_context
    time_base = packet.time_base or stream.time_base or Fraction(1, 90_000)
    if squeezer is not None:
        size = context.width, context.height
        return Coding(squeezer.decoder, squeezer.decoder, *size, squeezer.pixels, None, time_base, b"")
    return Coding(
        decoder=context.name,
        codec=context.codec.canonical_name,
        width=context.width,
        height=context.height,
        pixels=context.pix_fmt,
        extradata=context.extradata,
        time_base=time_base,
        sample=_sample(stream, packet, time_base),
        as_told=as_told,
    )


def _sample(stream: VideoStream, packet: Packet[VideoStream], time_base: Fraction) -> bytes:
    """The packet as a file. A muxer takes what it must know from an open source only, and that one closes."""
    file = io.BytesIO()
    try:
        with av.open(file, "w", format="nut") as out:
            only = cast("Packet[VideoStream]", Packet(bytes(packet)))
            only.pts, only.dts, only.time_base, only.is_keyframe = 0, 0, time_base, True
            only.stream = out.add_stream_from_template(stream, opaque=True)
            out.mux_one(only)
    except (av.error.FFmpegError, ValueError):  # a codec that it has no name for: no player has one either
        return b""
    return file.getvalue()
