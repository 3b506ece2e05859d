"""The two threads of a pool: one begins steps, the other finishes them, so that the device never waits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import SimpleQueue
from time import monotonic

from ongebd.pool.queue import Entry, WaitingFrame, WaitingRequest
from ongebd.pool.runtime import Runtime, Step, Work
from ongebd.pool.scheduler import Scheduler
from ongebd.pool.stream import PoolResult, PoolStream

Batch = list[tuple[PoolStream, Entry]]


class Workers:
    """The threads; they end when the scheduler has no more batches, or when anything breaks."""

    def __init__(self, runtime: Runtime, scheduler: Scheduler) -> None:
        self._runtime = runtime
        self._scheduler = scheduler
        self._free = threading.Semaphore(runtime.depth)
        self._begun: SimpleQueue[tuple[Batch, Step | None] | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=work, name=f"ongebd-pool-{name}", daemon=True)
            for name, work in (("begin", self._begin_all), ("finish", self._finish_all))
        ]
        for thread in self._threads:
            thread.start()

    def is_current(self) -> bool:
        """Whether the caller is one of the threads."""
        return threading.current_thread() in self._threads

    def join(self) -> None:
        """Wait for the threads, and close the runtime."""
        for thread in self._threads:
            thread.join()
        self._runtime.close()

    def _begin_all(self) -> None:
        try:
            while True:
                self._free.acquire()
                batch = self._scheduler.next_batch()
                if batch is None:
                    return
                self._begun.put((batch, self._begin(batch)))
        except BaseException as problem:  # noqa: BLE001 - raised where the pool is used
            self._scheduler.fail(problem)
        finally:
            self._begun.put(None)

    def _begin(self, batch: Batch) -> Step | None:
        work = []
        for stream, entry in batch:
            if isinstance(entry, WaitingFrame):
                work.append(Work(stream.slot, entry.given, entry.time))
            elif entry.what == "epoch":
                stream.slot.restart_ahead()
            elif entry.config is not None:
                stream.slot.retune_ahead(entry.config)
        return self._runtime.begin(work) if work else None

    def _finish_all(self) -> None:
        try:
            while (begun := self._begun.get()) is not None:
                batch, step = begun
                outcomes = iter([] if step is None else step.finish())
                self._free.release()  # the next step may begin while these results go out
                now = monotonic()
                results: list[PoolResult] = []
                for stream, entry in batch:
                    if isinstance(entry, WaitingRequest):
                        results += self._fulfil(stream, entry)
                        continue
                    outcome, waited = next(outcomes), now - entry.since
                    if isinstance(outcome, Exception):
                        results.append(PoolResult(stream, error=outcome, waited=waited))
                    else:
                        results.append(PoolResult(stream, outcome, waited=waited))
                for _, entry in batch:
                    if entry.release is not None:
                        entry.release()
                self._scheduler.deliver(results)
        except BaseException as problem:  # noqa: BLE001 - raised where the pool is used
            self._scheduler.fail(problem)
            self._free.release()

    @staticmethod
    def _fulfil(stream: PoolStream, request: WaitingRequest) -> Iterator[PoolResult]:
        detector = stream.slot.detector
        try:
            if request.config is not None:
                detector.retune(request.config)
            else:
                for decision in detector.drain():
                    yield PoolResult(stream, decision)
                while (boundary := detector.flush()) is not None:
                    yield PoolResult(stream, boundary=boundary)
                if request.what == "epoch":
                    detector.new_epoch()
        except Exception as problem:  # noqa: BLE001 - it concerns this stream alone
            yield PoolResult(stream, error=problem)
        yield PoolResult(stream, ended=request.what)
