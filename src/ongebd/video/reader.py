"""Reads a source frame by frame: decoded, timed, sampled, upright, resized."""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, dropwhile
from math import floor, inf
from typing import Protocol, Self, cast

import av.error
from av.codec.context import CodecContext, ThreadType
from av.container import InputContainer
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from ongebd.errors import SourceError, a_whole_number
from ongebd.types import Epoch, Frame, ImageU8
from ongebd.video.access import Pieces
from ongebd.video.connecting import Connecting, aside, interruptible
from ongebd.video.parts import codec_of, is_animated_webp, rest_of
from ongebd.video.picture import Damage, Fit, Hidden, RgbMaker, Squash, Turn, View
from ongebd.video.source import (
    Source,
    advice,
    has_timestamps,
    kind_of,
    local_path,
    open_container,
    pick_stream,
    reason,
    source_errors,
    source_name,
    trouble_with,
    unreadable,
    videos_of,
)
from ongebd.video.stills import stills_of
from ongebd.video.timing import DEFAULT_RATE, Clock, Sampler, Tick, exact_rate

_OF_33_BITS = ("mpegts", "mpeg", "hls", "rtsp", "rtp", "sdp")
"""Containers and protocols whose timestamps start again at 0 after 26.5 hours."""

LARGE = 1280 * 720
"""Pixels of a picture from which on several threads decode a file."""
_GRACE = 0.5
"""Seconds by which no frame may come longer than no byte, so that silence is told as silence."""
_JOINED = 3
"""Packets from a gap in the data to the key frame after it, where pieces were joined."""
_UNREAD = 1 << 18
"""The least bytes behind the last picture that are worth a word."""


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

    The reader skips what doesn't decode, counts it, and says so in `warnings`. A step back or a leap of the
    clock and a change of the picture's size or format begin a new epoch (`epochs`), and so does another video
    in the same file. Frames of a live source without timestamps have the time at which they came.

    Args:
        source: A path, URL, `-`, camera or binary file object; a folder or a pattern of pictures.
        fps: The rate to sample to, in frames a second; None yields every frame.
        short_side: Short for `view=Fit(short_side)`.
        view: How to resize each frame, as a backbone wants it (`Backbone.view`); None keeps the size.
        stream: Which video stream, from 0, not counting cover art; None takes the default one, or the first.
        source_fps: Frames a second of a source without timestamps (raw H.264, pictures); ignored otherwise.
            If it equals `fps`, it is ignored for live sources, too.
        connecting: Time-outs, and what tells it to stop; None takes the defaults.
        preview: Adds a second picture to each frame (`Frame.preview`), whose shorter side has at most this
            many pixels.
        hidden: Paints parts of each frame black, not of the second picture.
        keep: Gets the source's packets.
        start: Seconds of the source before which no frame is wanted. A file is sought in.
        end: Seconds of the source at which reading ends.

    Attributes:
        container: FFmpeg's name of the container or protocol: mpegts, hls, …
        width: Of the coded picture, in pixels; `height` too.
        rate: Frames a second that the source declares or that are assumed, if any; times don't rest on it.
        expected_duration: Seconds that the container claims to last, if it does. For progress only.
        duration: Seconds from the first frame to the end of the last one decoded so far.
        decoded: Frames decoded so far, sampled or not.
        damaged: Packets that didn't decode and frames that the decoder flagged as damaged.
        hidden: Damaged frames that the last good one stands for.
        gaps: Packets around which the container found data missing (or pieces joined).
        broken: Why the source broke off (the network, a device); None if it ended by itself or is damaged.
        draining: Whether no more packets come, only frames that were held back.
        cut_off: What a file lacks of what it claims to hold, or how its rest is damaged; None if it is whole.
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
        hidden: Hidden | None = None,
        keep: Keeper | None = None,
        start: Fraction = Fraction(0),
        end: Fraction | None = None,
    ) -> None:
        self._source = source
        self._from, self._to = start, end
        self._connecting = connecting or Connecting()
        self.name = source_name(source)
        self._sampler = None if fps is None else Sampler(exact_rate(fps))
        self._source_fps = None if source_fps is None else exact_rate(source_fps, "source_fps")
        self._number = None if stream is None else a_whole_number("stream", stream)
        self._squashed = isinstance(view, Squash)
        self._rgb = RgbMaker(view if short_side is None or view is not None else Fit(short_side), hidden)
        self._preview = None if preview is None else RgbMaker(Fit(preview, enlarge=False))
        self.duration = Fraction(0)
        self.decoded = 0
        self.damaged = 0
        self.hidden = 0
        self.gaps = 0
        self.broken: str | None = None
        self.draining = False
        self.cut_off: str | None = None
        self.epochs: list[Epoch] = []
        self._notes: list[str] = []
        self._packets = 0
        self._ended: BaseException | None = None  # the error that ended reading
        self._until = inf  # when waiting for a frame ends
        self._unfit: str | None = None  # why a picture couldn't be resized
        self._damage = Damage()
        # Of the part that is being read: a picture of a folder, or a video in a file that holds several.
        self._is_open = False
        self._pieces = Pieces()
        self._began = Fraction(0)
        self._start = 0  # its place in the file
        self._at: int | None = None  # the place of its last packet
        self._break: str | None = None  # why its first frame begins an epoch
        self._still = -1  # the number of the picture
        with source_errors(source):
            self._kind = kind_of(source)
            named = self._kind == "file" and isinstance(source, str | os.PathLike) and source != "-"
            self._stills = deque(stills_of(local_path(os.fspath(source))) if named else ())  # type: ignore[arg-type]
            self._keep = None if self._stills else keep
            if not self._stills:
                self._begin(open_container(source, self._connecting, self._pieces), self._number)
            elif not self._next_still():
                raise SourceError(f"{self._notes[-1]} (and so are all pictures in {self.name})")
        self.container: str = self._container.format.name
        self.width: int = self._stream.width
        self.height: int = self._stream.height
        self.codec: str = self._stream.codec_context.name
        mean, guess = self._stream.average_rate, self._stream.guessed_rate
        # A steady 25 may be 24.985 on average.
        declared = guess if mean is None or (guess and 0.98 < guess / mean < 1.02) else mean
        self.rate = declared if self._timed else self._source_fps or DEFAULT_RATE
        self.expected_duration = _claimed_duration(self._stream)
        container_duration = self._container.duration or 0
        if self.expected_duration is None and container_duration > 0:
            self.expected_duration = container_duration / av.time_base
        if end is not None and self.expected_duration is not None:
            self.expected_duration = min(self.expected_duration, float(end))
        self.live = self._kind == "camera" or (self._kind == "url" and self.expected_duration is None)
        self.is_file = self._kind in ("file", "url") and not self.live
        # A rate of the source that is the sampling rate is a guess, made for files.
        guessed = self._source_fps in (None, self._sampler and self._sampler.fps)
        self._by_arrival = self.live and guessed and not self._timed
        self._clock = Clock(
            self._source_fps or DEFAULT_RATE,
            trust_pts=self.container != "avi",
            wraps=self.container in _OF_33_BITS,
            leaps=self.live or self.container in _OF_33_BITS,
        )

    def _begin(self, container: InputContainer, number: int | None = None) -> None:
        """Read a part of the source from now on."""
        notes = None if self._is_open else self._notes
        try:
            stream = pick_stream(container, number, self.name, self._connecting.max_pixels, notes)
        except SourceError:
            container.close()
            raise
        if self._is_open:
            self.close()
        self._container, self._stream, self._is_open = container, stream, True
        self._timed = has_timestamps(container) and self._still < 0
        # Frame threads hold back frames, and compete with the model for the cores: large files need them.
        large = stream.width * stream.height >= LARGE and self._kind == "file" and self._keep is None
        stream.thread_type = ThreadType.FRAME if large else ThreadType.SLICE
        stream.codec_context.thread_count = 3 if large else max(1, (os.cpu_count() or 1) - 1)
        if self._squashed:  # no blocks show there, and no other picture rests on these
            stream.codec_context.options |= {"skip_loop_filter": "noref"}
        self._decoder = stream.codec_context
        self._codec: str = self._decoder.name
        self._began = self.duration
        if self._keep is not None:
            self._keep.begin(stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the source."""
        if self._keep is not None:
            self._keep.end()
        if self._is_open:
            self._container.close()
        if self._pieces.close is not None:
            self._pieces.close()

    @property
    def warnings(self) -> list[str]:
        """Warnings for the user about the source so far, one line each."""
        notes = [*self._notes, *trouble_with(self._pieces, self._source)]
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
        if self.hidden:
            notes.append(f"damaged frames that were not judged: {self.hidden}")
        if self.gaps:
            notes.append(f"missing data or joined pieces in the container: {self.gaps}")
        if self._sampler is not None and self._sampler.shortfall:
            notes.append(
                f"the source has only {self._sampler.rate:.4g} frames/s, fewer than"
                f" {float(self._sampler.fps):g}; every frame is used once"
            )
        return notes

    def __iter__(self) -> Iterator[Frame]:
        with source_errors(self._source):
            yield from self._frames()

    def _frames(self) -> Iterator[Frame]:
        index, last_format = 0, None
        last: tuple[ImageU8, tuple[int, int], ImageU8 | None] | None = None
        self._wait_again()
        for picture in self._from_start():
            tick = self._tick(picture)
            if self._to is not None and tick.time >= self._to:
                break
            self.duration = tick.time + tick.duration
            if tick.time < self._from:
                self._wait_again()
                continue
            this_format = (picture.width, picture.height, picture.format.name if self._still < 0 else "")
            broke, self._break = self._break or tick.broke, None
            if broke is None and last_format is not None and last_format != this_format:
                broke = "the picture changed from {}x{} {} to {}x{} {}".format(*last_format, *this_format)
            damaged = self._damage.in_picture(picture, tick.time, broke is not None)
            if broke:
                last = None
                self.epochs.append(Epoch(len(self.epochs) + 1, float(tick.time), broke))
                if self._keep is not None:
                    self._keep.broke(picture.pts, same_picture=this_format == last_format)
                if self._sampler is not None:
                    self._sampler.restart()
            last_format = this_format
            if self._to is not None:
                self.duration = min(self.duration, self._to)
            if self._sampler is not None and not self._sampler.take(tick.time):
                self._wait_again()
                continue
            pts = picture.pts if self._timed else None
            try:
                rgb = self._rgb(picture, damaged=damaged)
                size = self._rgb.upright_size(picture, damaged=damaged)
                preview = None if self._preview is None else self._preview(picture, damaged=damaged)
            except (av.error.FFmpegError, ValueError) as problem:
                self.damaged += 1
                self._unfit = f"{picture.width}x{picture.height} {picture.format.name}: {reason(problem)}"
                continue
            if self._keep is not None:
                self._keep.turn = self._rgb.turn
            if damaged and last is not None and not self._damage.shows_more(last[0], rgb, self._codec):
                rgb, size, preview = last
                self.hidden += 1
            last = rgb, size, preview
            yield Frame(index, tick.time, rgb, len(self.epochs), pts, self._time_base, size, preview)
            index += 1
            self._wait_again()
        else:
            if self._from and self.decoded and self.duration <= self._from:
                ends = f"ends at {float(self.duration):.3f} s, before the start at {float(self._from):g} s"
                raise SourceError(f"{self.name}: {ends}; give an earlier start")
        if not self.decoded:
            self._refuse_if_damaged()
        if not index and self._unfit is not None:
            what = f"can't resize its pictures ({self._unfit})"
            raise SourceError(f"{self.name}: {what}; convert them to a usual size")

    def _wait_again(self) -> None:
        """A frame came, or reading begins: how long the next one may take. In a file it may take any time."""
        if self._kind == "file" or (self._kind == "pipe" and not self._connecting.live):
            return
        wait = self._connecting.read_timeout * (3 if self.container == "hls" else 1)  # it comes in pieces
        wait += 0 if self.decoded else self._connecting.open_timeout  # until the first key frame
        self._until = time.monotonic() + wait + _GRACE

    def _refuse_if_damaged(self) -> None:
        """No frame came. That is fine if the source holds none and came to its end."""
        ended, kind = self._ended, self._kind
        damaged = isinstance(ended, av.error.InvalidDataError)
        if kind == "pipe" and damaged:  # an index at the end, say, and a pipe can't go back
            raise unreadable(self._source)
        if ended is not None and (kind == "url" or not damaged):
            why = reason(ended, self._connecting)
            raise SourceError(f"{self.name}: stopped before its first frame: {why}; {advice(self._source)}")
        if self._packets:
            fix = "record or download it again"
            if not self.width:  # FFmpeg saw no picture, perhaps because of its size
                most = self._connecting.max_pixels
                fix += f", or raise --max-pixels if its pictures have more than {most:,} pixels"
            if self.codec == "webp" and kind == "file" and is_animated_webp(self._source):
                fix = (
                    "FFmpeg has no decoder for animated WebP; convert it to GIF or MP4 (magick a.webp a.mp4)"
                )
            packets = f"packets: {self._packets}, codec: {self.codec}"
            raise SourceError(f"{self.name}: can't decode its video ({packets}); {fix}")
        if ended is not None:
            raise unreadable(self._source)

    def _tick(self, picture: VideoFrame) -> Tick:
        if self._still >= 0:
            self._clock.untimed += 1
            return self._clock.tick(self._still, None, 1, 1 / (self._source_fps or DEFAULT_RATE))
        if self._by_arrival:
            return self._clock.tick(time.monotonic_ns() // 1000, None, 0, Fraction(1, 1_000_000))
        time_base = picture.time_base or self._time_base
        if not self._timed:
            return self._clock.tick(None, None, 0, time_base)
        return self._clock.tick(picture.pts, picture.dts, picture.duration, time_base)

    def _note_what_is_missing(self) -> None:
        """Compare what came with what the container claims to hold, unless FFmpeg only guessed that."""
        claimed, came = _claimed_duration(self._stream), float(self.duration - self._began)
        stated = self._timed and self.container not in _OF_33_BITS
        if stated and claimed is not None and claimed - came > 0.5:
            self._cut_off(f"cut off or damaged: read {came:.3f} s of {claimed:.3f} s")
        promised = (self._container.duration or 0) / av.time_base if self.container == "hls" else 0
        if promised - came > max(1, promised / 20) and not trouble_with(self._pieces, self._source):
            came_short = f"the playlist lists {promised:.1f} s of video, but {came:.1f} s came"
            self._notes.append(f"{came_short}; pieces are missing or may not be opened")

    @property
    def _time_base(self) -> Fraction:
        return self._stream.time_base or Fraction(1, 1_000_000)

    def _from_start(self) -> Iterator[VideoFrame]:
        """As `_pictures`, but without most of those before `start`, if the source can be sought in."""
        if not (self._from and self.is_file and self._timed):
            return self._pictures()
        rest = self._pictures_of_part()
        first = next(rest, None)
        if first is None:
            return self._pictures(rest)
        self._tick(first)  # time counts from here
        stamp = "pts" if self.container != "avi" and first.pts is not None else "dts"
        begin, counts = getattr(first, stamp), (self.decoded, self.damaged, self.gaps)
        if begin is None:
            return self._pictures(chain([first], rest))
        for early in (0, 1, 5, 30, 300, self._from):
            place = begin * (first.time_base or self._time_base) + max(Fraction(0), self._from - early)
            try:
                with interruptible(self._connecting.stop, self._until):
                    self._container.seek(floor(place / self._time_base), stream=self._stream)
            except (av.error.FFmpegError, OSError):
                return self._pictures(chain([first], rest))
            self._clock.skip()
            # Pictures before the first key frame may need others that were not read.
            part = dropwhile(lambda picture: not picture.key_frame, self._pictures_of_part())
            key = next(part, None)
            self.decoded, self.damaged, self.gaps = counts
            now = None if key is None else getattr(key, stamp)
            if key and now is not None and (now - begin) * (key.time_base or self._time_base) <= self._from:
                return self._pictures(chain([key], part))
            if early >= self._from:
                break
        return self._pictures() if key is None else self._pictures(chain([key], part))

    def _pictures(self, part: Iterator[VideoFrame] | None = None) -> Iterator[VideoFrame]:
        """Every frame that decodes, in presentation order, of one part after the other."""
        while True:
            yield from part or self._pictures_of_part()
            part = None
            if self._ended is not None:
                return
            self._note_what_is_missing()
            if self.broken is not None or not (self._next_still() if self._stills else self._next_video()):
                return

    def _pictures_of_part(self) -> Iterator[VideoFrame]:
        packets = self._looked_ahead(self._container.demux(self._stream))
        while True:
            try:
                with interruptible(self._connecting.stop, self._until):
                    packet = self._next_packet(packets)
            except (StopIteration, IndexError):  # PyAV can't flush streams that came up later
                yield from self._decode(None)
                return
            except (av.error.FFmpegError, OSError) as problem:
                yield from self._decode(None)
                self._break_off(problem)
                return
            if self.container == "mpegts" and packet.size:
                sound = self._stream.type != "video"  # another encoder uses its number
                codec = "sound" if sound else codec_of(packet, self._codec)
                if codec != self._codec:
                    if self._kind in ("url", "camera"):  # connecting again finds everything
                        yield from self._decode(None)
                        self._broke_off(f"the video changed from {self._codec} to {codec}")
                        return
                    if sound and self._kind != "file":
                        continue
                    yield from self._decode(None)
                    if sound:
                        return  # the rest of the file is opened next
                    self._change_codec(codec)
            if self._connecting.stopped:  # a file doesn't wait, so nothing else ends it
                self._ended, self.broken = InterruptedError(), "it was stopped"
                return
            self._packets += packet.size > 0
            self._at = self._at if packet.pos is None else packet.pos
            self.gaps += packet.is_corrupt
            if self._keep is not None:
                self._keep.add(packet, float(self.duration))
            yield from self._decode(packet)

    def _next_packet(self, packets: Iterator[Packet[VideoStream]]) -> Packet[VideoStream]:
        if self._kind != "camera":
            return next(packets)

        def read() -> Packet[VideoStream]:  # a container that is being read can't be closed
            self._is_open = False
            try:
                return next(packets)
            finally:
                self._is_open = True

        return aside(read, self._connecting, self._connecting.read_timeout)  # the driver may never answer

    def _looked_ahead(self, packets: Iterator[Packet[VideoStream]]) -> Iterator[Packet[VideoStream]]:
        """The packets. Damage is none where a sound key frame soon follows: there, pieces were joined."""
        waiting: deque[tuple[Packet[VideoStream], bool]] = deque()
        problem: Exception | None = None
        marked = False
        try:
            for packet in packets:
                # FFmpeg marks the packet before the one that lacks something.
                broken, marked = packet.is_corrupt or marked, packet.is_corrupt
                waiting.append((packet, broken))
                joined = packet.is_keyframe and not broken
                while waiting and (joined or not waiting[0][0].is_corrupt or len(waiting) > _JOINED):
                    one, broken = waiting.popleft()
                    self._damage.in_packet(one, broken=broken and not joined)
                    yield one
        except (av.error.FFmpegError, OSError, IndexError) as end:
            problem = end
        self.draining = True
        yield from (one for one, _ in waiting)
        if problem is not None:
            raise problem

    def _change_codec(self, codec: str) -> None:
        """Decode the packets that follow as another codec."""
        self._break = f"the video changed from {self._codec} to {codec}"
        old, self._codec = self._decoder, codec
        self._decoder = new = cast("VideoCodecContext", CodecContext.create(codec, "r"))
        new.thread_type, new.thread_count, new.options = old.thread_type, old.thread_count, old.options

    def _next_still(self) -> bool:
        """Go on to the next picture that can be read; false after the last one."""
        while self._stills:
            self._still += 1
            try:
                self._begin(open_container(self._stills.popleft(), self._connecting))
                return True
            except SourceError as problem:
                self.damaged += 1
                self._notes.append(str(problem))
        return False

    def _next_video(self) -> bool:
        """Go on to the next video in the file; false if there is none, with a note if there may be one."""
        if self._at is None or self._still >= 0:
            return False
        end = self._start + self._at
        if self._kind != "file":
            size = self._container.size if self._pieces.pipe is None else self._pieces.pipe.count
            if size - end > max(_UNREAD, size // 10):
                self._notes.append(
                    f"the last {(size - end) / 1e6:.1f} MB hold no pictures of the video that was read;"
                    " another one may begin there: save it as a file, and name that"
                )
            return False
        transport = self.container == "mpegts"
        rest = rest_of(self._source, end, transport=transport)
        if rest is None:
            return False
        # (FFmpeg knows no size of those that it only announces.)
        known = (
            {one.id for one in videos_of(self._container) if getattr(one, "width", 0)} if transport else set()
        )
        try:
            container = open_container(cast("Source", rest), self._connecting)
            new = [n for n, stream in enumerate(videos_of(container)) if stream.id not in known]
            if not new:
                container.close()
                return False
            self._begin(container, new[0] if transport else self._number)
        except SourceError:
            if not transport:
                self._notes.append(f"another video begins at byte {rest.start}, but can't be read")
            return False
        self._start, self._at = rest.start, None
        self._clock.restart()
        self._break = "another video begins in the file"
        return True

    def _break_off(self, problem: av.error.FFmpegError | OSError) -> None:
        """Note that reading ended with an error: the source broke, or the rest of a file is damaged."""
        self._ended, why = problem, reason(problem, self._connecting)
        if self._kind == "file" and isinstance(problem, av.error.InvalidDataError):
            self._cut_off(f"cut off or damaged after {float(self.duration):.3f} s: {why}")
            return
        if time.monotonic() > self._until and not self._connecting.stopped:
            why = f"no frame for {self._connecting.read_timeout:g} s, although data arrived"
        self._broke_off(why)

    def _cut_off(self, what: str) -> None:
        self.cut_off = what
        self._notes.append(what)

    def _broke_off(self, why: str) -> None:
        self.broken = f"the source broke off after {float(self.duration):.3f} s: {why}"
        self._notes.append(self.broken)

    def _decode(self, packet: Packet[VideoStream] | None) -> Iterator[VideoFrame]:
        try:
            pictures = self._decoder.decode(packet)
        except av.error.EOFError:  # already drained
            return
        except (av.error.FFmpegError, ValueError):
            self.damaged += 1
            self._damage.begin()
            return
        for picture in pictures:
            self.decoded += 1
            self.damaged += picture.is_corrupt
            yield picture


def _claimed_duration(stream: VideoStream) -> float | None:
    """Seconds that the stream claims to last, by its header or by its end time in Matroska."""
    if stream.duration is not None and stream.time_base is not None and stream.duration > 0:
        return float(stream.duration * stream.time_base)
    tag = re.fullmatch(r"(\d{1,6}):(\d\d):(\d\d(?:\.\d{1,12})?)", stream.metadata.get("DURATION", ""))
    if not tag:
        return None
    begins = float((stream.start_time or 0) * (stream.time_base or 0))
    return int(tag[1]) * 3600 + int(tag[2]) * 60 + float(tag[3]) - max(0.0, begins)
