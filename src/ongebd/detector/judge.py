"""From a stream's scores to decisions and boundaries."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from ongebd.detector.config import StreamConfig
from ongebd.detector.heads import Head
from ongebd.estimator.discriminator import BoundaryDiscriminator
from ongebd.types import Boundary, Decision


class LateScores(Protocol):
    """What a judge needs of a scorer.

    Attributes:
        latency: Frames of future that a score waits for.
    """

    @property
    def latency(self) -> int:
        """Frames of future that a score waits for."""

    def flush(self) -> Sequence[float | None]:
        """The stream is over: the scores of the last `latency` frames, or of those that there were."""

    def reset(self) -> None:
        """Forget everything."""


class Judge:
    """Decides on the frames of one stream, in order, as their scores become known.

    A scorer that looks n frames ahead gives a frame's score n frames later. Until then a frame waits, and
    `take` returns a pending decision. Where an epoch breaks off, its last n frames are decided from what is
    known. These decisions replace the n pending ones at the start of the next epoch, so every frame gets its
    decision.

    Each decision carries at most one boundary. Further ones wait for the next decisions, or for `flush`.

    Args:
        config: The stream's settings, all filled in.
        scores: Where late scores come from; reset with every epoch.
        head: Decides on a score; by default that of the settings.

    Attributes:
        head: As given.
        frames: Frames taken so far.
    """

    def __init__(self, config: StreamConfig, scores: LateScores, head: Head | None = None) -> None:
        self.frames = 0
        self._scores = scores
        self.head = head or config.new_head()
        self._runs = config.runs()
        self._waiting: deque[tuple[int, float]] = deque()  # frames without a verdict: index and time
        self._broken_off: deque[Decision] = deque()  # decisions of earlier epochs, not handed out yet
        self._found: deque[Boundary] = deque()  # boundaries not handed out yet

    def take(self, time: float, score: float | None) -> Decision:
        """The next frame, shown at `time`, and the score of the frame `latency` before it."""
        self._waiting.append((self.frames, time))
        self.frames += 1
        if len(self._waiting) > self._scores.latency:
            return self._hand_out(self._decide(score, time))
        return self._hand_out(_pending(self.frames - 1, time))

    def drain(self) -> list[Decision]:
        """The decisions on the frames that still wait: no frames follow them in this epoch."""
        earlier, self._broken_off = self._broken_off, deque()
        return [self._hand_out(decision) for decision in (*earlier, *self._decide_waiting())]

    def flush(self) -> Boundary | None:
        """Close an open run; the oldest boundary not handed out yet. Call it until it returns None."""
        for decision in self._decide_waiting():
            self._keep(decision.boundary)
        self._keep(self._runs.flush())
        return self._found.popleft() if self._found else None

    def break_off(self) -> None:
        """Begin a new epoch. Later decisions, or `flush`, hand out what the old one still owes."""
        for decision in self._decide_waiting():
            self._keep(decision.boundary)
            self._broken_off.append(replace(decision, boundary=None))
        self._keep(self._runs.flush())
        self._forget()

    def reset(self) -> None:
        """Forget everything, what was not handed out too."""
        self.frames = 0
        self._broken_off.clear()
        self._found.clear()
        self._forget()

    def retune(self, config: StreamConfig) -> None:
        """Judge with another τ or threshold from the next score on; see `StreamConfig.check_retuning`."""
        if isinstance(self.head, BoundaryDiscriminator):
            self.head.tau = config.discriminator().tau
        elif config.threshold is not None:
            self.head.threshold = config.threshold

    def _decide_waiting(self) -> Iterator[Decision]:
        """The decisions on the frames that wait, from what is known now."""
        if self._waiting:
            now = self._waiting[-1][1]
            # The scorer may repeat scores that it gave at an earlier drain; the last ones are new.
            for score in self._scores.flush()[-len(self._waiting) :]:
                yield self._decide(score, now)

    def _decide(self, score: float | None, now: float) -> Decision:
        """The decision on the frame that waits longest; its verdict is known at `now`, in seconds."""
        index, time = self._waiting.popleft()
        head = self.head
        if score is None:  # nothing to compare the frame with: it leaves head and run as they are
            return Decision(index, time, 0.0, head.mean, head.std, 0.0, head.threshold, False, ready=False)
        head.update(score)
        onset, boundary = self._runs.update(time, head.is_boundary, head.z, now)
        level = head.mean, head.std, head.z, head.threshold
        return Decision(index, time, score, *level, head.is_boundary, head.ready, onset, boundary)

    def _hand_out(self, decision: Decision) -> Decision:
        if decision.pending and self._broken_off:
            decision = self._broken_off.popleft()
        if not self._found:
            return decision
        self._keep(decision.boundary)
        return replace(decision, boundary=self._found.popleft())

    def _keep(self, boundary: Boundary | None) -> None:
        if boundary is not None:
            self._found.append(boundary)

    def _forget(self) -> None:
        self._waiting.clear()
        self._scores.reset()
        self.head.reset()
        self._runs.reset()


def _pending(index: int, time: float) -> Decision:
    return Decision(index, time, 0.0, 0.0, 0.0, 0.0, 0.0, False, ready=False, pending=True)
