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
from av.container import OutputContainer
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange
from av.video.stream import VideoStream

from ongebd.errors import OngebdError
from ongebd.video.packets import KeptPacket, Piece
from ongebd.video.picture import UPRIGHT, apply_turn
from ongebd.video.timing import DEFAULT_RATE

_COPIED = frozenset({"h264", "hevc", "vp9", "av1"})
"""Codecs that MP4 holds and browsers play (HEVC: if the machine can)."""
_H264_PIXELS = frozenset({None, "yuv420p", "yuvj420p"})
_BASE = Fraction(1, 90_000)
_HEADER_BYTES, _PACKET_BYTES = 8192, 64
"""Room for the index, so that it can be at the front, where a browser looks first."""


def mp4_of(piece: Piece, stop: threading.Event | None = None) -> tuple[bytes, float]:
    """The piece as an MP4 file, and its length in seconds.

    If a browser can play what the source sends, its packets are copied, beginning with the keyframe before
    the piece. Everything else is decoded and coded as H.264, from the piece's beginning on.

    Args:
        piece: What to write.
        stop: Once set, coding ends.

    Raises:
        OngebdError: None of it can be decoded, or coding was stopped.
    """
    with av.open(io.BytesIO(piece.sample)) as sample:
        stream = sample.streams.video[0]
        codec, pixels = stream.codec_context.codec.canonical_name, stream.codec_context.pix_fmt
        plays = codec in _COPIED and (codec != "h264" or pixels in _H264_PIXELS)
        if plays and piece.as_opened and piece.turn == UPRIGHT:
            try:
                return _written(piece, lambda out: _copy(piece, stream, out))
            except (av.error.FFmpegError, ValueError):  # its times step back, say; coding repairs that
                pass
        try:
            return _written(piece, lambda out: _encode(piece, stream.codec_context, out, stop))
        except av.error.FFmpegError as problem:
            raise OngebdError(f"can't code a clip: {problem.strerror or problem}") from None


def _written(piece: Piece, write: Callable[[OutputContainer], float]) -> tuple[bytes, float]:
    file = io.BytesIO()
    room = _HEADER_BYTES + _PACKET_BYTES * len(piece.packets)
    with av.open(file, "w", format="mp4", options={"moov_size": str(room)}) as out:
        seconds = write(out)
    return file.getvalue(), seconds


def _copy(piece: Piece, source: VideoStream, out: OutputContainer) -> float:
    zero, end = piece.packets[0].pts, 0
    if zero is None or any(kept.pts is None for kept in piece.packets):
        raise ValueError("packets without a time")
    # Pictures that follow the keyframe but are shown before it need packets that aren't here.
    shown = dropwhile(lambda kept: kept.pts is not None and kept.pts < zero, piece.packets[1:])
    stream = out.add_stream_from_template(source, opaque=True)
    for kept in chain(piece.packets[:1], shown):
        packet = _packet(kept, piece.time_base, zero)
        end = max(end, (packet.pts or 0) + kept.duration)
        packet.stream = stream
        out.mux_one(packet)
    return float(end * piece.time_base)


def _encode(
    piece: Piece, decoder: VideoCodecContext, out: OutputContainer, stop: threading.Event | None
) -> float:
    stream: VideoStream | None = None
    span = piece.packets[-1].time - piece.packets[0].time
    step = span / (len(piece.packets) - 1) if span > 0 else float(1 / DEFAULT_RATE)
    time = 0.0
    for time, picture in _pictures(piece, decoder, step):
        if stop is not None and stop.is_set():
            raise OngebdError("a clip wasn't coded in time")
        if stream is None:
            stream = _h264(out, picture, step)
        small = picture.reformat(stream.width, stream.height, "yuv420p", dst_color_range=ColorRange.MPEG)
        small.pts, small.time_base = round(time / _BASE), _BASE
        out.mux(stream.encode(small))
    if stream is None:
        raise OngebdError(f"can't decode any picture of a clip ({decoder.name})")
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


def _pictures(piece: Piece, decoder: VideoCodecContext, step: float) -> Iterator[tuple[float, VideoFrame]]:
    """The upright pictures from the piece's beginning on, with growing seconds since then."""
    skipped = max(0.0, piece.begin - piece.packets[0].time)
    first: int | None = None
    time, begun = -step, False
    for picture in _decoded(piece, decoder):
        if picture.pts is None:
            time += step
        else:
            first = int(picture.pts) if first is None else first
            time = max(float((picture.pts - first) * piece.time_base), time + 0.001)
        if time < skipped - step / 2:
            continue
        if not begun:
            begun, skipped = True, time
        if piece.turn != UPRIGHT:
            rgb = np.asarray(picture.to_ndarray(format="rgb24"), dtype=np.uint8)
            picture = VideoFrame.from_ndarray(apply_turn(rgb, piece.turn), "rgb24")
        yield time - skipped, picture


def _decoded(piece: Piece, decoder: VideoCodecContext) -> Iterator[VideoFrame]:
    decoder.thread_count = 1
    for kept in (*piece.packets, None):
        try:
            yield from decoder.decode(None if kept is None else _packet(kept, piece.time_base, 0))
        except av.error.FFmpegError:  # damaged on the way; later pictures may be whole
            continue


def _packet(kept: KeptPacket, time_base: Fraction, zero: int) -> Packet[VideoStream]:
    packet = cast("Packet[VideoStream]", Packet(kept.data))
    packet.pts = None if kept.pts is None else kept.pts - zero
    packet.dts = None if kept.dts is None else kept.dts - zero
    packet.duration, packet.time_base, packet.is_keyframe = kept.duration, time_base, kept.is_keyframe
    return packet
