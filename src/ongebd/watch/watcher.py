"""Watches several sources with one pool, until it is stopped or all of them are over."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from math import inf
from typing import Self

from ongebd.common import MAX_PIXELS
from ongebd.common.text import printable, public_name
from ongebd.detector import StreamConfig
from ongebd.detector.models import DEFAULT_MODEL, Model
from ongebd.errors import SourceError
from ongebd.pool import PoolResult, StreamPool
from ongebd.types import Frame
from ongebd.video import VideoReader
from ongebd.video.connecting import Connecting
from ongebd.video.source import kind_of
from ongebd.video.timing import exact_rate
from ongebd.watch.cameras import Camera
from ongebd.watch.clips import ClipCutter, ClipLength
from ongebd.watch.hub import Hub
from ongebd.watch.incidents import Alerts
from ongebd.watch.metrics import metrics_text
from ongebd.watch.records import State
from ongebd.watch.sink import HubSink, countdown
from ongebd.watch.sources import SEGMENTED, Clock, Opener, Patience, WatchedSource, is_live, sources_of
from ongebd.watch.stream import THUMBNAIL_SIDE, WatchedStream

_TICK = 0.25
_POLL = 0.02
_WARN_SECONDS = 1.0
_STOP_SECONDS = 5.0
_READER_SECONDS = 0.8
"""How long a stop waits for a reader; one that hangs (a driver, a look-up) is left behind."""
_DECIDING_SECONDS = 2.0
"""How long a decision about a frame may take once the model has the frame."""


class Watcher:
    """Watches cameras and feeds; use it as a context manager, or call `start` and `stop`.

    It publishes what it sees on `hub`; `streams` has the status and the last minutes of each stream.

    Args:
        sources: Files, URLs, `camera:N`, `-`, each of which may begin with `NAME=`; and cameras.
        model: The name of a model, or a loaded one.
        config: Settings of every stream; None takes the model's.
        device: As in `StreamPool`.
        patience: Timeouts, and how to reconnect.
        realtime: Whether sources that are not live are played at their own pace.
        max_pending: Frames of one stream that may wait for the model. When a live source sends one more, the
            oldest is dropped; other sources wait.
        source_fps: Frames a second of a source without timestamps (raw H.264); None takes `config.fps`.
        max_pixels: The largest picture that is decoded.
        private_network: Whether what a web source names may be on the private network.
        thumbnails: Whether boundaries have pictures.
        clips: What a clip contains; None: without clips. A `ClipSink` writes them.
        alerts: Which incidents alarm people, where a camera doesn't say; None: the usual ones.
        clock: None takes the machine's.
        opener: Opens sources instead of `VideoReader`.

    Attributes:
        streams: By key, in the order of the sources.
        config: The initial settings of every stream.
        sinks: Those that were attached.
        footage: Where clips that are ready to be written are published.

    Raises:
        ConfigError: A setting is out of range, or two sources have the same name.
    """

    def __init__(
        self,
        sources: Sequence[str | Camera],
        *,
        model: str | os.PathLike[str] | Model = DEFAULT_MODEL,
        config: StreamConfig | None = None,
        device: str = "cpu",
        patience: Patience | None = None,
        realtime: bool = False,
        max_pending: int = 48,
        source_fps: float | None = None,
        max_pixels: int = MAX_PIXELS,
        private_network: bool = False,
        thumbnails: bool = True,
        clips: ClipLength | None = None,
        alerts: Alerts | None = None,
        clock: Clock | None = None,
        opener: Opener | None = None,
    ) -> None:
        named = sources_of(sources)
        self._alerts = alerts or Alerts()
        self._source_fps = config.fps if source_fps is None and config is not None else source_fps
        if self._source_fps is not None:
            exact_rate(self._source_fps, "source_fps")
        self.hub, self.footage = Hub(), Hub()
        self.clock, self.clips = clock or Clock(), clips
        self._patience, self._thumbnails = patience or Patience(), thumbnails
        self._connecting = Connecting(
            open_timeout=self._patience.open_timeout,
            read_timeout=self._patience.read_timeout,
            live=True,
            private_network=private_network,
            max_pixels=max_pixels,
        )
        self._stop = threading.Event()
        self._started = self._stopped = False
        self._failure: BaseException | None = None
        self.sinks: list[HubSink] = []
        self.streams: Mapping[str, WatchedStream] = {}
        self._pool = StreamPool(
            model, device=device, config=config, max_pending=max_pending, on_result=self._decided
        )
        self.model, self.config = self._pool.model, self._pool.config
        self.streams = {source.key: self._stream(source) for source in named}
        for stream in self.streams.values():  # so that memory doesn't depend on how many there are
            stream.history.most_bytes //= len(self.streams)
        self._opener, self._realtime = opener or self._open, realtime
        # Daemons: a driver that hangs in the kernel must not keep the program alive.
        self._readers = [
            threading.Thread(target=self._read, args=[one], name=f"ongebd-read-{one.key}", daemon=True)
            for one in named
        ]
        self._ticker = threading.Thread(target=self._tick, name="ongebd-watch", daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def attach(self, sink: HubSink) -> None:
        """Start and stop this sink with the watcher. Call it before `start`, or records are missed."""
        self.sinks.append(sink)

    def start(self) -> None:
        """Begin to watch."""
        self._started = True
        for sink in self.sinks:
            sink.start()
        for thread in (self._ticker, *self._readers):
            thread.start()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until all sources are over; returns whether they are.

        Args:
            timeout: The most seconds to wait; None: as long as it takes.

        Raises:
            RuntimeError: A fault of the program; everything is stopped.
        """
        until = inf if timeout is None else time.monotonic() + timeout
        while not (over := all(stream.over.is_set() for stream in self.streams.values())):
            if self._failure is not None or time.monotonic() >= until:
                break
            self._pool.wait(0)  # raises if the model broke
            time.sleep(_POLL)
        if self._failure is not None:
            raise RuntimeError(f"the watcher has stopped: {self._failure}") from self._failure
        return over

    def stop(self, signals: Sequence[object] = ()) -> None:
        """End everything: close sources, decide the frames that wait, empty the sinks.

        Deciding may take five seconds; then what still waits is dropped. So may each round of sinks. A second
        call does nothing. Only a reader that hangs (in a camera's driver, say) can outlast it.

        Args:
            signals: Once this grows, what is left may take one second.
        """
        if self._stopped:
            return
        self._stopped, before = True, len(signals)
        self._stop.set()
        if self._started:
            until = time.monotonic() + _READER_SECONDS
            for thread in self._readers:
                thread.join(max(0.0, until - time.monotonic()))
            self._ticker.join()
        left = countdown(_STOP_SECONDS, signals, before)
        try:
            while self._started and not (decided := self._pool.wait(_POLL)) and left():
                pass
            self._pool.close(drain=self._started and decided)
        except RuntimeError as problem:  # what broke the pool
            self._failure = self._failure or problem
            with suppress(RuntimeError):  # the same again
                self._pool.close(drain=False)
        # Sinks that publish records themselves end first, so that the others still hear of the last ones.
        for publishes in (True, False) if self._started else ():
            left = countdown(_STOP_SECONDS, signals, before)
            ending = [sink for sink in self.sinks if sink.publishes is publishes]
            for sink in ending:
                sink.end()
            for sink in ending:
                sink.finish(left)
        self.footage.close()
        self.hub.close()

    def metrics(self) -> bytes:
        """Counters of all streams and sinks, in the text format of Prometheus.

        Raises:
            MissingExtraError: `prometheus_client` is not installed.
        """
        return metrics_text(self.streams.values(), self.sinks)

    def _stream(self, source: WatchedSource) -> WatchedStream:
        pooled = self._pool.add(name=source.key)
        clips = None
        if self.clips is not None:
            backlog = pooled.max_pending / pooled.config.rate() + pooled.latency + _DECIDING_SECONDS
            clips = ClipCutter(self.clips, backlog, self.footage.publish)
        stall_after = None if kind_of(source.source) == "file" else self._patience.stall_after
        camera = source.camera or Camera(**vars(self._alerts))
        defaults = self.model.defaults
        return WatchedStream(source, pooled, self.hub, self.clock, stall_after, defaults, clips, camera)

    def _open(self, source: WatchedSource, stop: threading.Event) -> VideoReader:
        return VideoReader(
            source.source,
            self.config.rate(),
            view=self.model.backbone.view,
            connecting=replace(self._connecting, stop=stop),
            source_fps=self._source_fps,
            preview=THUMBNAIL_SIDE if self._thumbnails else None,
            hidden=self.streams[source.key].masks,
            keep=self.streams[source.key].clips,
        )

    def _decided(self, result: PoolResult) -> None:
        stream = self.streams.get(str(result.stream.name))
        if stream is not None:  # it is None while a camera's own sensitivity is set, before all are here
            stream.decided(result)

    def _tick(self) -> None:
        while not self._stop.wait(_TICK):
            for stream in self.streams.values():
                stream.tick()

    def _read(self, source: WatchedSource) -> None:
        try:
            self._watch(source, self.streams[source.key])
        except BaseException as problem:  # noqa: BLE001 - `join` raises it
            self._failure = self._failure or problem
            self._stop.set()

    def _watch(self, source: WatchedSource, stream: WatchedStream) -> None:
        """Read a source until it is over, given up or stopped."""
        attempt, retries = 0, self._patience.retries
        while True:
            state, reason, had_frames = self._connection(source, stream)
            stream.disconnect()
            if self._stop.is_set():
                return stream.finish("ended", "stopped")
            if state is not None:
                return stream.finish(state, reason)
            attempt = 1 if had_frames else attempt + 1
            if retries is not None and attempt > retries:
                tried = f"; given up after {retries} attempt{'s' * (retries != 1)}" if retries else ""
                return stream.finish("failed", reason + tried)
            delay = self._patience.delay(attempt)
            stream.change_state("reconnecting", f"{reason}; next attempt in {delay:.1f} s")
            self.clock.wait(self._stop, delay)

    def _connection(self, source: WatchedSource, stream: WatchedStream) -> tuple[State | None, str, bool]:
        """One connection: the last state (None to reconnect), the reason, and whether it gave frames."""
        had_frames, opened, live, warned = False, False, True, -inf
        try:
            with self._opener(source, self._stop) as reader, ExitStack() as closing:
                opened = True
                closing.callback(lambda: stream.warn(_warnings(reader), last=not live or self._stop.is_set()))
                live = is_live(source.source, reader.expected_duration)
                # Pieces of seconds are played at their pace; else each would be a flood, then a stall.
                segmented = live and reader.container in SEGMENTED
                paced = segmented or (self._realtime and not live)
                stream.wait_for_model(segmented or not (live or self._realtime))
                for frame in self._paced(reader) if paced else reader:
                    reason = reader.epochs[-1].reason if reader.epochs else ""
                    stream.take(frame, reason, last=reader.draining)
                    had_frames = True
                    if self._stop.is_set():
                        break
                    if (now := self.clock.monotonic()) - warned >= _WARN_SECONDS:
                        warned = now
                        stream.warn(_warnings(reader))
                broken = reader.broken or reader.cut_off
        except SourceError as problem:
            final = kind_of(source.source) not in ("camera", "url") or (opened and not live)
            return "failed" if final else None, printable(str(problem)), had_frames
        reason = printable(public_name(broken or ("the source ended" if live else "the source has ended")))
        return None if live else "failed" if broken else "ended", reason, had_frames

    def _paced(self, reader: VideoReader) -> Iterator[Frame]:
        """Each frame when its time has come; a late frame immediately."""
        began, epoch = 0.0, -1
        for frame in reader:
            if frame.epoch != epoch:  # its clock may have jumped
                began, epoch = self.clock.monotonic() - float(frame.time), frame.epoch
            if self.clock.wait(self._stop, began + float(frame.time) - self.clock.monotonic()):
                return
            yield frame


def _warnings(reader: VideoReader) -> list[str]:
    """A reader's warnings, but not why it broke off: the change of state tells that."""
    return [warning for warning in reader.warnings if warning != reader.broken]
