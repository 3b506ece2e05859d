"""Copies a video in parts, or whole with chapters. Its sound and subtitles come along."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any

import av
import av.error
from av.sidedata.sidedata import Type
from av.video.frame import PictureType

from ongebd.errors import OngebdError, SourceError
from ongebd.video.source import open_container, pick_stream, reason, source_errors, source_name

Show = Callable[[float], object]
"""Takes the seconds of the video that are done."""

_SLACK = Fraction(1, 2000)  # seconds: edges were rounded
_COLOURS = ("color_range", "color_primaries", "color_trc", "colorspace")


def key_frames(source: str, show: Show, *, exact: bool = False) -> list[Fraction]:
    """When the frames are shown at which a video can be cut, in seconds since the first frame.

    With `exact` these are all; else key frames which no picture refers across: all packets after them are
    shown later, and all before them earlier.
    """
    begin, stamps, keys = _time(_first(source)), list[Fraction](), list[bool]()
    with open_container(source) as file:
        for packet in _packets(file, [pick_stream(file, None, source_name(source))], source):
            stamps.append(_time(packet) - begin)
            keys.append(packet.is_keyframe)
            show(float(stamps[-1]))
    if exact:
        return sorted(stamp for stamp in stamps if stamp >= 0)
    later = list(accumulate(reversed(stamps), min))[::-1]
    before = [Fraction(-(10**9)), *accumulate(stamps, max)]
    clean = zip(stamps, keys, later, before, strict=False)
    return [now for now, key, least, most in clean if key and most < now == least]


def copy(
    source: str,
    target: Path,
    form: str,
    show: Show,
    *,
    edges: Sequence[float | Fraction] = (),
    exact: bool = False,
    chapters: Sequence[tuple[float, float]] = (),
) -> list[str]:
    """Copy a video, or write its parts into files that each begin at 0; lines say what was left out.

    Args:
        source: A file that can be sought in.
        target: The file; for parts, a pattern with `%d` for their numbers from 0.
        form: FFmpeg's name of the container.
        show: Told how far it is.
        edges: Seconds since the first frame at which each part begins, and at which the last one ends.
            Without `exact`, they must be `key_frames` or the end of the video.
        exact: Encode the pictures again (H.264). The sound is always copied.
        chapters: Start and end of each, in seconds since the first frame.
    """
    first = _first(source)
    begin, end, cuts, options = _time(first), None, list[Fraction](), dict[str, str]()
    with open_container(source) as file:
        video = pick_stream(file, None, source_name(source))
        kinds = ("audio", "subtitle") if edges else ("audio", "subtitle", "video")
        streams: list[Any] = [video, *(one for one in file.streams if one.type in kinds and one is not video)]
        left_out = {str(one.type) for one in file.streams if one.type in ("data", "attachment")}
        with av.open(io.BytesIO(), "w", format=form) as probe:
            known = probe.supported_codecs
        # Only some containers hold what decoders need from before 0, and nobody sees or hears.
        early, zero = form in ("mp4", "mov"), begin
        if edges:
            early, (zero, *cuts, end) = not edges[0], (begin + Fraction(edge) for edge in edges)
            times = ",".join(f"{float(cut - zero):.6f}" for cut in (*cuts, zero + 10**9))
            options = {"segment_format": form, "segment_times": times, "segment_time_delta": "0.0005"}
            options |= {"reset_timestamps": "1", "avoid_negative_ts": "disabled", "max_interleave_delta": "0"}
            form = "segment"
        elif not early:
            zero = min([begin, *(one.start_time * one.time_base for one in streams if one.start_time)])
        with _writing(target), av.open(f"file:{target}", "w", format=form, options=options) as out:
            coded = _Encoder(out, video, first, zero, cuts) if exact else None
            to: dict[int, Any] = {}
            for stream in streams[exact:]:
                codec = stream.codec_context  # none if PyAV doesn't know it
                if codec is None or codec.codec.canonical_name not in known:
                    left_out.add(f"{stream.type} ({'unknown' if codec is None else codec.name})")
                else:
                    new = to[stream.index] = out.add_stream_from_template(stream, opaque=True)
                    new.metadata.update(stream.metadata)
                    new.disposition = stream.disposition
            out.set_chapters(_chapter_list(chapters, begin - zero))
            for packet in _packets(file, streams, source):
                time, mine = _time(packet), packet.stream is video
                over = end is not None and time >= end - _SLACK
                if over and mine and packet.is_keyframe:
                    break
                if mine:
                    show(float(time - begin))
                if mine and coded is not None:
                    coded.encode(packet, end)
                elif packet.stream.index in to and (early or time >= zero - _SLACK) and (mine or not over):
                    shift = round(zero / packet.time_base)
                    packet.pts = None if packet.pts is None else packet.pts - shift
                    packet.dts = None if packet.dts is None else packet.dts - shift
                    packet.stream = to[packet.stream.index]
                    out.mux(packet)
            if coded is not None:
                coded.encode(None, end)
    return [f"{kind} streams are left out" for kind in sorted(left_out)]


class _Encoder:
    """Encodes pictures again, with their depth, colours, turn and times; `cuts` get key frames."""

    def __init__(self, out: Any, video: Any, first: Any, zero: Fraction, cuts: list[Fraction]) -> None:
        self._out, self._video, self._zero, self._cuts = out, video, zero, cuts
        self._last = -1
        deep = any(one.bits > 8 for one in first.format.components)
        self._coded = out.add_stream(
            "libx264",
            rate=video.average_rate or 25,
            options={"crf": "18", "preset": "veryfast", "forced-idr": "1"},
            width=max(2, first.width // 2 * 2),
            height=max(2, first.height // 2 * 2),
            pix_fmt="yuv420p10le" if deep else "yuv420p",
            time_base=video.time_base,
        )
        for data in first.side_data:
            if data.type == Type.DISPLAYMATRIX:
                self._coded.set_display_matrix(struct.unpack_from("=9i", bytes(data)))
        for name in _COLOURS:
            setattr(self._coded.codec_context, name, getattr(video.codec_context, name))

    def encode(self, packet: Any, end: Fraction | None) -> None:
        """Encode the pictures of a packet that are shown before `end`; None: the last ones."""
        coded = self._coded
        for frame in _decoded(self._video, packet):
            time = _time(frame)
            stamp = round((time - self._zero) / frame.time_base)
            if stamp > self._last and (end is None or time < end - _SLACK):
                new = frame.reformat(coded.width, coded.height, coded.pix_fmt)
                new.pts, new.time_base, new.pict_type = stamp, frame.time_base, PictureType.NONE
                while self._cuts and time >= self._cuts[0] - _SLACK:
                    new.pict_type = PictureType.I
                    del self._cuts[0]
                self._last = stamp
                self._out.mux(coded.encode(new))
        if packet is None:
            self._out.mux(coded.encode(None))


def _chapter_list(spans: Sequence[tuple[float, float]], later: Fraction) -> list[Any]:
    chapters = []
    for number, span in enumerate(spans, 1):
        start, end = (round((later + Fraction(time)) * 1000) for time in span)
        about = {"time_base": Fraction(1, 1000), "metadata": {"title": f"Event {number}"}}
        chapters.append({"id": number, "start": start, "end": end, **about})
    return chapters


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    try:
        yield
    except (av.error.FFmpegError, OSError, ValueError) as problem:
        raise OngebdError(f"can't write {target.parent}: {reason(problem)}; write elsewhere") from None


def _packets(file: Any, streams: Sequence[Any], source: str) -> Iterator[Any]:
    """The packets that say when they are shown."""
    with source_errors(source):
        yield from (one for one in file.demux(streams) if one.pts is not None or one.dts is not None)


def _first(source: str) -> Any:
    """The first picture."""
    with open_container(source) as file:
        video = pick_stream(file, None, source_name(source))
        for packet in _packets(file, [video], source):
            for frame in _decoded(video, packet):
                return frame
    raise SourceError(f"{source_name(source)}: no picture can be decoded; check it with ffprobe")


def _decoded(video: Any, packet: Any) -> Iterator[Any]:
    """The pictures of a packet; None: the last ones."""
    with suppress(av.error.FFmpegError, ValueError):  # damaged; later pictures may be whole
        for frame in video.codec_context.decode(packet):
            if frame.pts is not None:
                frame.time_base = video.time_base
                yield frame


def _time(shown: Any) -> Fraction:
    """When a packet or a picture is shown, in seconds on the source's clock."""
    return Fraction((shown.dts if shown.pts is None else shown.pts) * shown.time_base)
