"""Reads a source frame by frame: decoded, timed, sampled, upright, resized."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from types import TracebackType
from typing import Protocol, Self

import av.error
from av.codec.context import ThreadType
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ongebd.common.geometry import FitWithin, View
from ongebd.errors import SourceError, a_whole_number
from ongebd.types import Epoch, Frame
from ongebd.video.clock import DEFAULT_RATE, Clock, Tick
from ongebd.video.connecting import Connecting
from ongebd.video.interruption import interruptible
from ongebd.video.rgb import RgbMaker
from ongebd.video.sampling import Sampler, exact_rate
from ongebd.video.source import (
    Source,
    has_stamps,
    kind_of,
    mend,
    open_container,
    pick_stream,
    reason,
    source_name,
    unreadable,
)
from ongebd.video.upright import Turn

_OF_33_BITS = ("mpegts", "mpeg", "hls", "rtsp", "rtp", "sdp")
"""Containers and protocols whose timestamps begin again at 0 after 26.5 hours."""


class Keeper(Protocol):
    """Told of what a reader reads, in its thread, before it is decoded; `RecentPackets` is what it is for.

    Attributes:
        turn: What brings the pictures upright; the reader sets it.
    """

    turn: Turn

    def begin(self, stream: VideoStream) -> None:
        """The source is open."""

    def add(self, packet: Packet[VideoStream], time: float) -> None:
        """The next packet; `time` seconds of the source are decoded."""

    def broke(self, pts: int | None, *, same_picture: bool) -> None:
        """An epoch begins with the picture of this pts."""

    def end(self) -> None:
        """The source is about to be closed."""


class VideoReader:
    """The frames of one source, in order, each with its exact time. Iterate once; use as a context manager.

    What cannot be decoded is counted and told in `warnings`; the rest is read. A step back of the clock or a
    change of the picture's size or format begins a new epoch (`epochs`).

    Args:
        source: A path, URL, `-`, camera or binary file object.
        fps: The rate to sample to, in frames a second; None hands out every frame.
        short_side: Resize each frame so that its shorter side has this many pixels (bicubic, by swscale, in
            one step with the conversion to RGB); None keeps the size. Short for `view=Fit(short_side)`.
        view: How to resize each frame, as a backbone asks for it (`Backbone.view`).
        stream: Which video stream, from 0, cover art not counted; None takes the first.
        source_fps: Frames a second of a source without timestamps (raw H.264, say); ignored elsewhere.
        connecting: Time-outs, FFmpeg's options, and what tells it to stop; None takes the usual ones.
        preview: Of each frame also a picture for people (`Frame.preview`), whose shorter side has this many
            pixels, or its own where those are fewer.
        keep: Who is told of the source's packets.

    Raises:
        SourceError: The source cannot be opened, has no video, or nothing of it can be decoded.
        ConfigError: fps or source_fps is not a number above 0.
    """

    def __init__(
        self,
        source: Source,
        fps: float | Fraction | None = None,
        *,
        short_side: int | None = None,
        view: View | None = None,
        stream: int | None = None,
        source_fps: float | Fraction | None = None,
        connecting: Connecting | None = None,
        preview: int | None = None,
        keep: Keeper | None = None,
    ) -> None:
        self._source, self._keep = source, keep
        self._connecting = connecting or Connecting()
        self.name = source_name(source)
        self._sampler = None if fps is None else Sampler(exact_rate(fps))
        self._source_fps = None if source_fps is None else exact_rate(source_fps, "source_fps")
        number = None if stream is None else a_whole_number("stream", stream)
        self._rgb = RgbMaker(short_side, view=view)
        self._preview = None if preview is None else RgbMaker(view=FitWithin(preview))
        self._container = open_container(source, self._connecting)
        rate = self._source_fps or DEFAULT_RATE
        kind = self._container.format.name
        self._clock = Clock(rate, trust_pts=kind != "avi", wraps=kind in _OF_33_BITS)
        self._stamped = has_stamps(self._container)
        try:
            self._stream = pick_stream(self._container, number, self.name)
        except SourceError:
            self._container.close()
            raise
        # Frame threads would hold back frames, and fight the model for the cores.
        self._stream.thread_type = ThreadType.SLICE
        self.width: int = self._stream.width
        self.height: int = self._stream.height
        self.container: str = self._container.format.name
        """FFmpeg's name of the container or protocol: mpegts, hls, …"""
        self.codec: str = self._stream.codec_context.name
        self.expected_duration = _expected_duration(self._stream, self._container.duration)
        """Seconds that the container claims to last; None if it does not say. For progress only."""
        self.duration = Fraction(0)
        """Seconds from the first frame to the end of the last one decoded so far."""
        self.decoded = 0
        """Frames decoded so far, sampled or not."""
        self.damaged = 0
        """Packets that did not decode and frames that the decoder flagged as damaged."""
        self.gaps = 0
        """Packets around which the container found data missing (or pieces joined)."""
        self.broken: str | None = None
        """Why the source broke off before its end (the network, a device, the writer of a pipe), one line;
        None where it ended by itself, or where what is left of a file is damaged."""
        self.epochs: list[Epoch] = []
        self._notes: list[str] = []
        self._packets = 0
        self._first: float | None = None  # the first frame's timestamp, in seconds
        self._ended: BaseException | None = None  # the error with which reading ended
        if keep is not None:
            keep.begin(self._stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the source."""
        if self._keep is not None:
            self._keep.end()
        self._container.close()

    @property
    def warnings(self) -> list[str]:
        """What a user ought to know of the source so far, one line each."""
        notes = list(self._notes)
        if self._clock.untimed:
            given = self._source_fps is not None
            rate = f"{float(self._source_fps or DEFAULT_RATE):g} frames/s"
            how = (
                f"taken as {rate} apart, as asked"
                if given
                else f"{rate} assumed; give its rate with --source-fps"
            )
            count, have = self._clock.untimed, "has" if self._clock.untimed == 1 else "have"
            notes.append(f"{_counted(count, 'frame')} {have} no timestamp: {how}")
        if self._clock.reordered:
            notes.append("its presentation times are out of order: decoding times are used instead")
        if self.damaged:
            one = self.damaged == 1
            damaged = "1 packet or frame was" if one else f"{self.damaged} packets or frames were"
            good = f"{_counted(self.decoded, 'frame')} {'was' if self.decoded == 1 else 'were'}"
            notes.append(f"{damaged} damaged; {good} decoded")
        if self.gaps:
            places = _counted(self.gaps, "place")
            notes.append(f"data is missing, or pieces were joined, at {places} of the container")
        if self._sampler is not None and self._sampler.shortfall:
            notes.append(
                f"the source gives {self._sampler.rate:.4g} frames/s, fewer than the"
                f" {float(self._sampler.fps):g} asked for: each is used once, none is invented"
            )
        return notes

    def __iter__(self) -> Iterator[Frame]:
        index, last_format = 0, None
        for picture in self._pictures():
            tick = self._tick(picture)
            this_format = (picture.width, picture.height, picture.format.name)
            broke = tick.broke or _change(last_format, this_format)
            if broke:
                self.epochs.append(Epoch(len(self.epochs) + 1, float(tick.time), broke))
                if self._keep is not None:
                    self._keep.broke(picture.pts, same_picture=this_format == last_format)
                if self._sampler is not None:
                    self._sampler.restart()
            last_format = this_format
            self.duration = tick.time + tick.duration
            if self._sampler is not None and not self._sampler.take(tick.time):
                continue
            pts = picture.pts if self._stamped else None
            rgb, size = self._rgb(picture), self._rgb.upright_size(picture)
            if self._keep is not None:
                self._keep.turn = self._rgb.turn
            preview = None if self._preview is None else self._preview(picture)
            yield Frame(index, tick.time, rgb, len(self.epochs), pts, self._time_base, size, preview)
            index += 1
        if not self.decoded:
            self._refuse_if_damaged()
        if self._ended is None:
            self._note_what_is_missing()

    def _refuse_if_damaged(self) -> None:
        """Not one frame came: fine if there is none in the source, and it came to its end."""
        ended, kind = self._ended, kind_of(self._source)
        damaged = isinstance(ended, av.error.InvalidDataError)
        if kind == "pipe" and damaged:  # an index at the end, say, for which nobody can go back
            raise unreadable(self._source)
        if ended is not None and (kind == "url" or not damaged):
            raise SourceError(
                f"{self.name}: broke off before its first frame: {reason(ended, self._connecting)};"
                f" {mend(self._source)}"
            )
        if self._packets:
            which = (
                "its only video packet could not"
                if self._packets == 1
                else f"none of its {self._packets} video packets could"
            )
            raise SourceError(f"{self.name}: {which} be decoded ({self.codec}); record or download it again")
        if ended is not None:
            raise unreadable(self._source)

    def _tick(self, picture: VideoFrame) -> Tick:
        time_base = picture.time_base or self._time_base
        if self._first is None and picture.pts is not None:
            self._first = float(picture.pts * time_base)
        if not self._stamped:
            return self._clock.tick(None, None, 0, time_base)
        return self._clock.tick(picture.pts, picture.dts, picture.duration, time_base)

    def _note_what_is_missing(self) -> None:
        """Compare what came with what the container claims to hold, where it may be believed."""
        claimed, came = _claimed_duration(self._stream, self._first), float(self.duration)
        stated = self._stamped and self.container not in _OF_33_BITS  # where FFmpeg reckons by the stamps
        if stated and claimed is not None and claimed - came > 0.5:
            self._notes.append(
                f"it claims to last {claimed:.3f} s, but could be read for {came:.3f} s: cut off or damaged"
            )

    @property
    def _time_base(self) -> Fraction:
        return self._stream.time_base or Fraction(1, 1_000_000)

    def _pictures(self) -> Iterator[VideoFrame]:
        """Every frame that can be decoded, in presentation order."""
        packets = self._container.demux(self._stream)
        while True:
            try:
                with interruptible(self._connecting.stop):
                    packet = next(packets)
            except StopIteration:
                return
            except (av.error.FFmpegError, OSError) as problem:
                yield from self._decode(None)
                self._break_off(problem)
                return
            self._packets += packet.size > 0
            self.gaps += packet.is_corrupt
            if self._keep is not None:
                self._keep.add(packet, float(self.duration))
            yield from self._decode(packet)

    def _break_off(self, problem: av.error.FFmpegError | OSError) -> None:
        """Say that reading ended with an error, and whether the source broke or what is left is damaged."""
        self._ended = problem
        kind, why = kind_of(self._source), reason(problem, self._connecting)
        if kind == "file" and isinstance(problem, av.error.InvalidDataError):
            note = f"what follows after {float(self.duration):.3f} s is damaged or cut off: {why}"
        else:
            note = f"the source broke off after {float(self.duration):.3f} s: {why}"
            self.broken = note
        self._notes.append(note)

    def _decode(self, packet: Packet[VideoStream] | None) -> Iterator[VideoFrame]:
        try:
            pictures = self._stream.codec_context.decode(packet)
        except av.error.EOFError:  # already drained
            return
        except (av.error.FFmpegError, ValueError):
            self.damaged += 1
            return
        for picture in pictures:
            self.decoded += 1
            self.damaged += picture.is_corrupt
            yield picture


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _change(before: tuple[int, int, str] | None, now: tuple[int, int, str]) -> str | None:
    if before is None or before == now:
        return None
    return "the picture changed from {}x{} {} to {}x{} {}".format(*before, *now)


def _claimed_duration(stream: VideoStream, begins: float | None) -> float | None:
    """Seconds that the stream itself is said to last, by its header or by Matroska's DURATION tag.

    The tag tells the time of the end. `begins` is that of the first frame; None: as the stream says.
    """
    if stream.duration is not None and stream.time_base is not None and stream.duration > 0:
        return float(stream.duration * stream.time_base)
    tag = re.fullmatch(r"(\d+):(\d+):(\d+(?:\.\d+)?)", stream.metadata.get("DURATION", ""))
    if not tag:
        return None
    if begins is None and stream.start_time is not None and stream.time_base is not None:
        begins = float(stream.start_time * stream.time_base)
    end = int(tag[1]) * 3600 + int(tag[2]) * 60 + float(tag[3])
    return end - max(0.0, begins or 0.0)


def _expected_duration(stream: VideoStream, container_duration: int | None) -> float | None:
    claimed = _claimed_duration(stream, None)
    if claimed is not None:
        return claimed
    if container_duration is not None and container_duration > 0:
        return container_duration / av.time_base
    return None
