"""Many streams together, a frame of each in every step."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ongebd.detector import Model
from ongebd.lab.benchmark.timing import Sample
from ongebd.pool.runtime import Finish, Runtime, Work
from ongebd.types import ImageU8

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
