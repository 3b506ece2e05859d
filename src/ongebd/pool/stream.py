"""A stream in a pool, as its user holds it; and what the pool says of it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from ongebd.detector.config import StreamConfig
from ongebd.detector.due import Due
from ongebd.pool.turns import Ended, Line, WhenFull
from ongebd.types import Boundary, Decision, Feature, ImageU8

if TYPE_CHECKING:
    from ongebd.pool.pool import StreamPool
    from ongebd.pool.runtime import Lane


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the frames of a stream, or of all.

    Attributes:
        submitted: Frames that came.
        dropped: Of those, how many found no room.
        decided: How many have a decision.
        failed: How many have an error in its place.
    """

    submitted: int
    dropped: int
    decided: int
    failed: int

    @property
    def waiting(self) -> int:
        """How many have no outcome yet."""
        return self.submitted - self.dropped - self.decided - self.failed


def sum_of(counts: list[Counts]) -> Counts:
    """All together."""
    return Counts(
        sum(one.submitted for one in counts),
        sum(one.dropped for one in counts),
        sum(one.decided for one in counts),
        sum(one.failed for one in counts),
    )


@dataclass(frozen=True, slots=True)
class PoolResult:
    """One thing that a pool says. Of one stream they come in order.

    Attributes:
        stream: Whose.
        decision: On a frame; with a look-ahead as `OnlineDetector` gives it, so it may be `pending`.
        boundary: One that an end of the stream decided. (Others are in `decision.boundary`.)
        error: Why a frame has no decision; the stream is as before it, and goes on.
        ended: What `flush`, `new_epoch`, `close` or `retune` asked for is done; all before has been said.
        waited: Seconds from `submit` to this result; None where it is not a frame's own.
    """

    stream: PoolStream
    decision: Decision | None = None
    boundary: Boundary | None = None
    error: Exception | None = None
    ended: Ended | None = None
    waited: float | None = None

    @property
    def found(self) -> Boundary | None:
        """The boundary that is decided with this, if one is."""
        return self.boundary if self.decision is None else self.decision.boundary


class PoolStream:
    """One stream of a `StreamPool`; made by `StreamPool.add`.

    Frames of one stream are to come from one thread; each stream may have a thread of its own.

    Attributes:
        name: As given to `add`.
        config: The settings, with the model's own filled in.
        latency: Seconds of future that a verdict waits for, as in `OnlineDetector`.
        when_full: What becomes of a frame that finds no room.
    """

    def __init__(
        self,
        pool: StreamPool,
        name: object,
        lane: Lane,
        room: int,
        when_full: WhenFull,
    ) -> None:
        self.name = name
        self.config: StreamConfig = lane.config
        self.latency = lane.latency
        self.when_full = when_full
        self.lane = lane
        self.line = Line(self, room)
        self.open = True
        self.submitted = self.dropped = self.decided = self.failed = 0
        self._pool = pool
        self._due = Due(lane.config.rate())

    def __repr__(self) -> str:
        return f"<stream {self.name!r}: {self.counts()}>"

    @property
    def state_bytes(self) -> int:
        """Bytes that the method keeps of this stream."""
        return self.lane.state_bytes

    def counts(self) -> Counts:
        """What became of its frames so far."""
        return Counts(self.submitted, self.dropped, self.decided, self.failed)

    def due(self, time: float | Fraction) -> bool:
        """Whether a frame shown at this time is wanted; see `OnlineDetector.due`."""
        return self._due(time)

    def submit(
        self, frame: ImageU8, time: float | Fraction, *, copy: bool = True, timeout: float | None = None
    ) -> bool:
        """Give the next frame; see `StreamPool.submit`."""
        return self._pool.submit(self, frame, time, copy=copy, timeout=timeout)

    def submit_feature(
        self, feature: Feature, time: float | Fraction, *, timeout: float | None = None
    ) -> bool:
        """Give the next frame's feature, (D,), in place of the picture."""
        return self._pool.submit_feature(self, feature, time, timeout=timeout)

    def flush(self) -> None:
        """Ask for what is still held back and open, after all frames so far."""
        self._pool.end(self, "flush")

    def new_epoch(self) -> None:
        """Begin anew with the next frame, after what `flush` does; frame numbers go on."""
        self._due.restart()
        self._pool.end(self, "epoch")

    def retune(self, **knobs: float) -> None:
        """Judge with another sensitivity, τ or threshold, after all frames so far; nothing is forgotten.

        Args:
            **knobs: `sensitivity`, or else `tau` or `threshold`.

        Raises:
            ConfigError: Another setting is named, the value is out of range, or the model has no such knob.
        """
        self._pool.retune(self, knobs)

    def close(self) -> None:
        """The stream is over: what `flush` does, then its place is free. It takes no more frames."""
        self._pool.end(self, "close")
