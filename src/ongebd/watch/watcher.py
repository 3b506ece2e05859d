"""Watches several sources at once, on one pool, until it is stopped or all of them are over."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType, TracebackType
from typing import Protocol, Self

from ongebd.detector import StreamConfig
from ongebd.detector.models import DEFAULT_MODEL, Model
from ongebd.errors import ConfigError, a_whole_number
from ongebd.pool import PoolResult, StreamPool
from ongebd.video import VideoReader
from ongebd.video.connecting import Connecting
from ongebd.video.source import kind_of
from ongebd.video.timing import exact_rate
from ongebd.watch.clips import ClipLength, Clips
from ongebd.watch.clock import LiveClock, RealClock
from ongebd.watch.hub import Hub
from ongebd.watch.metrics import Served, rendered
from ongebd.watch.records import Clip, Onset
from ongebd.watch.sources import Patience, WatchedSource, sources_of
from ongebd.watch.stream import WatchedStream
from ongebd.watch.supervisor import Opener, Reader, Supervisor
from ongebd.watch.thumbnails import SHORT_SIDE, check_can_draw

_TICK = 0.25
_STOP_SECONDS = 5.0
_MOST_PENDING = 100_000
_DECIDING_SECONDS = 2.0
"""How long a decision on a frame may take, once the model has taken the frame."""


class Attached(Served, Protocol):
    """What lives and ends with a watcher: a sink.

    Attributes:
        tells: Whether it tells records itself.
    """

    tells: bool

    def start(self) -> None:
        """Begin."""

    def finish(self, seconds: float) -> None:
        """Handle what waits, for so long at most, and end; the hub is closed by then."""


class Watcher:
    """Watches cameras and feeds; use it as a context manager, or call `start` and `stop`.

    What it sees it tells on `hub`; `streams` knows how each does, and its last hour.

    Args:
        sources: Files, URLs, `camera:N`, `-`; each may have `NAME=` in front.
        model: The name of a model, or a loaded one.
        config: Settings of every stream; None takes the model's.
        device: As `StreamPool`.
        precision: As `StreamPool`.
        patience: Time-outs, and how a lost source is connected anew.
        realtime: Whether what is not live is played at its own pace.
        max_pending: Frames of one stream that may wait for the model, 1 to 100 000. Of a live source the
            oldest is dropped where one more comes; what gives its data when it is asked waits itself.
        source_fps: Frames a second of a source without timestamps (raw H.264); None takes `fps` of the config
            that is given.
        thumbnails: Whether boundaries have pictures.
        clips: What of a source is in a clip of a boundary; None: there are none. Who writes them reads
            `footage`, and tells `wrote` or `missed`.
        clock: None takes the machine's.
        opener: Opens sources, in place of `VideoReader`.

    Raises:
        ConfigError: A setting is out of range, or there is nothing to watch.
        MissingExtraError: Pictures are wanted and Pillow is not installed.
    """

    def __init__(
        self,
        sources: Sequence[str],
        *,
        model: str | os.PathLike[str] | Model = DEFAULT_MODEL,
        config: StreamConfig | None = None,
        device: str = "cpu",
        precision: str | None = None,
        patience: Patience | None = None,
        realtime: bool = False,
        max_pending: int = 48,
        source_fps: float | None = None,
        thumbnails: bool = True,
        clips: ClipLength | None = None,
        clock: LiveClock | None = None,
        opener: Opener | None = None,
    ) -> None:
        named = sources_of(sources)
        if a_whole_number("max_pending", max_pending) > _MOST_PENDING:
            raise ConfigError(f"max_pending must be at most {_MOST_PENDING}, not {max_pending}")
        self._source_fps = config.fps if source_fps is None and config is not None else source_fps
        if self._source_fps is not None:
            exact_rate(self._source_fps, "source_fps")
        if thumbnails:
            check_can_draw()
        self.hub, self.footage = Hub(), Hub()
        self.clock = clock or RealClock()
        self.patience = patience or Patience()
        self._thumbnails = thumbnails
        self._stop = threading.Event()
        self._started = self._stopped = False
        self._failure: BaseException | None = None
        self._attached: list[Attached] = []
        self._clips = clips
        self._pool = StreamPool(
            model,
            device=device,
            precision=precision,
            config=config,
            max_pending=max_pending,
            on_result=self._decided,
        )
        self.model = self._pool.model
        try:
            self._streams = {source.key: self._watched(source) for source in named}
        except BaseException:
            self._pool.close(drain=False)
            raise
        chance = random.Random()
        self._supervisors = [
            Supervisor(
                source,
                self._streams[source.key],
                opener or self._open,
                self.patience,
                self.clock,
                self._stop,
                realtime=realtime,
                fail=self._fail,
                chance=chance,
            )
            for source in named
        ]
        self._housekeeper = threading.Thread(target=self._keep_house, name="ongebd-watch", daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def streams(self) -> Mapping[str, WatchedStream]:
        """The streams by key, in the order of the sources."""
        return MappingProxyType(self._streams)

    @property
    def config(self) -> StreamConfig:
        """The settings of every stream at its beginning."""
        return self._pool.config

    @property
    def attached(self) -> Sequence[Served]:
        """What was attached."""
        return tuple(self._attached)

    def attach(self, sink: Attached) -> None:
        """Let something begin and end with the watcher.

        Raises:
            ConfigError: It has begun already.
        """
        if self._started:
            raise ConfigError("attach a sink before the watcher starts, so that it misses nothing")
        self._attached.append(sink)

    def start(self) -> None:
        """Begin to watch; a second call does nothing."""
        if self._started:
            return
        self._started = True
        for sink in self._attached:
            sink.start()
        self._housekeeper.start()
        for supervisor in self._supervisors:
            supervisor.thread.start()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until all sources are over; whether they are.

        Args:
            timeout: Seconds to wait; None: as long as it takes.

        Raises:
            RuntimeError: Something broke that no source is to blame for; all is stopped.
        """
        until = None if timeout is None else time.monotonic() + timeout
        over = True
        for stream in self._streams.values():
            while over and not stream.over.is_set() and self._failure is None:
                left = _TICK if until is None else min(_TICK, until - time.monotonic())
                stream.over.wait(max(0.0, left))
                over = until is None or time.monotonic() < until
        if self._failure is not None:
            raise RuntimeError(f"the watcher has stopped: {self._failure}") from self._failure
        return all(stream.over.is_set() for stream in self._streams.values())

    def stop(self) -> None:
        """End everything: sources are closed, frames that wait are decided, sinks are emptied.

        A second call does nothing. Only a camera's driver that hangs can outlast it, in its own thread.
        """
        if self._stopped:
            return
        self._stopped = True
        self._stop.set()
        if self._started:
            until = time.monotonic() + _STOP_SECONDS
            for supervisor in self._supervisors:
                supervisor.thread.join(max(0.0, until - time.monotonic()))
            self._housekeeper.join()
        try:
            self._pool.close(drain=self._started)
        except RuntimeError as problem:  # what broke the pool
            self._failure = self._failure or problem
        # Who tells of clips ends first, so that the others still hear of the last ones.
        self.footage.close()
        self._finish(telling=True)
        for stream in self._streams.values():
            if stream.clips is not None:
                stream.clips.give_up()
        self.hub.close()
        self._finish(telling=False)

    def wrote(self, clip: Clip) -> None:
        """A clip is in a file: remember which, and tell it."""
        stream = self._streams[clip.stream]
        if stream.clips is not None:
            stream.clips.wrote(clip.number, clip.path)
        self.hub.publish(clip)

    def missed(self, onset: Onset) -> None:
        """There will be no clip of this onset: tell who waits for it."""
        stream = self._streams[onset.stream]
        if stream.clips is not None:
            stream.clips.missed(onset.number)

    def metrics(self) -> bytes:
        """Counters of all streams and sinks, in the text format of Prometheus.

        Raises:
            MissingExtraError: `prometheus_client` is not installed.
        """
        return rendered(self._streams.values(), self._attached)

    def _finish(self, *, telling: bool) -> None:
        for sink in self._attached:
            if self._started and sink.tells is telling:
                sink.finish(_STOP_SECONDS)

    def _watched(self, source: WatchedSource) -> WatchedStream:
        file = kind_of(source.source) == "file"
        pooled = self._pool.add(name=source.key, when_full="drop-oldest")
        clips = None
        if self._clips is not None:
            waiting = pooled.max_pending / float(pooled.config.rate())
            backlog = waiting + pooled.latency + _DECIDING_SECONDS
            clips = Clips(self._clips, backlog, self.footage.publish, self.hub.publish)
        return WatchedStream(
            source,
            pooled,
            self.hub,
            self.clock,
            stall_after=None if file else self.patience.stall_after,
            defaults=self.model.defaults,
            clips=clips,
        )

    def _open(self, source: WatchedSource, stop: threading.Event) -> AbstractContextManager[Reader]:
        return VideoReader(
            source.source,
            self._pool.config.rate(),
            view=self.model.backbone.view,
            connecting=Connecting(
                open_timeout=self.patience.open_timeout,
                read_timeout=self.patience.read_timeout,
                live=True,
                stop=stop,
            ),
            source_fps=self._source_fps,
            preview=SHORT_SIDE if self._thumbnails else None,
            keep=self._streams[source.key].clips,
        )

    def _decided(self, result: PoolResult) -> None:
        self._streams[str(result.stream.name)].decided(result)

    def _keep_house(self) -> None:
        while not self._stop.wait(_TICK):
            for stream in self._streams.values():
                stream.tick()

    def _fail(self, problem: BaseException) -> None:
        self._failure = self._failure or problem
        self._stop.set()
