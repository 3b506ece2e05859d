"""Where the frames that are given meet the threads that work, and their results who takes them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

from ongebd.detector.config import StreamConfig
from ongebd.errors import ConfigError
from ongebd.pool.runtime import Lane
from ongebd.pool.stream import Counts, PoolResult, PoolStream, sum_of
from ongebd.pool.turns import Ended, Ending, Entry, Turns, Waiting


class Exchange:
    """All that the threads of a pool share, behind one lock: streams, entries that wait, and results.

    Args:
        max_batch: The most entries in one step.
        delay: Seconds that a frame may wait for others to make a batch with.
        max_results: Results that may wait to be taken.
        on_result: Takes them in place of who asks.
        release: Gives a closed stream's place back.
    """

    def __init__(
        self,
        max_batch: int,
        delay: float,
        max_results: int,
        on_result: Callable[[PoolResult], object] | None,
        release: Callable[[Lane], object],
    ) -> None:
        self._max_batch, self._delay, self._max_results = max_batch, delay, max_results
        self._on_result, self._release = on_result, release
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)  # for who begins steps
        self._room = threading.Condition(self._lock)  # for who submits
        self._news = threading.Condition(self._lock)  # for who takes results, and who waits
        self._turns = Turns()
        self._results: deque[PoolResult] = deque()
        self._streams: set[PoolStream] = set()
        self._past = Counts(0, 0, 0, 0)  # of streams that are closed
        self._undone = 0  # entries without a result
        self._closing = False
        self._failure: BaseException | None = None

    def __len__(self) -> int:
        """How many streams are open."""
        return len(self._streams)

    # For who adds streams and gives frames.

    def add(self, begin: Callable[[], PoolStream]) -> PoolStream:
        """Begin a stream, where the pool is open."""
        with self._lock:
            self._check_open()
            stream = begin()
            self._streams.add(stream)
        return stream

    def push(self, stream: PoolStream, given: Any, time: float, timeout: float | None) -> bool:
        """A frame, as the runtime accepted it; whether it was taken."""
        since = monotonic()
        with self._lock:
            self._check_taking(stream)
            line = stream.line
            stream.submitted += 1
            if line.full and not self._make_room(stream, timeout):
                stream.dropped += 1
                return False
            self._undone += 1
            self._turns.push(line, Waiting(given, time, since))
            # Who begins steps is woken for the first frame, to set its alarm, and for a batch that is whole.
            if len(self._turns) == 1 or self._whole():
                self._work.notify()
        return True

    def end(self, stream: PoolStream, what: Ended) -> None:
        """Something is to happen to a stream after all its frames so far."""
        with self._lock:
            self._check_taking(stream)
            if what == "close":
                stream.open = False
            self._push_ending(stream, Ending(what))

    def retune(self, stream: PoolStream, change: Callable[[StreamConfig], StreamConfig]) -> None:
        """A stream is to have other settings after all its frames so far."""
        with self._lock:
            self._check_taking(stream)
            stream.config = change(stream.config)
            self._push_ending(stream, Ending("retune", stream.config))

    def come(self, entries: list[tuple[PoolStream, Entry]]) -> None:
        """Frames and ends of several streams, which have room for them. For a door."""
        with self._lock:
            self._check_open()
            waited_for_none = not self._turns
            for stream, entry in entries:
                frame = isinstance(entry, Waiting)
                stream.submitted += frame
                if not stream.open:
                    stream.dropped += frame
                    continue
                if isinstance(entry, Ending) and entry.what == "close":
                    stream.open = False
                self._undone += 1
                self._turns.push(stream.line, entry)
            if waited_for_none or self._whole():  # as in `push`
                self._work.notify()

    def check_open(self) -> None:
        """Refuse where the pool is closed or has stopped."""
        with self._lock:
            self._check_open()

    def close(self, *, drain: bool) -> None:
        """End all streams; what waits is still worked on, or dropped. A second time does nothing."""
        with self._lock:
            if not self._closing:
                self._closing = True
                for stream in self._streams:
                    if not drain:
                        self._drop_waiting(stream)
                    if stream.open:
                        stream.open = False
                        self._undone += 1
                        self._turns.push(stream.line, Ending("close"))
            self._work.notify_all()
            self._room.notify_all()

    # For who takes results.

    def poll(self) -> list[PoolResult]:
        """See `StreamPool.poll`."""
        with self._lock:
            self._check_takes_results()
            return self._taken()

    def results(self, timeout: float | None) -> Iterator[PoolResult]:
        """See `StreamPool.results`."""
        while True:
            with self._lock:
                self._check_takes_results()
                if not self._results and not self._over and not self._news.wait_for(self._any_news, timeout):
                    return
                if not self._results:
                    self._check_sound()
                    return
                some = self._taken()
            yield from some

    def wait(self, timeout: float | None) -> bool:
        """See `StreamPool.wait`."""
        with self._lock:
            done = self._news.wait_for(lambda: self._undone == 0 or self._failure is not None, timeout)
            self._check_sound()
            return done

    def counts(self) -> Counts:
        """What became of all frames so far."""
        with self._lock:
            return sum_of([self._past, *(stream.counts() for stream in self._streams)])

    def over(self) -> None:
        """The threads that work have ended: wake who waits, and raise what they stopped for."""
        with self._lock:
            self._news.notify_all()
            self._check_sound()

    # For the threads that work.

    def next_batch(self) -> list[tuple[PoolStream, Waiting | Ending]] | None:
        """The next batch, once there is one; None at the end."""
        with self._lock:
            while self._failure is None:
                left: float | None = None
                if self._turns and (self._closing or len(self._results) < self._max_results):
                    left = 0.0 if self._closing or self._whole() else self._left()
                    if left <= 0:
                        batch = self._turns.take(self._max_batch)
                        self._room.notify_all()
                        return [(line.stream, entry) for line, entry in batch]
                elif self._closing and not self._turns:
                    return None
                self._work.wait(left)
            return None

    def deliver(self, results: list[PoolResult]) -> None:
        """Hand results over, and count them."""
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
        """One of them broke: all stops."""
        with self._lock:
            self._failure = self._failure or problem
            for waiting in (self._work, self._room, self._news):
                waiting.notify_all()

    # With the lock held.

    def _push_ending(self, stream: PoolStream, ending: Ending) -> None:
        self._undone += 1
        self._turns.push(stream.line, ending)
        self._work.notify()

    def _make_room(self, stream: PoolStream, timeout: float | None) -> bool:
        if stream.when_full == "drop-newest":
            return False
        if stream.when_full == "drop-oldest":
            stream.line.drop_oldest()
            stream.dropped += 1
            self._undone -= 1
            return True

        def may_go_on() -> bool:
            return not stream.line.full or not stream.open or self._failure is not None

        made = self._room.wait_for(may_go_on, timeout)
        if made:
            try:
                self._check_taking(stream)
            except BaseException:
                stream.submitted -= 1
                raise
        return made

    def _drop_waiting(self, stream: PoolStream) -> None:
        entries = list(stream.line.entries)
        stream.dropped += stream.line.clear()
        self._undone -= len(entries)
        if any(isinstance(entry, Ending) and entry.what == "close" for entry in entries):
            stream.open = True

    def _whole(self) -> bool:
        return len(self._turns) >= min(self._max_batch, len(self._streams))

    def _left(self) -> float:
        return self._turns.oldest() + self._delay - monotonic()

    def _count(self, result: PoolResult) -> None:
        stream = result.stream
        if result.waited is not None:
            stream.decided += result.error is None
            stream.failed += result.error is not None
            self._undone -= 1
        if result.ended is not None:
            self._undone -= 1
        if result.ended == "close":
            self._streams.discard(stream)
            self._past = sum_of([self._past, stream.counts()])
            self._release(stream.lane)

    def _taken(self) -> list[PoolResult]:
        some = list(self._results)
        self._results.clear()
        self._work.notify()  # there may have been too many
        return some

    def _any_news(self) -> bool:
        return bool(self._results) or self._over

    @property
    def _over(self) -> bool:
        return self._failure is not None or (self._closing and not self._streams and self._undone == 0)

    def _check_sound(self) -> None:
        if self._failure is not None:
            raise RuntimeError(f"the pool has stopped: {self._failure}") from self._failure

    def _check_open(self) -> None:
        self._check_sound()
        if self._closing:
            raise ConfigError("the pool is closed; begin another")

    def _check_taking(self, stream: PoolStream) -> None:
        self._check_open()
        if not stream.open:
            raise ConfigError(f"stream {stream.name!r} is closed; add another")

    def _check_takes_results(self) -> None:
        if not self._results:
            self._check_sound()
        if self._on_result is not None:
            raise ConfigError("this pool's results go to on_result")
