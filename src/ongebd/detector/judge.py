"""From a stream's scores to decisions and boundaries.

A head decides by the scores which frames are positive. Runs of positive frames make boundaries. A judge does
this for scores that come late.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol, Self

from ongebd.estimator.discriminator import BoundaryDiscriminator
from ongebd.types import Boundary, Decision

OBD, THRESHOLD, HYSTERESIS = "obd", "threshold", "hysteresis"
"""The names of the heads; `obd` is the paper's, `BoundaryDiscriminator`."""
_HELD = -1  # instead of the number of a frame that is shown again


class ThresholdHead:
    """A fixed threshold; with hysteresis where `rearm` is given.

    With hysteresis a frame is positive above the threshold, and so are the next ones until the score falls
    below `rearm` of it. So a score that trembles about the threshold makes one boundary.

    >>> head = ThresholdHead(0.4)
    >>> [head.update(score).is_boundary for score in (0.3, 0.5, 0.3, 0.19, 0.3)]
    [False, True, False, False, False]
    >>> head = ThresholdHead(0.4, rearm=0.5)
    >>> [head.update(score).is_boundary for score in (0.3, 0.5, 0.3, 0.19, 0.3)]
    [False, True, True, False, False]

    Args:
        threshold: A frame is positive above it.
        rearm: Share of the threshold, above 0 and at most 1.

    The attributes are those of `BoundaryDiscriminator`; mean and standard deviation are 0.
    """

    def __init__(self, threshold: float, rearm: float | None = None) -> None:
        self.threshold = threshold
        self.rearm = rearm
        self.mean = self.std = 0.0
        self.reset()

    def reset(self) -> None:
        """Forget the last score."""
        self.is_boundary = self.ready = False
        self.z = 0.0

    def update(self, score: float, /) -> Self:
        """Take the next score; `z` is the score itself."""
        self.z = float(score)
        if self.is_boundary and self.rearm is not None:
            self.is_boundary = not self.z < self.rearm * self.threshold
        else:
            self.is_boundary = self.z > self.threshold
        self.ready = True
        return self


Head = BoundaryDiscriminator | ThresholdHead
"""Takes one score after the other and decides."""


class RunStep(NamedTuple):
    """What one frame did: began a run, ended one, or neither."""

    onset: bool
    boundary: Boundary | None


class BoundaryRuns:
    """Joins consecutive positive frames into boundaries.

    A run begins with a positive frame, the *onset*, and goes on while frames stay positive. The first
    negative frame ends it and decides the boundary. The boundary's *centre* lies midway between the first and
    the last positive frame, as in the paper. A run that lasts `max_run` seconds ends there; its remaining
    positive frames are skipped.

    With `max_run` 0 the onset itself decides the boundary and is its centre. Then no boundary begins within
    the gap, because the score of an onset doesn't tell how far the whole run will stand out. A run that is
    still on when the gap ends begins there.

    Args:
        min_gap: Seconds after a run's last positive frame in which a new run begins only if it stands out
            twice as far, so that a cut right after a small change isn't lost. The paper has none.
        max_run: Seconds after which a run is closed; 0: at its first frame.

    >>> runs = BoundaryRuns()
    >>> for time, positive in [(0.0, False), (0.5, True), (1.0, True), (1.5, False)]:
    ...     step = runs.update(time, positive, 4.0)
    >>> step.boundary
    Boundary(time=0.75, onset=0.5, decided=1.5, score=4.0)
    """

    def __init__(self, min_gap: float = 0.0, max_run: float = 1.0) -> None:
        self.min_gap = min_gap
        self.max_run = max_run
        self.reset()

    def reset(self) -> None:
        """Forget an open run, and the last boundary."""
        self._onset: float | None = None
        self._known = 0.0  # when the onset was
        self._latest = 0.0  # when the last verdict was known
        self._last_positive = float("-inf")
        self._score = 0.0
        self._skipping = False

    def update(self, time: float, positive: bool, z: float, now: float | None = None) -> RunStep:
        """Take one frame's verdict; times in seconds, never decreasing.

        Args:
            time: Of the frame.
            positive: The verdict.
            z: How far it stands out.
            now: When the verdict became known; None: at the frame.
        """
        self._latest = time if now is None else now
        if not positive:
            self._skipping = False
            return RunStep(False, self.flush())
        began = self._onset is None
        if self._onset is None:
            if self._skipping or time - self._last_positive < self.min_gap:
                if self.max_run == 0:
                    return RunStep(False, None)
                if z < 2.0 * self._score:
                    self._skipping = True
                    return RunStep(False, None)
            self._onset, self._known, self._score = time, self._latest, z
        self._score = max(self._score, z)
        self._last_positive = time
        if time - self._onset < self.max_run:
            return RunStep(began, None)
        self._skipping = True
        return RunStep(began, self.flush())

    def flush(self) -> Boundary | None:
        """End an open run. The last frame seen decides it."""
        if self._onset is None:
            return None
        centre = (self._onset + self._last_positive) / 2
        boundary = Boundary(centre, self._onset, self._latest, self._score, self._known)
        self._onset = None
        return boundary


class LateScores(Protocol):
    """Where a judge's late scores come from."""

    @property
    def latency(self) -> int:
        """Frames of future that the score of a frame waits for; 0 for an online method."""

    def flush(self) -> Sequence[float | None]:
        """The stream is over: the scores of the last `latency` frames, or of those that there were."""

    def reset(self) -> None:
        """Forget everything seen."""


class Judge:
    """Decides on the frames of one stream, in order, as their scores become known.

    A scorer that looks n frames ahead gives a frame's score n frames later. Until then a frame waits, and
    `take` returns a pending decision. Where an epoch breaks off, its last n frames are decided from what is
    known. These decisions replace the n pending ones at the start of the next epoch, so every frame gets its
    decision.

    Each decision carries at most one boundary. Further ones wait for the next decisions, or for `flush`.

    Args:
        scores: Where late scores come from; reset with every epoch.
        head: Decides on a score.
        runs: Joins positive frames.

    Attributes:
        frames: Frames taken so far.
    """

    def __init__(self, scores: LateScores, head: Head, runs: BoundaryRuns) -> None:
        self.frames = 0
        self._scores = scores
        self.head = head
        self._runs = runs
        self._waiting: deque[tuple[int, float]] = deque()  # frames without a verdict: index and time
        self._owed: deque[Decision] = deque()  # decisions not handed out yet
        self._found: deque[Boundary] = deque()  # boundaries not handed out yet

    def take(self, time: float, score: float | None) -> Decision:
        """The next frame, shown at `time`, and the score of the frame `latency` before it."""
        self._wait(self.frames, time, score, time)
        self.frames += 1
        return self._hand_out(self._owed.popleft() if self._owed else _pending(self.frames - 1, time))

    def hold(self, time: float, score: float | None, now: float) -> None:
        """The last frame, shown at `time`, stays: as `take`, but there is no decision on it again.

        A boundary that begins here begins with the frame. It is known at `now`.
        """
        self._wait(_HELD, time, score, now)

    def drain(self) -> list[Decision]:
        """The decisions on the frames that still wait: no frames follow them in this epoch."""
        return [self._hand_out(decision) for decision in self._owing()]

    def flush(self) -> Boundary | None:
        """Close an open run; the oldest boundary not handed out yet. Call it until it returns None."""
        for decision in self._decide_waiting():
            self._keep(decision.boundary)
        self._keep(self._runs.flush())
        return self._found.popleft() if self._found else None

    def break_off(self) -> None:
        """Begin a new epoch. Later decisions, or `flush`, hand out what the old one still owes."""
        for decision in self._decide_waiting():
            self._owe(decision)
        self._keep(self._runs.flush())
        self._forget()

    def reset(self) -> None:
        """Forget everything, what was not handed out too."""
        self.frames = 0
        self._owed.clear()
        self._found.clear()
        self._forget()

    def use(self, tau: float | None, threshold: float | None) -> None:
        """Judge with another τ or threshold from the next score on."""
        if isinstance(self.head, BoundaryDiscriminator):
            self.head.tau = self.head.tau if tau is None else tau
        elif threshold is not None:
            self.head.threshold = threshold

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

    def _wait(self, index: int, time: float, score: float | None, now: float) -> None:
        self._waiting.append((index, time))
        if len(self._waiting) > self._scores.latency:
            self._owe(self._decide(score, now))

    def _owing(self) -> Iterator[Decision]:
        while self._owed:
            yield self._owed.popleft()
        for decision in self._decide_waiting():
            self._owe(decision)
            while self._owed:
                yield self._owed.popleft()

    def _owe(self, decision: Decision) -> None:
        """Keep a decision, and its boundary apart from it, until they are handed out."""
        self._keep(decision.boundary)
        if decision.index != _HELD:
            self._owed.append(decision if decision.boundary is None else replace(decision, boundary=None))

    def _hand_out(self, decision: Decision) -> Decision:
        return replace(decision, boundary=self._found.popleft()) if self._found else decision

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
