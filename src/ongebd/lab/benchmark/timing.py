"""Measuring frames, of one stream or of many together: samples, medians with their spread, and latencies."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ongebd.detector import Model
from ongebd.pool.runtime import Finish, Runtime, Work
from ongebd.types import ImageU8

WARM_UP = 0.1
"""Seconds of uncounted frames before the first measurement of something."""
LEAST_FRAMES = 3


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with its smallest and largest value, and all of them."""

    median: float
    low: float
    high: float
    turns: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of at least one value."""
        return cls(statistics.median(values), min(values), max(values), tuple(values))


@dataclass(frozen=True, slots=True)
class Sample:
    """One turn: its frames, its seconds, and the latency of each frame if they came one by one."""

    frames: int
    seconds: float
    latencies: tuple[float, ...] = ()

    @property
    def fps(self) -> float:
        """Frames per second."""
        return self.frames / self.seconds


Run = Callable[[float], Sample]
"""Measures for about so many seconds."""


@dataclass(slots=True)
class Cell:
    """Something that is measured, with a sample for each turn."""

    run: Run
    samples: list[Sample] = field(default_factory=list)

    def turn(self, seconds: float) -> None:
        """Measure once more."""
        self.samples.append(self.run(seconds))

    @property
    def fps(self) -> Spread | None:
        """Frames per second over the turns; None before the first."""
        return Spread.of([sample.fps for sample in self.samples]) if self.samples else None

    def percentiles(self) -> dict[str, float]:
        """Percentiles of all frames' latencies, seconds."""
        return percentiles(sorted(latency for sample in self.samples for latency in sample.latencies))


class OneByOne:
    """A `Run` of one frame after another, each timed.

    Args:
        step: Takes the frame's number; the frame is done when it returns.
        chunk: A turn is a multiple of so many frames, for methods that work on as many together.
    """

    def __init__(self, step: Callable[[int], Any], chunk: int = 1) -> None:
        self._step = step
        self._chunk = chunk
        self._next = 0

    def __call__(self, seconds: float) -> Sample:
        """Take at least three frames."""
        if not self._next:
            self._turn(WARM_UP)
        return self._turn(seconds)

    def _turn(self, seconds: float) -> Sample:
        taken: list[float] = []
        began = last = time.perf_counter()
        while last - began < seconds or len(taken) < LEAST_FRAMES or len(taken) % self._chunk:
            self._step(self._next)
            self._next += 1
            now = time.perf_counter()
            taken.append(now - last)
            last = now
        return Sample(len(taken), last - began, tuple(taken))


def percentiles(ordered: Sequence[float]) -> dict[str, float]:
    """p50, p95, p99 and the largest of sorted values.

    >>> percentiles([float(n) for n in range(101)])
    {'p50': 50.0, 'p95': 95.0, 'p99': 99.0, 'max': 100.0}
    """
    if not ordered:
        return {}
    at = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: ordered[round(share * (len(ordered) - 1))] for name, share in at.items()}


def ratio(ours: Cell, theirs: Cell) -> Spread | None:
    """How many times their frames per second ours are, turn by turn; None without a turn of both."""
    pairs = list(zip(ours.samples, theirs.samples, strict=False))
    return Spread.of([a.fps / b.fps for a, b in pairs]) if pairs else None


WARM_STEPS = 2
LEAST_STEPS = 3


class Steps:
    """A `Run` of many streams: a frame of each in a step, two steps under way. Latencies are of steps.

    The runtime must have room for all streams in one step. They take the frames in turn.
    """

    def __init__(self, runtime: Runtime, model: Model, streams: int, frames: Sequence[ImageU8]) -> None:
        self._runtime = runtime
        self._lanes = [runtime.open(model.configured()) for _ in range(streams)]
        self._given = [runtime.accept(frame) for frame in frames]
        self._next = 0

    def __call__(self, seconds: float) -> Sample:
        """Do at least three steps.

        Raises:
            OngebdError: That of a frame.
        """
        if not self._next:
            for _ in range(WARM_STEPS):
                _finish(self._begin())
        took: list[float] = []
        began = last = time.perf_counter()
        under_way = self._begin()
        while last - began < seconds or len(took) < LEAST_STEPS - 1:
            following = self._begin()
            _finish(under_way)
            under_way = following
            now = time.perf_counter()
            took.append(now - last)
            last = now
        _finish(under_way)
        return Sample(len(self._lanes) * (len(took) + 1), time.perf_counter() - began, tuple(took))

    def close(self) -> None:
        """Free the streams' places."""
        for lane in self._lanes:
            self._runtime.release(lane)

    def _begin(self) -> Finish:
        n, self._next = self._next, self._next + 1
        given = self._given
        return self._runtime.begin(
            [Work(lane, given[(n + k) % len(given)], n / 24) for k, lane in enumerate(self._lanes)]
        )


def _finish(step: Finish) -> None:
    for outcome in step():
        if isinstance(outcome, Exception):
            raise outcome
