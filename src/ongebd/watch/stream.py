"""One stream that is watched: frames go in by its reader's thread, decisions come by the pool's."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from ongebd.detector import StreamConfig
from ongebd.detector.config import sensitivity_of
from ongebd.detector.heads import OBD
from ongebd.errors import ConfigError, a_number
from ongebd.pool import PoolResult, PoolStream
from ongebd.types import Boundary, Decision, Frame, ImageU8
from ongebd.watch.clips import Clips
from ongebd.watch.clock import LiveClock
from ongebd.watch.history import Events, History, Pictures
from ongebd.watch.hub import Hub
from ongebd.watch.records import Dropped, Found, Onset, Point, Retuned, State, StateChanged
from ongebd.watch.sources import WatchedSource
from ongebd.watch.thumbnails import jpeg

LAG_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Upper ends of the histogram of lags, in seconds; one more bucket holds what is above."""
LOWEST_SENSITIVITY, HIGHEST_SENSITIVITY = 0.1, 0.9
_RATE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """How a stream does.

    Attributes:
        state: See `ongebd.watch.records.STATES`.
        reason: Why, one line, without credentials; may be empty.
        epoch: The newest frame's.
        frames: Frames decided.
        fps: Of those, a second, over the last five.
        lag: Seconds from a frame's arrival to its decision, lately; what a method looks ahead is in it.
        dropped: Frames for which the model had no time.
        boundaries: Boundaries that began.
        reconnects: Connections that gave frames after one was lost.
        sensitivity: From 0.1 to 0.9.
        since: When the state began, Unix seconds.
    """

    state: State
    reason: str
    epoch: int
    frames: int
    fps: float
    lag: float
    dropped: int
    boundaries: int
    reconnects: int
    sensitivity: float
    since: float


@dataclass(frozen=True, slots=True)
class _Sent:
    """A frame that was given to the model."""

    epoch: int
    time: float
    wall: float
    since: float
    picture: ImageU8 | None


class WatchedStream:
    """One stream of a `Watcher`.

    Args:
        source: What it is.
        pooled: Its place in the pool.
        hub: Where its records go.
        clock: The watcher's.
        stall_after: Seconds without a frame after which it is stalled; None: it cannot be.
        defaults: The model's settings, by which a τ is told as a sensitivity.
        clips: Cuts one out at each onset; None: nobody does.

    Attributes:
        key: Short, unique, fit for a URL.
        name: For people; without credentials.
        clips: As given.
        over: Set when everything of it has been said.
        lags: How many frames' lags lay in each of `LAG_BUCKETS`, and above.
        lag_sum: Seconds, of all frames.
        failed: Frames that have an error for a decision.
    """

    def __init__(
        self,
        source: WatchedSource,
        pooled: PoolStream,
        hub: Hub,
        clock: LiveClock,
        *,
        stall_after: float | None,
        defaults: StreamConfig,
        clips: Clips | None = None,
    ) -> None:
        self.key, self.name, self.clips = source.key, source.name, clips
        self.over = threading.Event()
        self.lags = [0] * (len(LAG_BUCKETS) + 1)
        self.lag_sum = 0.0
        self.failed = 0
        self.last_failure: str | None = None
        self._pooled, self._hub, self._clock, self._stall_after = pooled, hub, clock, stall_after
        rate = float(pooled.config.rate())
        self._history, self._events, self._pictures = History(self.key, rate), Events(), Pictures()
        # As many as may be looked ahead of, be at work, and wait.
        self._sent: deque[_Sent] = deque(maxlen=pooled.max_pending + ceil(pooled.latency * rate) + 16)
        self._changing = threading.Lock()
        self._state: State = "connecting"
        self._reason, self._since = "", clock.wall()
        self._final: tuple[State, str] | None = None
        # Of the reader's thread.
        self._asked = 0  # epochs asked of the pool
        self._unbroken = False  # whether frames were sent in the newest of them
        self._connections = 0
        self._of_connection: int | None = None  # the last frame's epoch within its connection
        self._epoch = 0
        self._newest = clock.monotonic()
        self._giving = False
        # Of the pool's thread.
        self._told = 0  # epochs that the pool is through with
        self._number = 0
        self._frames = 0
        self._lag = 0.0
        self._open: deque[Onset] = deque()
        self._decided: deque[float] = deque(maxlen=256)
        self._dropped = 0  # already told; the housekeeper's
        self._drop_told = clock.monotonic()
        self._sensitivity = _sensitivity(pooled.config, defaults)

    def status(self) -> StreamStatus:
        """How it does now."""
        with self._changing:
            state, reason, since = self._state, self._reason, self._since
        now = self._clock.monotonic()
        recent = [time for time in list(self._decided) if time > now - _RATE_SECONDS]
        span = now - recent[0] if len(recent) > 1 else 0.0
        return StreamStatus(
            state=state,
            reason=reason,
            epoch=self._epoch,
            frames=self._frames,
            fps=(len(recent) - 1) / span if span > 0 else 0.0,
            lag=self._lag,
            dropped=self._pooled.dropped,
            boundaries=self._number,
            reconnects=max(0, self._connections - 1),
            sensitivity=self._sensitivity,
            since=since,
        )

    @property
    def decided_frames(self) -> int:
        """Frames decided so far; the same as `status().frames`, for who asks often."""
        return self._frames

    def history(self, seconds: float) -> list[Point]:
        """The points of the last so many seconds, an hour at most, oldest first."""
        return self._history.since(self._clock.wall() - seconds)

    def found(self, seconds: float) -> list[Onset | Found]:
        """The boundaries of the last so many seconds, an hour at most, oldest first."""
        return self._events.since(self._clock.wall() - seconds)

    def thumbnail(self, number: int) -> bytes | None:
        """The picture of a boundary's onset, JPEG; None where it is not kept (any more)."""
        return self._pictures.get(number)

    def clip(self, number: int) -> Path | None:
        """The file of a boundary's clip, where one was written; it may be deleted by now."""
        return None if self.clips is None else self.clips.path(number)

    def set_sensitivity(self, sensitivity: float) -> None:
        """Let it find more or fewer boundaries from now on; nothing that it has seen is forgotten.

        Raises:
            ConfigError: It is not between 0.1 and 0.9, the method has none, or the stream is over.
        """
        value = a_number("sensitivity", sensitivity)
        if not LOWEST_SENSITIVITY <= value <= HIGHEST_SENSITIVITY:
            raise ConfigError(
                f"sensitivity must lie between {LOWEST_SENSITIVITY} and {HIGHEST_SENSITIVITY}, not at {value}"
            )
        self._pooled.retune(sensitivity=value)
        self._sensitivity = value
        self._hub.publish(Retuned(self.key, self._clock.wall(), value))

    # What its reader tells it.

    def connect(self) -> None:
        """A connection begins: the next frame is its first."""
        self._of_connection = None

    def wait_for_model(self, waits: bool) -> None:
        """Whether the source is to wait where the model has no time, so that nothing of it is dropped."""
        self._pooled.when_full = "block" if waits else "drop-oldest"

    def take(self, frame: Frame, broke: str) -> None:
        """Give the model a frame; where it has no time, the oldest that waits is dropped, or this waits.

        Args:
            frame: Of the reader; its pictures are not copied.
            broke: Why the frame's epoch began, where it is the first of one within its connection.
        """
        self._newest = self._clock.monotonic()
        wall = self._clock.wall()
        if self._of_connection is None:
            self._connections += 1
            self._epoch = self._asked
            self.change("live")
        elif frame.epoch != self._of_connection:
            self._begin_epoch()
            self._epoch = self._asked
            self.change("live", broke, anew=True)
        elif self._state != "live":
            self.change("live")
        self._of_connection = frame.epoch
        if self.clips is not None:
            self.clips.number(self._asked)
        self._unbroken = True
        self._sent.append(_Sent(self._asked, float(frame.time), wall, self._newest, frame.preview))
        dropped, self._giving = self._pooled.dropped, True
        self._pooled.submit(frame.rgb, frame.time, copy=False)
        self._giving = False
        if self._pooled.dropped > dropped:  # the oldest that waited; as many wait now as there is room for
            del self._sent[-self._pooled.max_pending - 1]
        self._newest = self._clock.monotonic()

    def disconnect(self) -> None:
        """A connection is over: what is open is decided, and the next frame is a new epoch's."""
        if self._unbroken:
            self._begin_epoch()

    def finish(self, state: State, reason: str) -> None:
        """No more frames come; that is told when all before has been said."""
        self._final = state, reason
        self._pooled.close()

    def change(self, state: State, reason: str = "", *, anew: bool = False) -> None:
        """Go over into a state, and tell it."""
        with self._changing:
            if (state, reason) == (self._state, self._reason) and not anew:
                return
            self._set(state, reason)

    # What the watcher tells it.

    def tick(self) -> None:
        """Look whether it has stalled, and tell what was dropped."""
        now = self._clock.monotonic()
        with self._changing:
            still = now - self._newest
            stalls = self._stall_after is not None and not self._giving and still > self._stall_after
            if stalls and self._state == "live":
                self._set("stalled", f"no frame for {self._stall_after:g} s")
        if now - self._drop_told >= 1.0:
            self._drop_told = now
            self._tell_dropped()

    def decided(self, result: PoolResult) -> None:
        """Take what the pool says of it."""
        now, wall = self._clock.monotonic(), self._clock.wall()
        if result.error is not None:
            self.failed += 1
            self.last_failure = str(result.error)
        decision = result.decision
        if decision is not None and not decision.pending:
            sent = self._sent_at(decision.time)
            wall = wall if sent is None else sent.wall
            self._count(now - (now if sent is None else sent.since), now)
            self._tell(decision, wall)
            if decision.onset:
                self._begin(decision, wall, None if sent is None else sent.picture)
        if (boundary := result.found) is not None:
            self._end(boundary, wall)
        if result.ended == "epoch":
            self._told += 1
        elif result.ended == "close":
            self._tell_dropped()
            state, reason = self._final or ("ended", "")
            self.change(state, reason)
            self.over.set()

    def _begin_epoch(self) -> None:
        self._asked += 1
        self._unbroken = False
        self._pooled.new_epoch()

    def _set(self, state: State, reason: str) -> None:
        """With the lock held, so that records come in the order of the states."""
        wall = self._clock.wall()
        if state != self._state:
            self._since = wall
        self._state, self._reason = state, reason
        self._hub.publish(StateChanged(self.key, state, wall, self._epoch, reason))

    def _tell_dropped(self) -> None:
        total = self._pooled.dropped
        if total > self._dropped:
            self._hub.publish(Dropped(self.key, self._clock.wall(), total - self._dropped, total))
            self._dropped = total

    def _sent_at(self, time: float) -> _Sent | None:
        """The frame that a decision is on; those before it were dropped."""
        while self._sent:
            sent = self._sent.popleft()
            if (sent.epoch, sent.time) == (self._told, time):
                return sent
        return None

    def _count(self, lag: float, now: float) -> None:
        self._frames += 1
        self._decided.append(now)
        self._lag += (lag - self._lag) * (1.0 if self._frames == 1 else 0.2)
        self.lags[bisect_left(LAG_BUCKETS, lag)] += 1
        self.lag_sum += lag

    def _tell(self, decision: Decision, wall: float) -> None:
        point = Point(
            self.key,
            self._told,
            decision.time,
            wall,
            decision.error,
            decision.mean,
            decision.std,
            decision.threshold,
            decision.z,
            decision.is_boundary,
            decision.ready,
        )
        self._history.add(point)
        self._hub.publish(point)

    def _begin(self, decision: Decision, wall: float, picture: ImageU8 | None) -> None:
        self._number += 1
        if picture is not None:
            self._pictures.add(self._number, jpeg(picture))
        onset = Onset(
            self.key, self._number, self._told, decision.time, wall, decision.z, picture is not None
        )
        self._open.append(onset)
        self._events.add(onset)
        self._hub.publish(onset)
        if self.clips is not None:
            self.clips.cut(onset)

    def _end(self, boundary: Boundary, wall: float) -> None:
        onset = self._open.popleft()  # each has its boundary, in their order
        found = Found(self.key, onset.number, onset.epoch, boundary, wall, onset.has_thumbnail)
        self._events.add(found)
        self._hub.publish(found)
        if self.clips is not None:
            self.clips.found(found)


def _sensitivity(config: StreamConfig, defaults: StreamConfig) -> float:
    """What a stream's settings are on the scale of sensitivities; 0.5 for those that are not on it."""
    if config.sensitivity is not None:
        return config.sensitivity
    if config.head in (None, OBD) and config.tau is not None and defaults.tau is not None:
        return sensitivity_of(config.tau, defaults.tau)
    return 0.5
