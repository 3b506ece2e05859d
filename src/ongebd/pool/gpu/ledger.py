"""The host's part of a stream whose verdicts come from a device: it numbers frames and joins runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from ongebd.detector.config import StreamConfig
from ongebd.detector.heads import OBD, Head
from ongebd.detector.outbox import Outbox, pending
from ongebd.detector.retuning import retune_head
from ongebd.errors import FeatureError
from ongebd.pool.gpu.engine import FEATURE_BROKEN, FEATURE_ZERO
from ongebd.pool.gpu.views import Said, Views
from ongebd.types import Boundary, Decision

Verdict = list[float]
"""A row as `ongebd.pool.gpu.engine.VERDICT` names it."""


class Ledger:
    """Makes decisions of verdicts; the same as `OnlineDetector` makes of an online method's scores.

    The discriminator's verdict comes with the score. Any other head (a fixed threshold, say) works here,
    on the scores.

    Args:
        config: The stream's settings, every one filled in.
        method: The method's name, for messages.
        precision: In what features are computed, for messages.
        views: How scores are made, where the device says what views say. Then every head works here, and
            decisions come as late as `OnlineDetector` gives them.

    Attributes:
        latency: Frames of future that a decision waits for.
    """

    def __init__(self, config: StreamConfig, method: str, precision: str, views: Views | None = None) -> None:
        self._method = method
        self._hint = "" if precision != "float16" else ", or compute in bfloat16: float16 ends at 65504"
        self._runs = config.runs()
        self.latency = views.latency if views else 0
        self._said = Said(views) if views else None
        self._held: deque[tuple[int, float]] = deque()  # frames without a decision: (index, time)
        there = views is None and config.head in (None, OBD)
        self._head: Head | None = None if there else config.new_head()
        self._first_threshold = 0.0 if self._head else config.discriminator().threshold
        self._outbox = Outbox()
        self._index = 0
        self._level = (0.0, 0.0, 0.0, 0.0)  # mean, std, z and threshold of a frame that has no score
        self._forget()

    def take(self, time: float, verdict: Verdict) -> Decision:
        """The decision on the next frame.

        Args:
            time: Seconds.
            verdict: Of the device.

        Raises:
            FeatureError: The frame's feature or score is unfit; nothing has changed.
        """
        error, mean, std, z, threshold, positive, ready, known, restarted, fault, *further = verdict
        if fault:
            raise self._broken(time, fault)
        if restarted:
            self._begin_anew()
        index = self._index
        self._index += 1
        if self._said is not None:
            return self._late(index, time, self._said.add([error, *further]))
        if not known:
            return self._outbox.hand_over(self._unjudged(index, time))
        if self._head is not None:
            return self._outbox.hand_over(self._judged(self._head, index, time, error))
        self._level = (mean, std, 0.0, threshold)
        is_boundary = bool(positive)
        onset, boundary = self._runs.update(time, is_boundary, z)
        decision = Decision(
            index, time, error, mean, std, z, threshold, is_boundary, bool(ready), onset, boundary
        )
        return self._outbox.hand_over(decision)

    def drain(self) -> list[Decision]:
        """The decisions that a look-ahead still held back; see `OnlineDetector.drain`."""
        return [*self._outbox.rest(), *map(self._outbox.hand_over, self._held_back())]

    def flush(self) -> Boundary | None:
        """The boundary still open, after what was held back."""
        self._outbox.owe(decision.boundary for decision in self._held_back())
        self._outbox.owe([self._runs.flush()])
        return self._outbox.next_boundary()

    def new_epoch(self) -> Boundary | None:
        """Begin anew; frame numbers go on. Returns what `flush` would."""
        self._begin_anew()
        return self._outbox.next_boundary()

    @property
    def judged_there(self) -> bool:
        """Whether the device decides."""
        return self._head is None

    def retune(self, config: StreamConfig) -> None:
        """A head here takes another threshold; see `OnlineDetector.retune`."""
        if self._head is not None:
            retune_head(self._head, config)

    def _late(self, index: int, time: float, score: float | None) -> Decision:
        """The decision on the frame `latency` before, whose score is given; `pending` where there is none."""
        self._held.append((index, time))
        if len(self._held) <= self.latency:
            return self._outbox.hand_over(pending(index, time))
        return self._outbox.hand_over(self._decided(score, time))

    def _begin_anew(self) -> None:
        self._outbox.keep(self._held_back())
        self._outbox.owe([self._runs.flush()])
        self._forget()

    def _held_back(self) -> Iterator[Decision]:
        """The decisions on the frames that are held, by what has been said of them until now."""
        if self._said is not None and self._held:
            now = self._held[-1][1]
            for score in self._said.rest(len(self._held)):
                yield self._decided(score, now)

    def _decided(self, score: float | None, now: float) -> Decision:
        """The decision on the oldest frame held, its score being known at `now`, in seconds."""
        index, time = self._held.popleft()
        if score is None or self._head is None:
            return self._unjudged(index, time)
        decision = self._judged(self._head, index, time, score, now)
        boundary = decision.boundary
        if boundary is not None and now > boundary.decided:
            decision = replace(decision, boundary=replace(boundary, decided=now))
        return decision

    def _judged(
        self, head: Head, index: int, time: float, score: float, now: float | None = None
    ) -> Decision:
        """What a head here makes of the next score, known at `now`; None: at its frame."""
        head.update(score)
        mean, std, z, threshold = head.mean, head.std, head.z, head.threshold
        self._level = (mean, std, 0.0, threshold)
        onset, boundary = self._runs.update(time, head.is_boundary, z, now)
        return Decision(
            index, time, score, mean, std, z, threshold, head.is_boundary, head.ready, onset, boundary
        )

    def _forget(self) -> None:
        self._runs.reset()
        self._held.clear()
        if self._said is not None:
            self._said.reset()
        if self._head is not None:
            self._head.reset()
        head = self._head
        self._level = (
            (0.0, 0.0, 0.0, self._first_threshold)
            if head is None
            else (head.mean, head.std, 0.0, head.threshold)
        )

    def _unjudged(self, index: int, time: float) -> Decision:
        mean, std, z, threshold = self._level
        return Decision(index, time, 0.0, mean, std, z, threshold, False, False)

    def _broken(self, time: float, fault: float) -> FeatureError:
        where = f"frame {self._index} at {time:.3f} s"
        if fault == FEATURE_ZERO:
            return FeatureError(f"{where}: the feature has norm zero; check the backbone's weights")
        what, whose = (
            ("the feature", "the backbone") if fault == FEATURE_BROKEN else ("the score", self._method)
        )
        return FeatureError(
            f"{where}: {what} has NaN or infinity in it; check the weights of {whose}{self._hint}"
        )
