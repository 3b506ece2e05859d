"""One watched stream: its reader's thread gives it frames, the pool's thread gives it decisions."""

from __future__ import annotations

import re
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from operator import attrgetter

from ongebd.common.text import public_name
from ongebd.detector import StreamConfig
from ongebd.detector.config import sensitivity_of
from ongebd.detector.judge import OBD
from ongebd.detector.trace import jpeg
from ongebd.errors import ConfigError, a_number
from ongebd.pool import PoolResult, PoolStream
from ongebd.types import Boundary, Decision, Frame, ImageU8
from ongebd.watch.cameras import Camera, Masks
from ongebd.watch.clips import ClipCutter
from ongebd.watch.history import Best, History
from ongebd.watch.hub import Hub
from ongebd.watch.incidents import Incidents
from ongebd.watch.pictures import Album, look_of
from ongebd.watch.records import (
    Clip,
    Digest,
    Dropped,
    Filmed,
    Found,
    Incident,
    Onset,
    Point,
    Retuned,
    State,
    StateChanged,
    Updated,
    Warned,
)
from ongebd.watch.sources import Clock, WatchedSource

LAG_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Upper ends of the histogram of lags, in seconds; one more bucket holds everything above."""
THUMBNAIL_SIDE = 270
"""The most pixels of a thumbnail's shorter side."""
_RATE_SECONDS = 5.0
_DROP_SECONDS = 10.0
_WARN_SECONDS = 3600.0
_MOST_WARNINGS = 50
_NUMBER = re.compile(r"\d+(\.\d+)?")
_NUMBERS = attrgetter("error", "mean", "std", "threshold", "z", "is_boundary", "ready")


@dataclass(slots=True)
class StreamStatus:
    """How a stream is doing.

    Attributes:
        reason: Why it is in this state: one line without credentials; may be empty.
        since: When the state began, Unix seconds.
        epoch: The newest frame's.
        frames: Frames decided.
        failed: Frames that have an error instead of a decision.
        dropped: Frames that the model had no time for.
        fps: Frames decided a second, over the last five seconds.
        lag: Seconds from a frame's arrival to its decision, recently, including the method's look-ahead.
        boundaries: Boundaries that began.
        reconnects: Connections that gave frames after one was lost.
        sensitivity: From 0.1 to 0.9.
        quieten: Whether incidents that repeat are held.
        repeats: How many were held for that in the last hour.
        warnings: The newest of each kind.
    """

    state: State
    reason: str
    since: float
    sensitivity: float
    epoch: int = 0
    frames: int = 0
    failed: int = 0
    dropped: int = 0
    fps: float = 0.0
    lag: float = 0.0
    boundaries: int = 0
    reconnects: int = 0
    quieten: bool = True
    repeats: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _SentFrame:
    """A frame that was given to the model."""

    epoch: int
    time: float
    wall: float
    arrived: float
    picture: ImageU8 | None
    look: ImageU8 | None = None


class WatchedStream:
    """One stream of a `Watcher`, and everything that is known about it.

    Args:
        pooled: Its stream in the pool.
        hub: Where it publishes its records.
        stall_after: Seconds without a frame before it is stalled; None: never.
        defaults: The model's settings, which turn a τ into a sensitivity.
        clips: Cuts a clip at each onset; None: without clips.
        camera: Its settings.

    Attributes:
        history: Its last minutes.
        newest_picture: What it sees now; None if it has no pictures.
        incidents: What its boundaries belong to; its `alerts` may be replaced at any time.
        masks: What of its picture is not judged.
        rate: Frames a second that it is judged at.
        over: Set when no more records will come.
        lags: How many frames' lags fell into each of `LAG_BUCKETS`, and above.
        lag_sum: Seconds, of all frames.
    """

    def __init__(
        self,
        source: WatchedSource,
        pooled: PoolStream,
        hub: Hub,
        clock: Clock,
        stall_after: float | None,
        defaults: StreamConfig,
        clips: ClipCutter | None,
        camera: Camera,
    ) -> None:
        self.key, self.name, self.clips = source.key, source.name, clips
        self.over = threading.Event()
        self.lags = [0] * (len(LAG_BUCKETS) + 1)
        self.lag_sum = 0.0
        self.rate = rate = float(pooled.config.rate())
        self.history = History(rate)
        self.newest_picture: ImageU8 | None = None
        self._pooled, self._hub, self._clock, self._stall_after = pooled, hub, clock, stall_after
        # Each field is changed by one thread only; state and reason together, with the lock held, so that
        # records come in the order of the states.
        self._now = StreamStatus("connecting", "", clock.wall(), _sensitivity(pooled.config, defaults))
        self._state_lock = threading.RLock()
        # As many as may be looked ahead of, be decided now, and wait.
        self._sent: deque[_SentFrame] = deque(maxlen=pooled.max_pending + ceil(pooled.latency * rate) + 16)
        self._final: tuple[State, str] = ("ended", "stopped")
        # Of the reader's thread.
        self._epochs_begun = 0
        self._epoch_has_frames = self._was_connected = self._submitting = False
        self._reader_epoch: int | None = None  # the last frame's epoch within its connection
        self._last_frame = clock.monotonic()
        self._warnings: dict[str, Warned] = {}  # the newest of each kind
        # Of the pool's thread.
        self._epochs_decided = 0
        self._newest: deque[_SentFrame] = deque(maxlen=2)  # those with a decision
        self._open: deque[Onset] = deque()
        self._unclosed: deque[Found] = deque()  # peak and kind are not known
        self.incidents, self._album = Incidents(camera), Album()
        self._decision_times: deque[float] = deque(maxlen=256)
        # Of the watcher's thread.
        self._drops_published = 0
        self._drops_published_at = float("-inf")
        self.camera, self.masks, self._usual = camera, Masks(camera.masks), self._now.sensitivity
        if camera.sensitivity is not None:
            self.set_sensitivity(camera.sensitivity)

    def status(self) -> StreamStatus:
        """How it is doing now."""
        now = self._clock.monotonic()
        recent = [time for time in list(self._decision_times) if time > now - _RATE_SECONDS]
        span = now - recent[0] if len(recent) > 1 else 0.0
        with self._state_lock:
            fps = (len(recent) - 1) / span if span > 0 else 0.0
            repeats, quieten = self.incidents.repeats, self.incidents.alerts.quieten
            dropped = self._pooled.dropped
            return replace(self._now, fps=fps, dropped=dropped, quieten=quieten, repeats=repeats)

    def set_sensitivity(self, sensitivity: float) -> None:
        """Find more or fewer boundaries from now on; the detector forgets nothing.

        Raises:
            ConfigError: It is not between 0.1 and 0.9, the method has none, or the stream is over.
        """
        value = a_number("sensitivity", sensitivity)
        if not 0.1 <= value <= 0.9:
            raise ConfigError(f"sensitivity must be from 0.1 to 0.9, not {value}")
        self._pooled.retune(sensitivity=value)
        self._now.sensitivity = value
        self._hub.publish(Retuned(self.key, self._clock.wall(), value))

    def adopt(self, camera: Camera) -> None:
        """Take new settings, but for name, source and outputs.

        Raises:
            ConfigError: The method has no sensitivity.
        """
        if camera == self.camera:
            return
        if camera.sensitivity != self.camera.sensitivity:
            self.set_sensitivity(self._usual if camera.sensitivity is None else camera.sensitivity)
        self.camera = self.incidents.alerts = camera
        self.masks.polygons = camera.masks

    # Its reader's thread calls these.

    def wait_for_model(self, waits: bool) -> None:
        """Whether the source waits when the model is busy, so that no frame is dropped."""
        self._pooled.when_full = "block" if waits else "drop-oldest"

    def take(self, frame: Frame, break_reason: str, *, last: bool = False) -> None:
        """Give the model a frame. If it is busy, this waits, or the oldest waiting frame is dropped.

        Args:
            frame: Its pictures are not copied.
            break_reason: Why the newest epoch within the connection began.
            last: Whether it was held back, and nothing more comes: then a stalled stream doesn't live again.
        """
        self._last_frame = self._clock.monotonic()
        broken = self._reader_epoch not in (None, frame.epoch)
        if broken:
            self._begin_epoch()
        elif self._reader_epoch is None:
            self._now.reconnects += self._was_connected
            self._was_connected = True
        self._reader_epoch, self._now.epoch = frame.epoch, self._epochs_begun
        if broken or self._now.state not in ("live", "stalled" if last else "live"):
            self.change_state("live", break_reason if broken else "", new_epoch=broken)
        if self.clips is not None:
            self.clips.set_epoch(self._epochs_begun)
        self._epoch_has_frames = True
        self.newest_picture = frame.preview
        wall, arrived, look = self._clock.wall(), self._last_frame, look_of(frame.rgb)
        self._sent.append(
            _SentFrame(self._epochs_begun, float(frame.time), wall, arrived, frame.preview, look)
        )
        dropped, self._submitting = self._pooled.dropped, True
        self._pooled.submit(frame.rgb, frame.time, copy=False)
        self._submitting = False
        if self._pooled.dropped > dropped:  # the oldest that waited: the line behind it is full
            del self._sent[-self._pooled.max_pending - 1]
        self._last_frame = self._clock.monotonic()

    def warn(self, warnings: Sequence[str], *, last: bool = False) -> None:
        """Publish what is new in the warnings of a reader; in the last ones also new numbers."""
        wall = self._clock.wall()
        for text in map(public_name, warnings):
            kind = _NUMBER.sub("", text)
            known = self._warnings.get(kind)
            if known is None or (text != known.warning and (last or wall - known.wall >= _WARN_SECONDS)):
                if known is None and len(self._warnings) == _MOST_WARNINGS:
                    del self._warnings[next(iter(self._warnings))]
                self._warnings[kind] = Warned(self.key, wall, self._now.epoch, text)
                self._now.warnings = tuple(one.warning for one in self._warnings.values())
                self._hub.publish(self._warnings[kind])

    def disconnect(self) -> None:
        """A connection is over: open boundaries are decided, and the next frame begins an epoch."""
        self._reader_epoch = None  # the next frame is a connection's first
        if self._epoch_has_frames:
            self._begin_epoch()

    def finish(self, state: State, reason: str) -> None:
        """No more frames come. The state changes once everything before it is published."""
        self._final = state, reason
        self._pooled.close()

    def change_state(self, state: State, reason: str = "", *, new_epoch: bool = False) -> None:
        """Enter a state, and publish it."""
        with self._state_lock:
            if not new_epoch and (state, reason) == (self._now.state, self._now.reason):
                return
            wall = self._clock.wall()
            if state != self._now.state:
                self._now.since = wall
            self._now.state, self._now.reason = state, reason
            change = StateChanged(self.key, state, wall, self._now.epoch, reason)
            self._hub.publish(change)

    # The watcher's threads call these.

    def tick(self) -> None:
        """Check whether it has stalled, and publish what was dropped."""
        now = self._clock.monotonic()
        with self._state_lock:
            limit = self._stall_after
            stalled = limit is not None and not self._submitting and now - self._last_frame > limit
            if stalled and self._now.state == "live":
                self.change_state("stalled", f"no frame for {limit:g} s")
        if now - self._drops_published_at >= _DROP_SECONDS:
            self._publish_drops()

    def decided(self, result: PoolResult) -> None:
        """Take a result of the pool."""
        wall = self._clock.wall()
        if result.error is not None:
            self._now.failed += 1
        decision = result.decision
        if decision is not None and not decision.pending:
            sent = self._sent_at(decision.time)
            wall = sent.wall
            self._newest.append(sent)
            point = self._publish_point(decision, sent)
            if decision.onset:
                self._begin_boundary(sent, decision.z)
            self._look_at(sent)
            self._publish_incidents(self.incidents.take(point))
        if (boundary := result.found) is not None:
            self._end_boundary(boundary, wall)
        for closed in result.closed:  # in the order in which they were found
            found = self._unclosed.popleft()
            self.history.add_centre(replace(found, boundary=closed))
            updated = Updated(self.key, found.number, found.epoch, closed, wall)
            self._hub.publish(updated)
            self.incidents.take(updated)
        if result.ended == "epoch":
            self._publish_incidents(self.incidents.end())
            self._epochs_decided += 1
        elif result.ended == "close":
            self._publish_incidents([*self.incidents.end(), *self.incidents.digest()])
            self._publish_drops()
            self.change_state(*self._final)
            self.over.set()

    def settle_clip(self, number: int, clip: Clip | None = None) -> None:
        """A boundary's clip is in a file, or will never be."""
        self._publish_filmed(self.history.settle_clip(number, None if clip is None else clip.path))
        if clip is not None:
            self._hub.publish(replace(clip, kind=self.history.kind(number)))

    def _begin_epoch(self) -> None:
        self._epochs_begun += 1
        self._epoch_has_frames = False
        self._pooled.new_epoch()

    def _publish_drops(self) -> None:
        total = self._pooled.dropped
        if total > self._drops_published:
            self._hub.publish(Dropped(self.key, self._clock.wall(), total - self._drops_published, total))
            self._drops_published, self._drops_published_at = total, self._clock.monotonic()

    def _sent_at(self, time: float) -> _SentFrame:
        """The frame of a decision; those before it were dropped."""
        while self._sent:
            sent = self._sent.popleft()
            if (sent.epoch, sent.time) == (self._epochs_decided, time):
                return sent
        return _SentFrame(self._epochs_decided, time, self._clock.wall(), self._clock.monotonic(), None)

    def _publish_point(self, decision: Decision, sent: _SentFrame) -> Point:
        now = self._clock.monotonic()
        lag = now - sent.arrived
        self._now.frames += 1
        self._now.lag += (lag - self._now.lag) * (1.0 if self._now.frames == 1 else 0.2)
        self._decision_times.append(now)
        self.lags[bisect_left(LAG_BUCKETS, lag)] += 1
        self.lag_sum += lag
        point = Point(self.key, sent.epoch, sent.time, sent.wall, *_NUMBERS(decision))
        self.history.add_point(point)
        self._hub.publish(point)
        return point

    def _look_at(self, sent: _SentFrame) -> None:
        """Compare a frame with the others of the open incident, and keep the best picture."""
        if sent.look is not None:
            self._album.add(sent.time, sent.look)
            judged = self._album.judge(sent.picture) if self.incidents.looks(sent.time) else None
            if judged is not None and self.incidents.improves(*judged):
                self._album.best = sent.picture

    def _publish_incidents(self, records: Sequence[Incident | Digest]) -> None:
        for record in records:
            best, self._album.best = self._album.best, None
            if isinstance(record, Incident) and best is not None:
                self.history.add_picture(Best(record.number), jpeg(best))
            self._hub.publish(record)

    def _begin_boundary(self, sent: _SentFrame, score: float) -> None:
        self._now.boundaries += 1
        number, pictured = self._now.boundaries, sent.picture is not None
        if sent.picture is not None:
            self.history.add_picture(number, jpeg(sent.picture))
        onset = Onset(self.key, number, sent.epoch, sent.time, sent.wall, score, pictured)
        self._open.append(onset)
        self.history.add_onset(onset)
        self._hub.publish(onset)
        if not self.incidents.open:
            self._album.begin()
        self.incidents.take(onset)
        if self.clips is not None:
            self.clips.cut(onset)

    def _end_boundary(self, boundary: Boundary, wall: float) -> None:
        told = boundary.onset if boundary.onset_known is None else boundary.onset_known
        if not self._open or self._open[0].time > told:  # seen while its frame stayed, decided before
            begun = (sent for sent in (*self._newest, *self._sent) if sent.time == boundary.onset)
            unseen = _SentFrame(self._epochs_decided, boundary.onset, wall, wall, None)
            self._begin_boundary(next(begun, unseen), boundary.score)
            self._open.rotate(1)
        onset = self._open.popleft()  # boundaries end in the order of their onsets
        found = Found(self.key, onset.number, onset.epoch, boundary, wall, onset.has_thumbnail)
        self._unclosed.append(found)
        self._hub.publish(found)
        self._publish_filmed(self.history.add_centre(found))

    def _publish_filmed(self, filmed: Filmed | None) -> None:
        if filmed is not None and self.clips is not None:
            self._hub.publish(filmed)


def _sensitivity(config: StreamConfig, defaults: StreamConfig) -> float:
    """A stream's settings on the scale of sensitivities; 0.5 if they are not on it."""
    if config.sensitivity is not None:
        return config.sensitivity
    if config.head in (None, OBD) and config.tau is not None and defaults.tau is not None:
        return sensitivity_of(config.tau, defaults.tau)
    return 0.5
