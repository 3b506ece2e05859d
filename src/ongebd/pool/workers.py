"""The two threads of a pool: one begins steps, the other finishes them, so that the device never waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from time import monotonic

from ongebd.detector.config import StreamConfig
from ongebd.pool.queue import Request
from ongebd.pool.runtime import Finish, Work
from ongebd.pool.scheduler import Batch, Scheduler
from ongebd.pool.stream import PoolResult, PoolStream


class Workers:
    """The threads; they end when the scheduler has no more batches, or when anything breaks."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._free = threading.Semaphore(scheduler.runtime.depth)
        self._begun: SimpleQueue[tuple[Batch, Finish] | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, args=(work,), name="ongebd-pool", daemon=True)
            for work in (self._begin_all, self._finish_all)
        ]
        for thread in self._threads:
            thread.start()

    def is_current(self) -> bool:
        """Whether the caller is one of the threads."""
        return threading.current_thread() in self._threads

    def join(self) -> None:
        """Wait for the threads."""
        for thread in self._threads:
            thread.join()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as problem:  # noqa: BLE001 - raised where the pool is used
            self._scheduler.fail(problem)
        finally:  # the other thread ends too
            self._begun.put(None)
            self._free.release()

    def _begin_all(self) -> None:
        self._free.acquire()
        while (batch := self._scheduler.next_batch()) is not None:
            self._begun.put((batch, self._begin(batch)))
            self._free.acquire()

    def _begin(self, batch: Batch) -> Finish:
        runtime, work = self._scheduler.runtime, []
        for stream, entry in batch:
            if entry.what == "frame":
                work.append(Work(stream.slot, entry.given, entry.time))
            elif entry.what == "epoch":
                runtime.restart_ahead(stream.slot)
            elif entry.config is not None:
                runtime.retune_ahead(stream.slot, entry.config)
        return runtime.begin(work) if work else list

    def _finish_all(self) -> None:
        while (begun := self._begun.get()) is not None:
            batch, finish = begun
            outcomes = iter(finish())
            self._free.release()  # the next step may begin while these results go out
            now = monotonic()
            results: list[PoolResult] = []
            for stream, entry in batch:
                if entry.what != "frame":
                    results += _fulfil(stream, entry.what, entry.config)
                elif isinstance(outcome := next(outcomes), Exception):
                    results.append(PoolResult(stream, error=outcome, waited=now - entry.since))
                else:
                    waited, closed = now - entry.since, stream.slot.closed()
                    results.append(PoolResult(stream, outcome, closed=closed, waited=waited))
                if entry.release is not None:
                    entry.release()
            self._scheduler.deliver(results)


def _fulfil(stream: PoolStream, what: Request, config: StreamConfig | None) -> Iterator[PoolResult]:
    slot = stream.slot
    try:
        if config is not None:
            slot.retune(config)
        else:
            for decision in slot.drain():
                yield PoolResult(stream, decision)
            while (boundary := slot.flush()) is not None:
                yield PoolResult(stream, boundary=boundary)
            if what == "epoch":
                slot.new_epoch()
    except Exception as problem:  # noqa: BLE001 - it concerns this stream alone
        yield PoolResult(stream, error=problem)
    yield PoolResult(stream, ended=what, closed=slot.closed())
