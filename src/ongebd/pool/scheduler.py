"""What the threads of a pool share, behind one lock: its streams, what waits, and the results."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

from ongebd.detector.config import StreamConfig
from ongebd.errors import ConfigError
from ongebd.pool.queue import Entry, FairQueue, Request, WaitingFrame, WaitingRequest
from ongebd.pool.runtime import StreamSlot
from ongebd.pool.stream import Counts, PoolResult, PoolStream


class Scheduler:
    """Forms batches of what the streams give, and keeps results until they are taken.

    Args:
        max_batch: The most entries in one batch.
        max_delay: Seconds that a frame may wait for others to form a batch.
        max_results: The most results that may wait; then no batch begins.
        on_result: Called with each result, instead of keeping it.
        release: Frees the slot of a closed stream.
    """

    def __init__(
        self,
        max_batch: int,
        max_delay: float,
        max_results: int,
        on_result: Callable[[PoolResult], object] | None,
        release: Callable[[StreamSlot], object],
    ) -> None:
        self._max_batch, self._max_delay, self._max_results = max_batch, max_delay, max_results
        self._on_result, self._release = on_result, release
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)  # wakes the thread that begins steps
        self._room = threading.Condition(self._lock)  # wakes those that submit
        self._news = threading.Condition(self._lock)  # wakes those that take results, or wait
        self._queue = FairQueue[PoolStream]()
        self._results: deque[PoolResult] = deque()
        self._streams: set[PoolStream] = set()
        self._closed_counts = Counts()
        self._unfinished = 0  # entries without a result
        self._closing = False
        self._failure: BaseException | None = None

    def __len__(self) -> int:
        """How many streams are open."""
        return len(self._streams)

    # For those that add streams and give frames.

    def add(self, stream: PoolStream) -> None:
        """Begin a stream, unless the pool is closed."""
        with self._lock:
            self._check_open()
            self._streams.add(stream)

    def push(self, stream: PoolStream, given: Any, time: float, timeout: float | None) -> bool:
        """Queue a frame that the runtime accepted; whether it was taken."""
        since = monotonic()
        with self._lock:
            self._check_open(stream)
            stream.submitted += 1
            if self._queue.full(stream, stream.max_pending) and not self._make_room(stream, timeout):
                stream.dropped += 1
                return False
            self._add(stream, WaitingFrame(given, time, since))
            # Wake the worker for the first frame, to set its alarm, and for a full batch.
            if len(self._queue) == 1 or self._full_batch():
                self._work.notify()
        return True

    def request(self, stream: PoolStream, what: Request, config: StreamConfig | None = None) -> None:
        """Queue a request behind the stream's frames."""
        with self._lock:
            self._check_open(stream)
            if config is not None:
                stream.config = config
            self._add(stream, WaitingRequest(what, config))
            self._work.notify()

    def push_all(self, entries: list[tuple[PoolStream, Entry]]) -> None:
        """Queue entries of several streams, which have room for them; for `SharedInput`."""
        with self._lock:
            self._check_open()
            was_empty = not self._queue
            for stream, entry in entries:
                is_frame = isinstance(entry, WaitingFrame)
                stream.submitted += is_frame
                if stream.open:
                    self._add(stream, entry)
                else:
                    stream.dropped += is_frame
            if was_empty or self._full_batch():  # as in `push`
                self._work.notify()

    def check_open(self) -> None:
        """Raise if the pool is closed or has stopped."""
        with self._lock:
            self._check_open()

    def close(self, *, drain: bool) -> None:
        """Close all streams; what waits is decided first, or dropped. A second call does nothing."""
        with self._lock:
            if not self._closing:
                self._closing = True
                for stream in self._streams:
                    if not drain:
                        self._drop_all(stream)
                    if stream.open:
                        self._add(stream, WaitingRequest("close"))
            self._work.notify_all()
            self._room.notify_all()

    # For those that take results.

    def poll(self) -> list[PoolResult]:
        """See `StreamPool.poll`."""
        with self._lock:
            self._check_keeps_results()
            return self._take_results()

    def results(self, timeout: float | None) -> Iterator[PoolResult]:
        """See `StreamPool.results`."""
        while True:
            with self._lock:
                self._check_keeps_results()
                if not self._news.wait_for(lambda: self._results or self._over, timeout):
                    return
                if not self._results:
                    self._check_sound()
                    return
                results = self._take_results()
            yield from results

    def wait(self, timeout: float | None) -> bool:
        """See `StreamPool.wait`."""
        with self._lock:
            done = self._news.wait_for(lambda: not self._unfinished or self._failure is not None, timeout)
            self._check_sound()
            return done

    def counts(self) -> Counts:
        """What became of all frames so far."""
        with self._lock:
            return sum((stream.counts() for stream in self._streams), self._closed_counts)

    # For the worker threads.

    def next_batch(self) -> list[tuple[PoolStream, Entry]] | None:
        """Wait for the next batch; None at the end."""
        with self._lock:
            while self._failure is None:
                left: float | None = None
                if self._queue and (self._closing or len(self._results) < self._max_results):
                    full = self._closing or self._full_batch()
                    left = 0.0 if full else self._queue.oldest() + self._max_delay - monotonic()
                    if left <= 0:
                        batch = self._queue.take(self._max_batch)
                        self._room.notify_all()
                        return batch
                elif self._closing and not self._queue:
                    return None
                self._work.wait(left)
            return None

    def deliver(self, results: list[PoolResult]) -> None:
        """Hand out results, and count them."""
        if self._on_result is not None:
            for result in results:
                self._on_result(result)
        with self._lock:
            for result in results:
                self._count(result)
            if self._on_result is None:
                self._results.extend(results)
            self._news.notify_all()

    def fail(self, problem: BaseException) -> None:
        """A worker broke: everything stops."""
        with self._lock:
            self._failure = self._failure or problem
            for waiting in (self._work, self._room, self._news):
                waiting.notify_all()

    def finish(self) -> None:
        """The workers have ended: wake those that wait, and raise what the workers stopped for."""
        with self._lock:
            self._news.notify_all()
            self._check_sound()

    # Call these with the lock held.

    def _add(self, stream: PoolStream, entry: Entry) -> None:
        if isinstance(entry, WaitingRequest) and entry.what == "close":
            stream.open = False
        self._unfinished += 1
        self._queue.push(stream, entry)

    def _make_room(self, stream: PoolStream, timeout: float | None) -> bool:
        if stream.when_full == "drop-newest":
            return False
        if stream.when_full == "drop-oldest":
            self._queue.drop_oldest(stream)
            stream.dropped += 1
            self._unfinished -= 1
            return True

        def over() -> bool:
            return not stream.open or self._failure is not None

        made = self._room.wait_for(
            lambda: over() or not self._queue.full(stream, stream.max_pending), timeout
        )
        if over():
            stream.submitted -= 1
            self._check_open(stream)
        return made

    def _drop_all(self, stream: PoolStream) -> None:
        dropped = self._queue.clear(stream)
        stream.dropped += sum(isinstance(entry, WaitingFrame) for entry in dropped)
        self._unfinished -= len(dropped)
        if any(isinstance(entry, WaitingRequest) and entry.what == "close" for entry in dropped):
            stream.open = True

    def _full_batch(self) -> bool:
        return len(self._queue) >= min(self._max_batch, len(self._streams))

    def _count(self, result: PoolResult) -> None:
        stream = result.stream
        if result.waited is not None:
            stream.decided += result.error is None
            stream.failed += result.error is not None
            self._unfinished -= 1
        if result.ended is not None:
            self._unfinished -= 1
        if result.ended == "close":
            self._streams.discard(stream)
            self._closed_counts += stream.counts()
            self._release(stream.slot)

    def _take_results(self) -> list[PoolResult]:
        results = list(self._results)
        self._results.clear()
        self._work.notify()  # there may have been too many
        return results

    @property
    def _over(self) -> bool:
        return self._failure is not None or (self._closing and not self._streams and not self._unfinished)

    def _check_sound(self) -> None:
        if self._failure is not None:
            raise RuntimeError(f"the pool has stopped: {self._failure}") from self._failure

    def _check_open(self, stream: PoolStream | None = None) -> None:
        self._check_sound()
        if self._closing:
            raise ConfigError("the pool is closed; begin another")
        if stream is not None and not stream.open:
            raise ConfigError(f"stream {stream.name!r} is closed; add another")

    def _check_keeps_results(self) -> None:
        if not self._results:
            self._check_sound()
        if self._on_result is not None:
            raise ConfigError("this pool's results go to on_result")
