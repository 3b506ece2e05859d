"""From a stream's scores to decisions and boundaries.

A head decides by the scores which frames are positive. Runs of positive frames make boundaries. A judge does
this for scores that come late.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple, Protocol, Self

from ongebd.estimator.discriminator import BoundaryDiscriminator
from ongebd.types import AGO, Boundary, Decision, Kind, Signs

OBD, THRESHOLD, HYSTERESIS = "obd", "threshold", "hysteresis"
"""The names of the heads; `obd` is the paper's, `BoundaryDiscriminator`."""
_NO_SIGNS = Signs()
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


CUT_SECONDS = 0.3
"""So long after a cut, and before one that a look-ahead sees, the scores are the cut's."""
SHOT_SECONDS = 0.06
"""What changes so shortly before a cut, or after it, is a blend of both shots."""
PEAK_SECONDS = 1.0
"""So long after its onset a boundary is measured. A run whose onset is its centre may be told so late."""
CONTRAST_SECONDS = 0.5
"""So long after an onset the means before and after it meet there."""
BACK, BACK_FRAMES = 0.8, 8
"""The old picture is back where its error is below that share of the cut's, so many frames from it on."""
GRADUAL = 0.2
"""The error between features one second apart, above which the picture has changed."""


class RunStep(NamedTuple):
    """What one frame did: whether a boundary is told there, and the boundaries that it decided."""

    onset: bool
    boundaries: Sequence[Boundary]


@dataclass(slots=True)
class _Level:
    """A threshold at which runs begin."""

    head: ThresholdHead
    skipping: bool = False  # the rest of a run
    last_positive: float = -inf
    score: float = 0.0  # of its last run


@dataclass(slots=True, eq=False)
class _Run:
    """A run that is still on, or whose boundary isn't closed."""

    level: _Level
    onset: float
    score: float
    peak: float = -inf
    told: float | None = None  # when
    kind: Kind | None = None
    change: float | None = None  # the largest
    contrast: float = 0.0  # between before and after the onset
    boundary: Boundary | None = None


class BoundaryRuns:
    """Joins consecutive positive frames into boundaries, and reports those that pass a threshold.

    Runs begin at fixed *levels*. The threshold only says which runs are told, so a higher sensitivity never
    loses what a lower one finds. The first level is that of the usual sensitivity: its runs are told at the
    first frame that passes the threshold. A run of a lower level may be the beginning of one above, so it is
    told when it ends, or, with `max_run` 0, after the gap; one that a higher level takes over isn't told.

    A run begins with a frame above its level, the *onset*, and goes on while frames stay positive. The first
    negative frame ends it and decides the boundary. The boundary's *centre* lies midway between the first and
    the last positive frame, as in the paper. A run that lasts `max_run` seconds ends there; its remaining
    positive frames are skipped. Frames that are positive at one level belong to no lower one.

    With `max_run` 0 the onset is the centre, and the frame at which a run is told decides: the onset itself,
    or one of the second after it. No run begins within the gap, because the score of an onset doesn't tell
    how far the whole run will stand out. A run that is still on when the gap ends begins there.

    A hard cut is a boundary of its own, decided at its frame, whatever scores, runs and gaps are.

    Args:
        levels: Thresholds, falling.
        min_gap: Seconds after a run's last positive frame in which a new run begins only if it stands out
            twice as far, so that a change right after a small one isn't lost. The paper has none.
        max_run: Seconds after which a run is closed; 0: see above.
        rearm: As in `ThresholdHead`.
        least: No score up to this is positive.

    >>> runs = BoundaryRuns([3.0])
    >>> for time, z in [(0.0, 1.0), (0.5, 4.0), (1.0, 4.0), (1.5, 1.0)]:
    ...     step = runs.update(time, z)
    >>> step.boundaries
    [Boundary(time=0.75, onset=0.5, decided=1.5, score=4.0)]
    """

    def __init__(
        self,
        levels: Sequence[float],
        min_gap: float = 0.0,
        max_run: float = 1.0,
        rearm: float | None = None,
        least: float = -inf,
    ) -> None:
        self.min_gap = min_gap
        self.least = least
        self.max_run = max_run
        self._rearm = rearm
        self._threshold = levels[0]
        self._levels = [_Level(ThresholdHead(level, rearm)) for level in levels]
        self.reset()

    def use(self, threshold: float, levels: Sequence[float]) -> None:
        """Tell what passes this threshold from the next frame on; a level that moves forgets nothing."""
        self._threshold = threshold
        del self._levels[len(levels) :]
        for place, level in enumerate(levels):
            if place == len(self._levels):
                self._levels.append(_Level(ThresholdHead(level, self._rearm)))
            self._levels[place].head.threshold = level

    def reset(self) -> None:
        """Forget an open run, and the last boundary."""
        self._levels = [_Level(ThresholdHead(level.head.threshold, self._rearm)) for level in self._levels]
        self._run: _Run | None = None
        self._latest = 0.0  # when the last verdict was known
        self._cut = -inf  # time of the last one
        self._flash = -inf  # time of the last cut that may have been a flash
        self._since, self._jump = 0, 0.0  # frames since then, and the error there
        self._open: list[_Run] = []  # boundaries whose peak and kind aren't known yet
        self.closed: list[Boundary] = []

    def update(
        self, time: float, z: float, able: bool = True, now: float | None = None, signs: Signs = _NO_SIGNS
    ) -> RunStep:
        """Take one frame's score; times in seconds, never decreasing.

        Args:
            time: Of the frame.
            z: How far it stands out.
            able: Whether it may be positive at all.
            now: When the score became known; None: at the frame.
            signs: What else is known of the frame.
        """
        self._latest = time if now is None else now
        found: list[Boundary] = []
        told = False
        if signs.cut and time - self._cut >= SHOT_SECONDS:
            if time - self._flash >= CUT_SECONDS:
                self._flash, self._since, self._jump = time, 0, signs.ago[0] if signs.ago else 0.0
            run, self._cut = self._run, time
            found += self._end()
            if self.max_run > 0 or run is None or not self._just_begun(run, time):
                run = _Run(self._levels[0], time, z)
            run.peak, run.kind = max(run.peak, z), "cut"
            if told := run.told is None:
                found.append(self._tell(run, run.onset))
        in_cut = taken = time - self._cut < CUT_SECONDS
        for level in self._levels:
            positive = level.head.update(z).is_boundary and able
            if taken:
                level.skipping, level.last_positive = positive, self._cut if in_cut else time
                level.score = inf
            elif not positive:
                level.skipping = False
            elif self._begins(level, time, z):
                found += self._end()
                self._run, level.last_positive = _Run(level, time, z), time
            run = self._run
            if run is not None and run.level is level:
                known = run.told
                found += self._end() if taken else self._follow(run, time, z, positive)
                told |= known is None and run.told is not None
            taken = taken or positive
        self._measure(time, z, signs)
        return RunStep(told, found)

    @property
    def told(self) -> int:
        """Reported boundaries that were not taken from `closed` yet."""
        return len(self.closed) + len(self._open)

    def flush(self) -> Boundary | None:
        """End an open run, and close what was told. The last frame seen decides it."""
        found = self._end()
        self._close(inf)
        return next(iter(found), None)

    def _tell(self, run: _Run, centre: float) -> Boundary:
        """Decide a run's boundary now."""
        run.told = self._latest if run.told is None else run.told
        run.boundary = Boundary(centre, run.onset, self._latest, run.score, run.told, kind=run.kind)
        self._open.append(run)
        return run.boundary

    def _measure(self, time: float, z: float, signs: Signs) -> None:
        """Measure the run and the boundaries that are on; peak and change only until the next boundary.

        A cut after which the old picture soon returns was a flash, or something passed the camera.
        """
        errors = dict(zip(AGO, signs.ago, strict=False))
        self._since += 1
        back = 1 < self._since <= BACK_FRAMES and errors.get(self._since, inf) < BACK * self._jump
        for run in [*self._open, *([self._run] if self._run else [])]:
            if back and run.onset > self._flash - SHOT_SECONDS:
                run.kind = "event"
            if time - run.onset < CONTRAST_SECONDS:
                run.contrast = signs.contrast
            if run is self._run or run is self._open[-1]:
                if time - run.onset < PEAK_SECONDS:
                    run.peak = max(run.peak, z)
                if signs.ago:
                    change = errors[24] if time - self._cut > PEAK_SECONDS else 0.0
                    run.change = max(run.change or 0.0, change)
        self._close(time)

    def _close(self, time: float) -> None:
        """Close the boundaries that are a second old."""
        while self._open and time - self._open[0].onset >= PEAK_SECONDS:
            run = self._open.pop(0)
            if run.kind is None and run.change is not None:
                run.kind = "gradual" if run.change > GRADUAL else "event"
            assert run.boundary is not None
            self.closed.append(replace(run.boundary, peak=run.peak + run.contrast, kind=run.kind))

    def _just_begun(self, run: _Run, time: float) -> bool:
        """Whether a run began with the blend of two shots before a cut."""
        return run.level is self._levels[0] and time - run.onset < SHOT_SECONDS

    def _begins(self, level: _Level, time: float, z: float) -> bool:
        """Whether a positive frame begins a run."""
        free = not level.skipping and time - level.last_positive >= self.min_gap
        if self.max_run == 0:
            level.skipping = level.skipping or free
            return free
        if self._run is not None and self._run.level is level:
            return False
        level.skipping = not free and z < 2.0 * level.score
        return not level.skipping

    def _follow(self, run: _Run, time: float, z: float, positive: bool) -> list[Boundary]:
        """Take a frame of an open run, its first one too; the boundary that it decides."""
        level, lasts = run.level, time - run.onset
        at_once, sure = self.max_run == 0, level is self._levels[0]
        if at_once:
            positive = lasts <= PEAK_SECONDS and (positive or lasts < self.min_gap)
            sure = sure or lasts >= self.min_gap
        elif positive:
            run.score = level.score = max(run.score, z)
            level.last_positive = time
            level.skipping = lasts >= self.max_run
        ends = not positive or (level.skipping and not at_once)
        run.peak = max(run.peak, z)
        passes = run.peak > self._threshold or level.head.threshold >= self._threshold
        if run.told is None and passes and (sure or ends):
            if at_once:
                return [self._tell(run, run.onset)]
            run.told = self._latest
        return self._end() if ends else []

    def _end(self) -> list[Boundary]:
        run, self._run = self._run, None
        if run is None or run.told is None or self.max_run == 0:
            return []
        return [self._tell(run, (run.onset + run.level.last_positive) / 2)]


class _Waiting(NamedTuple):
    """A frame that waits for its verdict."""

    number: int
    time: float
    signs: Signs


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
        self._waiting: deque[_Waiting] = deque()  # without a verdict
        self._owed: deque[Decision] = deque()  # decisions not handed out yet
        self._found: deque[Boundary] = deque()  # boundaries not handed out yet

    def take(self, time: float, score: float | None, signs: Signs = _NO_SIGNS) -> Decision:
        """The next frame, shown at `time`. The score is that of the frame `latency` before."""
        self._wait(_Waiting(self.frames, time, signs), score, time)
        self.frames += 1
        return self._hand_out(self._owed.popleft() if self._owed else _pending(self.frames - 1, time))

    def hold(self, time: float, score: float | None, signs: Signs, now: float) -> None:
        """The last frame, shown at `time`, stays: as `take`, but there is no decision on it again.

        A boundary that begins here begins with the frame. It is known at `now`.
        """
        self._wait(_Waiting(_HELD, time, signs._replace(cut=False)), score, now)

    def drain(self) -> list[Decision]:
        """The decisions on the frames that still wait: no frames follow them in this epoch."""
        return [self._hand_out(decision) for decision in self._owing()]

    def flush(self) -> Boundary | None:
        """Close an open run; the oldest boundary not handed out yet. Call it until it returns None."""
        list(self._decide_waiting())
        self._close()
        return self._found.popleft() if self._found else None

    def closed(self) -> list[Boundary]:
        """The boundaries whose peak and kind have become known since the last call, in order."""
        handed_out = max(0, self._runs.told - len(self._found))  # one may be closed before it is handed out
        closed, self._runs.closed = self._runs.closed[:handed_out], self._runs.closed[handed_out:]
        return closed

    def break_off(self) -> None:
        """Begin a new epoch. Later decisions, or `flush`, hand out what the old one still owes."""
        self._owed += self._decide_waiting()
        self._close()
        closed = self._runs.closed
        self._forget()
        self._runs.closed = closed

    def reset(self) -> None:
        """Forget everything, what was not handed out too."""
        self.frames = 0
        self._owed.clear()
        self._found.clear()
        self._forget()

    def use(self, threshold: float, levels: Sequence[float]) -> None:
        """Judge with another τ or threshold from the next score on."""
        if isinstance(self.head, BoundaryDiscriminator):
            self.head.tau = threshold
        else:
            self.head.threshold = threshold
        self._runs.use(threshold, levels)

    def _decide_waiting(self) -> Iterator[Decision]:
        """The decisions on the frames that wait, from what is known now."""
        if self._waiting:
            now = self._waiting[-1][1]
            # The scorer may repeat scores that it gave at an earlier drain; the last ones are new.
            for score in self._scores.flush()[-len(self._waiting) :]:
                yield from self._decide(score, now)

    def _decide(self, score: float | None, now: float) -> list[Decision]:
        """The decision on the frame that waits longest; its verdict is known at `now`, in seconds."""
        index, time, signs = self._waiting.popleft()
        head = self.head
        if score is None:  # nothing to compare the frame with: it leaves the head as it is
            z, ready, positive = 0.0, False, False
        else:
            head.update(score)
            z, ready, positive = head.z, head.ready, head.is_boundary
        before_cut = any(later.signs.cut and later.time - time < CUT_SECONDS for later in self._waiting)
        able = ready and score is not None and score > self._runs.least and not before_cut
        onset, found = self._runs.update(time, z, able, now, signs)
        self._found += found
        moments = head.mean, head.std, z, head.threshold
        decision = Decision(index, time, score or 0.0, *moments, positive or onset, ready, onset)
        return [] if index == _HELD else [decision]

    def _wait(self, frame: _Waiting, score: float | None, now: float) -> None:
        self._waiting.append(frame)
        if len(self._waiting) > self._scores.latency:
            self._owed += self._decide(score, now)

    def _owing(self) -> Iterator[Decision]:
        while self._owed:
            yield self._owed.popleft()
        yield from self._decide_waiting()

    def _hand_out(self, decision: Decision) -> Decision:
        return replace(decision, boundary=self._found.popleft()) if self._found else decision

    def _close(self) -> None:
        if (boundary := self._runs.flush()) is not None:
            self._found.append(boundary)

    def _forget(self) -> None:
        self._waiting.clear()
        self._scores.reset()
        self.head.reset()
        self._runs.reset()


def _pending(index: int, time: float) -> Decision:
    return Decision(index, time, 0.0, 0.0, 0.0, 0.0, 0.0, False, ready=False, pending=True)
