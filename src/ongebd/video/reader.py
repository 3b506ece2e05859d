"""Reads a source frame by frame: decoded, timed, sampled, upright, resized."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Protocol, Self

import av.error
from av.codec.context import ThreadType
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ongebd.errors import SourceError, a_whole_number
from ongebd.types import Epoch, Frame
from ongebd.video.connecting import Connecting, interruptible
from ongebd.video.picture import Fit, RgbMaker, Turn, View
from ongebd.video.source import (
    Source,
    advice,
    has_timestamps,
    kind_of,
    open_container,
    pick_stream,
    reason,
    source_name,
    unreadable,
)
from ongebd.video.timing import DEFAULT_RATE, Clock, Sampler, Tick, exact_rate

_OF_33_BITS = ("mpegts", "mpeg", "hls", "rtsp", "rtp", "sdp")
"""Containers and protocols whose timestamps start again at 0 after 26.5 hours."""


class Keeper(Protocol):
    """Gets every packet that a reader reads, in the reader's thread, before decoding.

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

    The reader skips what doesn't decode, counts it, and says so in `warnings`. A step back of the clock or a
    change of the picture's size or format begins a new epoch (`epochs`).

    Args:
        source: A path, URL, `-`, camera or binary file object.
        fps: The rate to sample to, in frames a second; None yields every frame.
        short_side: Short for `view=Fit(short_side)`.
        view: How to resize each frame, as a backbone wants it (`Backbone.view`); None keeps the size.
        stream: Which video stream, from 0, not counting cover art; None takes the first.
        source_fps: Frames a second of a source without timestamps (raw H.264, say); ignored otherwise.
        connecting: Time-outs, and what tells it to stop; None takes the defaults.
        preview: Adds a second picture to each frame (`Frame.preview`), whose shorter side has at most this
            many pixels.
        keep: Gets the source's packets.

    Attributes:
        container: FFmpeg's name of the container or protocol: mpegts, hls, …
        width: Of the coded picture, in pixels; `height` too.
        expected_duration: Seconds that the container claims to last, if it does. For progress only.
        duration: Seconds from the first frame to the end of the last one decoded so far.
        decoded: Frames decoded so far, sampled or not.
        damaged: Packets that didn't decode and frames that the decoder flagged as damaged.
        gaps: Packets around which the container found data missing (or pieces joined).
        broken: Why the source broke off (the network, a device); None if it ended by itself or is damaged.
        epochs: Breaks of the clock or the picture so far.

    Raises:
        SourceError: The source can't be opened, has no video, or none of it decodes.
        ConfigError: fps or source_fps isn't a number above 0.
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
        self._rgb = RgbMaker(view if short_side is None or view is not None else Fit(short_side))
        self._preview = None if preview is None else RgbMaker(Fit(preview, enlarge=False))
        self._container = open_container(source, self._connecting)
        self.container: str = self._container.format.name
        self._clock = Clock(
            self._source_fps or DEFAULT_RATE,
            trust_pts=self.container != "avi",
            wraps=self.container in _OF_33_BITS,
        )
        self._timed = has_timestamps(self._container)
        try:
            self._stream = pick_stream(self._container, number, self.name, self._connecting.max_pixels)
        except SourceError:
            self._container.close()
            raise
        # Frame threads would hold back frames, and compete with the model for the cores.
        self._stream.thread_type = ThreadType.SLICE
        self.width: int = self._stream.width
        self.height: int = self._stream.height
        self.codec: str = self._stream.codec_context.name
        self.expected_duration = _claimed_duration(self._stream)
        container_duration = self._container.duration or 0
        if self.expected_duration is None and container_duration > 0:
            self.expected_duration = container_duration / av.time_base
        self.duration = Fraction(0)
        self.decoded = 0
        self.damaged = 0
        self.gaps = 0
        self.broken: str | None = None
        self.epochs: list[Epoch] = []
        self._notes: list[str] = []
        self._packets = 0
        self._ended: BaseException | None = None  # the error that ended reading
        if keep is not None:
            keep.begin(self._stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the source."""
        if self._keep is not None:
            self._keep.end()
        self._container.close()

    @property
    def warnings(self) -> list[str]:
        """Warnings for the user about the source so far, one line each."""
        notes = list(self._notes)
        if self._clock.untimed:
            rate = float(self._source_fps or DEFAULT_RATE)
            advice_on_rate = "; set --source-fps" if self._source_fps is None else ""
            notes.append(
                f"frames without a timestamp: {self._clock.untimed}; using {rate:g} frames/s{advice_on_rate}"
            )
        if self._clock.reordered:
            notes.append("presentation times are out of order; using decoding times")
        if self.damaged:
            notes.append(f"damaged packets or frames: {self.damaged}; decoded frames: {self.decoded}")
        if self.gaps:
            notes.append(f"missing data or joined pieces in the container: {self.gaps}")
        if self._sampler is not None and self._sampler.shortfall:
            notes.append(
                f"the source has only {self._sampler.rate:.4g} frames/s, fewer than"
                f" {float(self._sampler.fps):g}; every frame is used once"
            )
        return notes

    def __iter__(self) -> Iterator[Frame]:
        index, last_format = 0, None
        for picture in self._pictures():
            tick = self._tick(picture)
            this_format = (picture.width, picture.height, picture.format.name)
            broke = tick.broke
            if broke is None and last_format is not None and last_format != this_format:
                broke = "the picture changed from {}x{} {} to {}x{} {}".format(*last_format, *this_format)
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
            pts = picture.pts if self._timed else None
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
        """No frame came. That is fine if the source holds none and came to its end."""
        ended, kind = self._ended, kind_of(self._source)
        damaged = isinstance(ended, av.error.InvalidDataError)
        if kind == "pipe" and damaged:  # an index at the end, say, and a pipe can't go back
            raise unreadable(self._source)
        if ended is not None and (kind == "url" or not damaged):
            why = reason(ended, self._connecting)
            raise SourceError(f"{self.name}: broke off before its first frame: {why}; {advice(self._source)}")
        if self._packets:
            fix = "record or download it again"
            if not self.width:  # FFmpeg saw no picture, perhaps because of its size
                most = self._connecting.max_pixels
                fix += f", or raise --max-pixels if its pictures have more than {most:,} pixels"
            packets = f"packets: {self._packets}, codec: {self.codec}"
            raise SourceError(f"{self.name}: can't decode its video ({packets}); {fix}")
        if ended is not None:
            raise unreadable(self._source)

    def _tick(self, picture: VideoFrame) -> Tick:
        time_base = picture.time_base or self._time_base
        if not self._timed:
            return self._clock.tick(None, None, 0, time_base)
        return self._clock.tick(picture.pts, picture.dts, picture.duration, time_base)

    def _note_what_is_missing(self) -> None:
        """Compare what came with what the container claims to hold, unless FFmpeg only guessed that."""
        claimed, came = _claimed_duration(self._stream), float(self.duration)
        stated = self._timed and self.container not in _OF_33_BITS
        if stated and claimed is not None and claimed - came > 0.5:
            self._notes.append(f"cut off or damaged: read {came:.3f} s of {claimed:.3f} s")

    @property
    def _time_base(self) -> Fraction:
        return self._stream.time_base or Fraction(1, 1_000_000)

    def _pictures(self) -> Iterator[VideoFrame]:
        """Every frame that decodes, in presentation order."""
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
        """Note that reading ended with an error: the source broke, or the rest of a file is damaged."""
        self._ended = problem
        after, why = f"after {float(self.duration):.3f} s", reason(problem, self._connecting)
        if kind_of(self._source) == "file" and isinstance(problem, av.error.InvalidDataError):
            self._notes.append(f"cut off or damaged {after}: {why}")
        else:
            self.broken = f"the source broke off {after}: {why}"
            self._notes.append(self.broken)

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


def _claimed_duration(stream: VideoStream) -> float | None:
    """Seconds that the stream claims to last, by its header or by its end time in Matroska."""
    if stream.duration is not None and stream.time_base is not None and stream.duration > 0:
        return float(stream.duration * stream.time_base)
    tag = re.fullmatch(r"(\d+):(\d+):(\d+(?:\.\d+)?)", stream.metadata.get("DURATION", ""))
    if not tag:
        return None
    begins = float((stream.start_time or 0) * (stream.time_base or 0))
    return int(tag[1]) * 3600 + int(tag[2]) * 60 + float(tag[3]) - max(0.0, begins)
