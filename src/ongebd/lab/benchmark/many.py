"""Many streams together: in whole steps, and through a pool as fast as it takes them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from ongebd.detector import Model
from ongebd.lab.benchmark.timing import Sample
from ongebd.pool import StreamPool
from ongebd.pool.runtime import Runtime, Step, Work
from ongebd.types import ImageU8

PRODUCERS = 4
"""Threads that submit frames to a pool."""
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

    def _begin(self) -> Step:
        n, self._next = self._next, self._next + 1
        given = self._given
        return self._runtime.begin(
            [Work(lane, given[(n + k) % len(given)], n / 24) for k, lane in enumerate(self._lanes)]
        )


class Flood:
    """A `Run` of many streams of a pool, fed by four threads as fast as it takes frames."""

    def __init__(self, pool: StreamPool, streams: int, frames: Sequence[ImageU8]) -> None:
        self._pool = pool
        self._streams = streams
        self._frames = frames
        self._fps: float | None = None

    def __call__(self, seconds: float) -> Sample:
        """Submit about as many frames as take so long, at least two of each stream."""
        if self._fps is None:
            self._fps = self.give(1).fps
        sample = self.give(max(2, round(seconds * self._fps / self._streams)))
        self._fps = sample.fps
        return sample

    def give(self, each: int) -> Sample:
        """Submit so many frames of each stream."""
        pooled = [self._pool.add(when_full="block") for _ in range(self._streams)]
        frames = self._frames

        def produce(number: int) -> None:
            for n in range(each):
                for k in range(number, len(pooled), PRODUCERS):
                    pooled[k].submit(frames[(n + k) % len(frames)], n / 24, copy=False)

        began = time.perf_counter()
        _in_threads(produce)
        self._pool.wait()
        seconds = time.perf_counter() - began
        for stream in pooled:
            stream.close()
        self._pool.wait()
        return Sample(self._streams * each, seconds)


def _in_threads(produce: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=produce, args=(number,)) for number in range(PRODUCERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _finish(step: Step) -> None:
    for outcome in step.finish():
        if isinstance(outcome, Exception):
            raise outcome
