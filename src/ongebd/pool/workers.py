"""The two threads of a pool: one begins steps, the other finishes them, so that the device never waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from time import monotonic
from typing import Any, NamedTuple

from ongebd.pool.runtime import Outcome, Runtime, Step, Work
from ongebd.pool.stream import PoolResult, PoolStream
from ongebd.pool.turns import Ending, Waiting

Batch = list[tuple[PoolStream, Waiting | Ending]]


class Begun(NamedTuple):
    """A batch under way: its step, if it has frames; these; and the endings."""

    step: Step | None
    frames: list[tuple[PoolStream, Waiting]]
    endings: list[tuple[PoolStream, Ending]]


class Workers:
    """The threads; they start at once, and end when `next_batch` gives None or something breaks.

    Args:
        runtime: Closed at the end.
        next_batch: Waits for the next batch; None at the end.
        deliver: Takes the results of a step.
        fail: Told of anything that breaks: a runtime's error, or one of `deliver`.
    """

    def __init__(
        self,
        runtime: Runtime[Any],
        next_batch: Callable[[], Batch | None],
        deliver: Callable[[list[PoolResult]], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._runtime = runtime
        self._next_batch = next_batch
        self._deliver = deliver
        self._fail = fail
        self._free = threading.Semaphore(runtime.depth)
        self._begun: SimpleQueue[Begun | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=work, name=f"ongebd-pool-{name}", daemon=True)
            for name, work in (("begin", self._begin_all), ("finish", self._finish_all))
        ]
        self._joining = threading.Lock()
        self._joined = False
        for thread in self._threads:
            thread.start()

    def is_current(self) -> bool:
        """Whether one of the threads asks."""
        return threading.current_thread() in self._threads

    def join(self) -> None:
        """Wait for the threads, and close the runtime."""
        with self._joining:
            for thread in self._threads:
                thread.join()
            if not self._joined:
                self._joined = True
                self._runtime.close()

    def _begin_all(self) -> None:
        try:
            while True:
                self._free.acquire()
                batch = self._next_batch()
                if batch is None:
                    return
                self._begun.put(self._begin(batch))
        except BaseException as problem:  # noqa: BLE001 - handed over, and raised where the pool is used
            self._fail(problem)
        finally:
            self._begun.put(None)

    def _begin(self, batch: Batch) -> Begun:
        frames = [(stream, entry) for stream, entry in batch if isinstance(entry, Waiting)]
        endings = [(stream, entry) for stream, entry in batch if isinstance(entry, Ending)]
        for stream, ending in endings:
            if ending.what == "epoch":
                stream.lane.break_off()
            elif ending.config is not None:
                stream.lane.retune_ahead(ending.config)
        step = None
        if frames:
            step = self._runtime.begin(
                [Work(stream.lane, entry.given, entry.time) for stream, entry in frames]
            )
        return Begun(step, frames, endings)

    def _finish_all(self) -> None:
        try:
            while (begun := self._begun.get()) is not None:
                outcomes = [] if begun.step is None else begun.step.finish()
                self._free.release()  # the next step may begin while these results go out
                now = monotonic()
                results = [
                    _result(stream, outcome, now - entry.since)
                    for (stream, entry), outcome in zip(begun.frames, outcomes, strict=True)
                ]
                for stream, ending in begun.endings:
                    results += self._end(stream, ending)
                for freed in [e.freed for _, e in begun.frames] + [e.freed for _, e in begun.endings]:
                    if freed is not None:
                        freed()
                self._deliver(results)
        except BaseException as problem:  # noqa: BLE001 - likewise
            self._fail(problem)
            self._free.release()

    @staticmethod
    def _end(stream: PoolStream, ending: Ending) -> Iterator[PoolResult]:
        """What a stream still had to say, and that it has said it."""
        if ending.config is not None:
            stream.lane.retune(ending.config)
            yield PoolResult(stream, ended=ending.what)
            return
        try:
            for decision in stream.lane.drain():
                yield PoolResult(stream, decision)
            while (boundary := stream.lane.flush()) is not None:
                yield PoolResult(stream, boundary=boundary)
            if ending.what == "epoch":
                stream.lane.new_epoch()
        except Exception as problem:  # noqa: BLE001 - that stream's, and no other's
            yield PoolResult(stream, error=problem)
        yield PoolResult(stream, ended=ending.what)


def _result(stream: PoolStream, outcome: Outcome, waited: float) -> PoolResult:
    if isinstance(outcome, Exception):
        return PoolResult(stream, error=outcome, waited=waited)
    return PoolResult(stream, outcome, waited=waited)
