"""A stream in a pool, and what the pool reports about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol

from ongebd.detector.config import StreamConfig
from ongebd.detector.detector import Due, in_seconds, warned_of
from ongebd.detector.models import Model
from ongebd.pool.queue import Request
from ongebd.pool.runtime import Runtime, StreamSlot
from ongebd.types import Boundary, Decision, Feature, ImageU8

WhenFull = Literal["block", "drop-oldest"]


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the frames of one stream, or of all.

    Of the submitted frames, some found no room and were dropped, some have a decision, some an error instead.
    """

    submitted: int = 0
    dropped: int = 0
    decided: int = 0
    failed: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def waiting(self) -> int:
        """How many have no outcome yet."""
        return self.submitted - self.dropped - self.decided - self.failed


@dataclass(frozen=True, slots=True)
class PoolResult:
    """One result of a pool. The results of one stream come in order.

    Attributes:
        stream: Which stream.
        decision: On a frame; with a look-ahead it may be `pending`, as in `OnlineDetector`.
        boundary: A boundary decided at the end of a stream. (Others are in `decision.boundary`.)
        error: Why a frame has no decision; the stream is as before it, and goes on.
        ended: `flush`, `new_epoch`, `close` or `retune` is done; all results from before it have come.
        closed: Boundaries of earlier results, or of this one, whose peak and kind have become known.
        waited: Seconds from `submit` to this result; None for results that belong to no frame.
    """

    stream: PoolStream
    decision: Decision | None = None
    boundary: Boundary | None = None
    error: Exception | None = None
    ended: Request | None = None
    closed: Sequence[Boundary] = ()
    waited: float | None = None

    @property
    def found(self) -> Boundary | None:
        """The boundary that this result decides, if any."""
        return self.boundary if self.decision is None else self.decision.boundary


class Intake(Protocol):
    """What takes the frames and requests of streams: the pool."""

    runtime: Runtime
    model: Model
    max_pending: int
    when_full: WhenFull

    def push(self, stream: PoolStream, given: Any, time: float, timeout: float | None) -> bool:
        """Queue a frame; whether it was taken."""

    def request(self, stream: PoolStream, what: Request, config: StreamConfig | None = None) -> None:
        """Queue a request behind the stream's frames."""


class PoolStream:
    """One stream of a `StreamPool`; made by `StreamPool.add`.

    Give the frames of one stream from one thread; each stream may have its own thread.

    Attributes:
        name: As given to `add`.
        config: The settings, with the model's defaults filled in.
        latency: Seconds of future that a verdict waits for, as in `OnlineDetector`.
        max_pending: How many frames may wait; may be set at any time.
        when_full: What happens to a frame that finds no room; may be set at any time.
        due: Tells whether a frame shown at a time is wanted; see `OnlineDetector.due`.
        submitted, dropped, decided, failed: Frames so far, as in `Counts`.
    """

    def __init__(self, intake: Intake, slot: StreamSlot, name: object) -> None:
        self._intake, self.slot, self.name = intake, slot, name
        self.config, self.latency = slot.config, slot.latency
        self.max_pending, self.when_full = intake.max_pending, intake.when_full
        self.due = Due(self.config.rate())
        self.open = True
        self._newest: float | None = None  # time of the epoch's last frame
        self._warned = False
        self.submitted = self.dropped = self.decided = self.failed = 0

    def counts(self) -> Counts:
        """What became of its frames so far."""
        return Counts(self.submitted, self.dropped, self.decided, self.failed)

    def submit(
        self, frame: ImageU8, time: float | Fraction, *, copy: bool = True, timeout: float | None = None
    ) -> bool:
        """Give the next frame. Its result comes later, after those of the frames before it.

        Args:
            frame: An upright RGB picture, uint8, shape (height, width, 3), any size.
            time: When it is shown, in seconds; a time before the last one begins a new epoch, with a warning.
            copy: Keep a copy of the frame; otherwise leave it unchanged until its result comes.
            timeout: Seconds to wait for room at most, if the stream blocks; 0 drops the frame immediately.

        Returns:
            Whether it was taken; False if it was dropped, which the stream counts.

        Raises:
            FeatureError: It is not such a picture.
            ConfigError: The time is not a number, or the stream or the pool is closed.
        """
        given, time = self._intake.runtime.accept(frame, copy), in_seconds(time)
        self._warned, self._newest = self._warned or warned_of(time, self._newest), time
        return self._intake.push(self, given, time, timeout)

    def submit_feature(
        self, feature: Feature, time: float | Fraction, *, timeout: float | None = None
    ) -> bool:
        """Give the next frame's feature, float32, (D,), instead of the picture."""
        given, time = self._intake.runtime.accept_feature(feature), in_seconds(time)
        self._warned, self._newest = self._warned or warned_of(time, self._newest), time
        return self._intake.push(self, given, time, timeout)

    def flush(self) -> None:
        """Ask for decisions held back and the open boundary, after all frames so far."""
        self._intake.request(self, "flush")

    def new_epoch(self) -> None:
        """Start fresh with the next frame, after what `flush` does; frame numbers go on."""
        self.due.restart()
        self._newest = None
        self._intake.request(self, "epoch")

    def retune(self, **knobs: float) -> None:
        """Judge with another sensitivity, τ or threshold after all frames so far; nothing is forgotten.

        Args:
            **knobs: `sensitivity`, or `tau` or `threshold`.

        Raises:
            ConfigError: Another setting is named, the value is out of range, or the model has no such knob.
        """
        self._intake.request(self, "retune", self._intake.model.retuned(self.config, knobs))

    def close(self) -> None:
        """End the stream: what `flush` does, then its place is free. It takes no more frames."""
        self._intake.request(self, "close")
