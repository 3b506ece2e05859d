"""What the threads of a pool share, behind one lock: its streams, what waits, and the results."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

from ongebd.detector.config import StreamConfig
from ongebd.errors import ConfigError
from ongebd.pool.queue import Entry, FairQueue, Request
from ongebd.pool.runtime import Runtime
from ongebd.pool.stream import Counts, PoolResult, PoolStream

OnResult = Callable[[PoolResult], object]
Batch = list[tuple[PoolStream, Entry]]


class Scheduler:
    """Forms batches of what the streams give, and keeps results until they are taken.

    Args:
        runtime: Whose `max_batch` a batch has at most. It frees the slots of closed streams.
        max_delay: Seconds that a frame may wait for others to form a batch.
        on_result: Called with each result, instead of keeping it.
    """

    max_results = 65_536  # that may wait; then no batch begins

    def __init__(self, runtime: Runtime, max_delay: float, on_result: OnResult | None) -> None:
        self.runtime = runtime
        self._max_delay, self._on_result = max_delay, on_result
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

    # For those that give frames: `PoolStream` and `SharedInput`.

    def push(self, stream: PoolStream, given: Any, time: float, timeout: float | None) -> bool:
        """Queue a frame that the runtime accepted; whether it was taken."""
        since = monotonic()
        with self._lock:
            self._check_open(stream)
            taken = not self._queue.full(stream, stream.max_pending) or self._make_room(stream, timeout)
            self._check_open(stream)
            stream.submitted += 1
            if not taken:
                stream.dropped += 1
                return False
            self._add(stream, Entry("frame", given, time, since))
            # Wake the worker for the first frame, to set its alarm, and for a full batch.
            if len(self._queue) == 1 or self._full_batch():
                self._work.notify()
        return True

    def request(self, stream: PoolStream, what: Request, config: StreamConfig | None = None) -> None:
        """Queue a request behind the stream's frames."""
        with self._lock:
            self._check_open(stream)
            stream.config = config or stream.config
            self._add(stream, Entry(what, config=config))
            self._work.notify()

    def push_all(self, batch: Batch) -> None:
        """Queue entries of several streams, however many wait."""
        with self._lock:
            self._check_open()
            was_empty = not self._queue
            for stream, entry in batch:
                is_frame = entry.what == "frame"
                stream.submitted += is_frame
                if stream.open:
                    self._add(stream, entry)
                else:
                    stream.dropped += is_frame
            if was_empty or self._full_batch():  # as in `push`
                self._work.notify()

    # For those that take results.

    def counts(self) -> Counts:
        """What became of all frames so far."""
        with self._lock:
            return sum((stream.counts() for stream in self._streams), self._closed_counts)

    def poll(self) -> list[PoolResult]:
        """The results that are ready, without waiting.

        Raises:
            ConfigError: Results go to `on_result`.
        """
        with self._lock:
            return self._take_results()

    def results(self, timeout: float | None = None) -> Iterator[PoolResult]:
        """Results as they come, until the pool is closed and the last one is out.

        Args:
            timeout: Stop after so many seconds without a result.

        Raises:
            ConfigError: Results go to `on_result`.
        """

        def ready() -> bool:
            over = self._closing and not self._streams and not self._unfinished
            return bool(self._results or over or self._on_result or self._failure)

        while True:
            with self._lock:
                self._news.wait_for(ready, timeout)
                results = self._take_results()
            if not results:
                return
            yield from results

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until everything submitted so far has its result; whether it has."""
        with self._lock:
            done = self._news.wait_for(lambda: not self._unfinished or self._failure is not None, timeout)
            self._check_sound()
            return done

    # For the pool and its worker threads.

    def add_stream(self, stream: PoolStream) -> None:
        """Begin a stream, unless the pool is closed."""
        with self._lock:
            self._check_open()
            self._streams.add(stream)

    def close_streams(self, *, drain: bool) -> None:
        """Close all streams; frames that wait are decided first, or dropped. A second call does nothing."""
        with self._lock:
            for stream in [] if self._closing else self._streams:
                if not drain:
                    self._drop(stream)
                if stream.open:
                    self._add(stream, Entry("close"))
            self._closing = True
            self._wake_all()

    def next_batch(self) -> Batch | None:
        """Wait for the next batch; None at the end."""
        with self._lock:
            while self._failure is None:
                left: float | None = None
                if self._queue and (self._closing or len(self._results) < self.max_results):
                    full = self._closing or self._full_batch()
                    left = 0.0 if full else self._queue.oldest() + self._max_delay - monotonic()
                    if left <= 0:
                        batch = self._queue.take(self.runtime.max_batch)
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
            self._wake_all()

    # Call these with the lock held.

    def _add(self, stream: PoolStream, entry: Entry) -> None:
        stream.open = entry.what != "close"
        self._unfinished += 1
        self._queue.push(stream, entry)

    def _make_room(self, stream: PoolStream, timeout: float | None) -> bool:
        if stream.when_full == "drop-oldest":
            self._drop(stream, 1)
            return True

        def done() -> bool:
            full = self._queue.full(stream, stream.max_pending)
            return not full or not stream.open or self._failure is not None

        return self._room.wait_for(done, timeout)

    def _drop(self, stream: PoolStream, most: int | None = None) -> None:
        dropped = self._queue.drop(stream, most)
        stream.dropped += dropped
        self._unfinished -= dropped

    def _full_batch(self) -> bool:
        return len(self._queue) >= min(self.runtime.max_batch, len(self._streams))

    def _count(self, result: PoolResult) -> None:
        stream = result.stream
        if result.waited is not None:
            stream.decided += result.error is None
            stream.failed += result.error is not None
        self._unfinished -= result.waited is not None or result.ended is not None
        if result.ended == "close":
            self._streams.discard(stream)
            self._closed_counts += stream.counts()
            self.runtime.release(stream.slot)

    def _take_results(self) -> list[PoolResult]:
        if not self._results:
            self._check_sound()
        if self._on_result is not None:
            raise ConfigError("this pool's results go to on_result")
        results = list(self._results)
        self._results.clear()
        self._work.notify()  # there may have been too many
        return results

    def _wake_all(self) -> None:
        for waiting in (self._work, self._room, self._news):
            waiting.notify_all()

    def _check_sound(self) -> None:
        if self._failure is not None:
            raise RuntimeError(f"the pool has stopped: {self._failure}") from self._failure

    def _check_open(self, stream: PoolStream | None = None) -> None:
        self._check_sound()
        if self._closing:
            raise ConfigError("the pool is closed; open another")
        if stream is not None and not stream.open:
            raise ConfigError(f"stream {stream.name!r} is closed; add another")
