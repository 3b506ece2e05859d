"""A piece of a source's video as an MP4 file that browsers play."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import chain, dropwhile
from typing import cast

import av
import av.error
import numpy as np
from av.codec.codec import UnknownCodecError
from av.codec.context import CodecContext
from av.container import OutputContainer
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange
from av.video.stream import VideoStream

from ongebd.errors import OngebdError
from ongebd.video.clock import DEFAULT_RATE
from ongebd.video.packets import Coding, KeptPacket, Piece
from ongebd.video.upright import AS_IT_IS, apply_turn

_COPIED = frozenset({"h264", "hevc", "vp9", "av1"})
"""What is copied as it is, for MP4 holds it and browsers know it (HEVC: where the machine can)."""
_H264_PIXELS = frozenset({None, "yuv420p", "yuvj420p"})
_BASE = Fraction(1, 90_000)
_HEADER_BYTES, _PACKET_BYTES = 8192, 64
"""Of an index: enough, so that it can stand in front, where a browser looks first."""


def mp4_of(piece: Piece, stop: threading.Event | None = None) -> tuple[bytes, float]:
    """The piece as an MP4 file, and its length in seconds.

    Nothing is decoded where a browser can play what the source sends: the file then begins at the keyframe
    before the piece. Everything else is decoded and coded as H.264, from the piece's beginning on.

    Args:
        piece: What to write.
        stop: Once it is set, coding is given up.

    Raises:
        OngebdError: Not one picture of it can be decoded, or it was stopped.
    """
    if _can_be_copied(piece.coding):
        try:
            return _written(piece, lambda out: _copy(piece, out))
        except (av.error.FFmpegError, ValueError):  # its times step back, say: decoded, they can be mended
            return _coded(piece, stop)
    return _coded(piece, stop)


def _coded(piece: Piece, stop: threading.Event | None) -> tuple[bytes, float]:
    try:
        return _written(piece, lambda out: _encode(piece, out, stop))
    except av.error.FFmpegError as problem:
        raise OngebdError(f"a clip could not be coded: {problem.strerror or problem}") from None


def _can_be_copied(coding: Coding) -> bool:
    plays = coding.codec in _COPIED and (coding.codec != "h264" or coding.pixels in _H264_PIXELS)
    return plays and bool(coding.sample) and coding.as_told and coding.turn == AS_IT_IS


def _written(piece: Piece, write: Callable[[OutputContainer], float]) -> tuple[bytes, float]:
    file = io.BytesIO()
    room = _HEADER_BYTES + _PACKET_BYTES * len(piece.packets)
    with av.open(file, "w", format="mp4", options={"moov_size": str(room)}) as out:
        seconds = write(out)
    return file.getvalue(), seconds


def _copy(piece: Piece, out: OutputContainer) -> float:
    zero, end = piece.packets[0].pts, 0
    if zero is None or any(kept.pts is None for kept in piece.packets):
        raise ValueError("packets without a time")
    # Pictures that come behind the keyframe and are shown before it need what is not here.
    shown = dropwhile(lambda kept: kept.pts is not None and kept.pts < zero, piece.packets[1:])
    with av.open(io.BytesIO(piece.coding.sample)) as sample:
        stream = out.add_stream_from_template(sample.streams.video[0], opaque=True)
        for kept in chain(piece.packets[:1], shown):
            packet = _packet(kept, piece.coding, zero)
            end = max(end, (packet.pts or 0) + kept.duration)
            packet.stream = stream
            out.mux_one(packet)
    return float(end * piece.coding.time_base)


def _encode(piece: Piece, out: OutputContainer, stop: threading.Event | None) -> float:
    stream: VideoStream | None = None
    time, step = 0.0, _step(piece)
    for time, picture in _pictures(piece, step):
        if stop is not None and stop.is_set():
            raise OngebdError("a clip was not coded in time")
        if stream is None:
            stream = _h264(out, picture, step)
        small = picture.reformat(stream.width, stream.height, "yuv420p", dst_color_range=ColorRange.MPEG)
        small.pts, small.time_base = round(time / _BASE), _BASE
        out.mux(stream.encode(small))
    if stream is None:
        raise OngebdError(f"not one picture of a clip could be decoded ({piece.coding.codec})")
    out.mux(stream.encode(None))
    return time + step


def _h264(out: OutputContainer, picture: VideoFrame, step: float) -> VideoStream:
    try:
        stream = out.add_stream(
            "libx264",
            rate=max(1, min(240, round(1 / step))),
            options={"preset": "superfast", "crf": "26"},
            width=max(2, picture.width // 2 * 2),
            height=max(2, picture.height // 2 * 2),
            time_base=_BASE,
        )
    except UnknownCodecError:
        raise OngebdError("a clip needs an H.264 encoder, which this PyAV lacks") from None
    stream.codec_context.thread_count = 1  # the model needs the cores more
    return stream


def _pictures(piece: Piece, step: float) -> Iterator[tuple[float, VideoFrame]]:
    """The upright pictures from the piece's beginning on, with seconds since then, which grow."""
    coding = piece.coding
    skipped = max(0.0, piece.begin - piece.packets[0].time)
    first: int | None = None
    time, begun = -step, False
    for picture in _decoded(piece):
        if picture.pts is None:
            time += step
        else:
            first = int(picture.pts) if first is None else first
            time = max(float((picture.pts - first) * coding.time_base), time + 0.001)
        if time < skipped - step / 2:
            continue
        if not begun:
            begun, skipped = True, time
        yield time - skipped, _upright(picture, coding)


def _decoded(piece: Piece) -> Iterator[VideoFrame]:
    coding = piece.coding
    decoder = cast("VideoCodecContext", CodecContext.create(coding.decoder, "r"))
    decoder.width, decoder.height, decoder.thread_count = coding.width, coding.height, 1
    if coding.pixels is not None:
        decoder.pix_fmt = coding.pixels
    if coding.extradata is not None:
        decoder.extradata = coding.extradata
    for kept in (*piece.packets, None):
        try:
            yield from decoder.decode(None if kept is None else _packet(kept, coding, 0))
        except av.error.FFmpegError:  # damaged on its way; what comes after can be seen
            continue


def _upright(picture: VideoFrame, coding: Coding) -> VideoFrame:
    if coding.turn == AS_IT_IS:
        return picture
    rgb = np.asarray(picture.to_ndarray(format="rgb24"), dtype=np.uint8)
    return VideoFrame.from_ndarray(apply_turn(rgb, coding.turn), "rgb24")


def _packet(kept: KeptPacket, coding: Coding, zero: int) -> Packet[VideoStream]:
    packet = cast("Packet[VideoStream]", Packet(kept.data))
    packet.pts = None if kept.pts is None else kept.pts - zero
    packet.dts = None if kept.dts is None else kept.dts - zero
    packet.duration, packet.time_base, packet.is_keyframe = kept.duration, coding.time_base, kept.is_keyframe
    return packet


def _step(piece: Piece) -> float:
    """Seconds from one picture to the next, about."""
    packets = piece.packets
    span = packets[-1].time - packets[0].time
    return span / (len(packets) - 1) if span > 0 else float(1 / DEFAULT_RATE)
