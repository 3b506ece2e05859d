"""Runs a whole source through a stream: the same decisions as frame by frame, only faster."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import inf
from time import monotonic
from typing import Any, Self

from ongebd.common import MAX_PIXELS
from ongebd.detector.config import StreamConfig, asked_for
from ongebd.detector.detection import Decisions, Detection
from ongebd.detector.model import Model
from ongebd.detector.models import DEFAULT_MODEL, load
from ongebd.detector.segments import Selection, selected
from ongebd.errors import ConfigError, shown
from ongebd.types import Boundary, Decision, Epoch, Frame
from ongebd.video import Source, VideoReader
from ongebd.video.connecting import Connecting
from ongebd.video.source import check_source, source_name
from ongebd.video.timing import Moment, part_of

_PROGRESS = 0.1  # seconds from one report to the next


@dataclass(frozen=True, slots=True)
class Seen:
    """A frame and the decision on it."""

    frame: Frame
    decision: Decision


@dataclass(frozen=True, slots=True)
class Closed:
    """A boundary that was reported before, now with its peak and kind."""

    boundary: Boundary


Event = Seen | Boundary | Closed | Epoch


class SourceRun:
    """One source, read through one stream. Iterate once; use as a context manager.

    Yields, in order: `Seen` for each frame once there is a decision on it, `Boundary` as soon as it is
    decided, `Closed` once its peak and kind are known, `Epoch` where the source breaks. Decoding runs in its
    own thread and the backbone on several frames together; the decisions are those of `OnlineDetector.update`
    fed the same frames, to the bit.

    Args:
        source: What `VideoReader` takes.
        model: A loaded model.
        settings: As `model.configured` gives them; None takes the model's own.
        stream: Which video stream of the source.
        source_fps: Frames a second of a source without timestamps.
        max_pixels: The largest picture that is decoded.
        private_network: Whether what a web source names may be on the private network.
        workers: Frames that the backbone works on in parallel; None takes the processors, at most four.
        stop: Once another thread sets it, the source ends as if it had broken off, also while it is opened.
        start: Seconds of the source before which nothing is looked at.
        end: Seconds of the source at which reading ends.

    Raises:
        SourceError: The source can't be opened (immediately), or nothing of it decoded (while iterating).
        FeatureError: A feature is unfit (while iterating).
    """

    def __init__(
        self,
        source: Source,
        model: Model,
        settings: StreamConfig | None = None,
        *,
        stream: int | None = None,
        source_fps: float | Fraction | None = None,
        max_pixels: int = MAX_PIXELS,
        private_network: bool = False,
        workers: int | None = None,
        stop: threading.Event | None = None,
        start: Fraction = Fraction(0),
        end: Fraction | None = None,
    ) -> None:
        check_source(source)  # before a model is made ready
        self.detector = model.begin(settings or model.configured())
        self._stop = stop or threading.Event()  # what may wait for a silent source ends, once it is set
        self.video = VideoReader(
            source,
            self.detector.config.fps,
            view=model.backbone.view,
            stream=stream,
            source_fps=source_fps,
            connecting=Connecting(max_pixels=max_pixels, private_network=private_network, stop=self._stop),
            start=start,
            end=end,
        )
        if model.offline and self.video.live:
            self.video.close()
            model.check_online()
        self._offline = model.offline
        self._workers = workers or min(4, os.cpu_count() or 1)
        self._running: Generator[Event, None, None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._running is not None:  # its decoding thread must be gone before the source is closed
            self._running.close()
        self.video.close()

    def __iter__(self) -> Generator[Event, None, None]:
        self._running = self._events()
        return self._running

    def _events(self) -> Generator[Event, None, None]:
        epoch = 0
        held: deque[Frame] = deque()  # frames whose verdict a look-ahead has not reached yet
        with closing(self.detector.features(self.video, self._workers, self._stop.set)) as features:
            for frame, feature in features:
                if frame.epoch != epoch:
                    yield from self._rest(held)
                    self.detector.new_epoch()
                    yield from self.video.epochs[epoch : frame.epoch]
                    epoch = frame.epoch
                held.append(replace(frame, rgb=frame.rgb[::4, ::4].copy()) if self._offline else frame)
                yield from _taken(held, self.detector.take(feature, frame.time))
                yield from map(Closed, self.detector.closed())
            yield from self._rest(held)

    def _rest(self, held: deque[Frame]) -> Generator[Event, None, None]:
        """The events left at the end of the source, or of a part of it."""
        for decision in self.detector.drain():
            yield from _taken(held, decision)
        while (boundary := self.detector.flush()) is not None:
            yield boundary
        yield from map(Closed, self.detector.closed())


def _taken(held: deque[Frame], decision: Decision) -> Iterator[Event]:
    """The events of a decision, which is on the frame held longest unless it is pending."""
    if not decision.pending:
        yield Seen(held.popleft(), decision)
    if decision.boundary is not None:
        yield decision.boundary


def given_model(model: str | Model, device: str) -> Model:
    """The model that a user gave by name, or loaded, and so with its device."""
    if not isinstance(model, Model):
        return load(model, device=device)
    if device != "cpu":
        raise ConfigError("a loaded model has a device already; give the device to ongebd.load")
    return model


def detect(
    source: Source,
    model: str | Model = DEFAULT_MODEL,
    *,
    config: StreamConfig | None = None,
    stream: int | None = None,
    source_fps: float | Fraction | None = None,
    max_pixels: int = MAX_PIXELS,
    private_network: bool = False,
    device: str = "cpu",
    start: Moment | None = None,
    end: Moment | None = None,
    duration: Moment | None = None,
    min_length: float | None = None,
    max_per_minute: float | None = None,
    chapters: int | None = None,
    progress: Callable[[float, float | None], object] | None = None,
    **settings: Any,
) -> Detection:
    """Find the event boundaries of a source.

    It feeds an `OnlineDetector` from a file, URL or device, so batch and stream give equal results.

    Args:
        source: A path, a URL, `-` for standard input, `camera:N`, or a binary file object; a folder or a
            pattern (`img_%04d.png`) of pictures.
        model: The name of a model, or a loaded one.
        config: Settings; what is None takes the model's own value.
        stream: Which video stream, from 0, cover art not counted.
        source_fps: Frames a second of a source without timestamps (raw H.264); `fps` if not given.
        max_pixels: The largest picture that is decoded.
        private_network: Whether what a web source names may be on the private network.
        device: Where the networks of a model given by name run; see `load`.
        start: Where to begin, in seconds or as "h:mm:ss". Times still count from the start of the source.
        end: Where to end.
        duration: Seconds (or "h:mm:ss") after the start, instead of `end`.
        min_length: The shortest segment, in seconds. Weaker boundaries are dropped.
        max_per_minute: Most boundaries a minute. The strongest ones are kept.
        chapters: Most segments. The strongest boundaries are kept. For files only.
        progress: Called up to ten times a second and at the end, with the time that was reached and the one
            at which the source should end (None if unknown). If it raises an exception, `detect` stops.
        **settings: Single settings by name, as in `StreamConfig`: fps, sensitivity, tau, …

    Returns:
        The boundaries, the decision on every frame, and the duration in seconds.

    Raises:
        SourceError: The source cannot be read.
        ConfigError: A setting, a model or a device is unknown or out of range.
        MissingExtraError: An extra is needed and not installed.

    >>> import ongebd
    >>> for boundary in ongebd.detect("talk.mp4", sensitivity=0.3).boundaries:  # doctest: +SKIP
    ...     print(f"{boundary.time:.2f} s")
    """
    from ongebd.detector.trace import Album, thumbnail

    if progress is not None and not callable(progress):
        raise ConfigError(f"progress must be a function of two numbers of seconds, not {shown(progress)}")
    model = given_model(model, device)
    asked = asked_for(config, settings, detect.__annotations__)
    wanted = Selection(min_length=min_length, max_per_minute=max_per_minute, chapters=chapters)
    begin, until = part_of(start, end, duration)
    if source_fps is None:  # a rate that the user gave also times a source without timestamps
        source_fps = asked.fps
    boundaries: list[Boundary] = []
    decisions, album, told = Decisions(), Album(24), -inf
    with SourceRun(
        source,
        model,
        model.configured(asked),
        stream=stream,
        source_fps=source_fps,
        max_pixels=max_pixels,
        private_network=private_network,
        start=begin,
        end=until,
    ) as run:
        video = run.video
        for event in run:
            if isinstance(event, Seen):
                frame, decision = event.frame, event.decision
                decisions.append(decision)
                if decision.onset:
                    album.onset(decision.time, thumbnail(frame.rgb, frame.size))
                if progress is not None and monotonic() - told > _PROGRESS:
                    told = monotonic()
                    progress(decision.time, video.expected_duration)
            elif isinstance(event, Closed):
                boundaries.append(event.boundary)
                album.boundary(event.boundary)
    if progress is not None:
        progress(float(video.duration), video.expected_duration)
    whole = video.broken is None and video.cut_off is None
    seconds, reader = float(video.duration), None
    if video.is_file and isinstance(source, str | os.PathLike) and source != "-":  # it can be read again
        connecting = Connecting(max_pixels=max_pixels, private_network=private_network)
        reader = partial(VideoReader, source, stream=stream, source_fps=source_fps, connecting=connecting)
    chosen, found = boundaries, []
    if wanted:
        chosen, found = selected(boundaries, float(begin), seconds, wanted), boundaries
    return Detection(
        chosen,
        decisions,
        seconds,
        video.epochs,
        video.warnings,
        whole,
        float(begin),
        found,
        source_name(source),
        model.name,
        reader,
        album,
    )
