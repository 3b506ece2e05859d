"""The base of all sinks: threads that take records from a queue, which drops records but delays nobody."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ongebd.errors import OngebdError
from ongebd.watch.hub import Hub, Subscription

Complain = Callable[[str], object]
"""Takes one line for people."""

_QUIET_SECONDS = 60.0


class HubSink(Subscription):
    """Handles the hub's records of some kinds, each once, in its own threads.

    It counts the records that it can't handle, and reports at most one error a minute.

    Args:
        name: As in the option that asks for it.
        hub: Where records come from.
        kinds: Which records it takes.
        complain: Takes the errors.
        limit: Records that may wait. When one more comes, the oldest is dropped, counted and reported.
        threads: Records that are handled at the same time; one thread handles them in order.

    Attributes:
        done: Records handled.
        failed: Of those, how many failed.
        publishes: Whether it publishes records itself; then it ends before the others.
        ending: Set when the watcher ends. What waits is still handled, as far as the time allows.
    """

    publishes = False

    def __init__(
        self,
        name: str,
        hub: Hub,
        kinds: Sequence[type[Any]],
        complain: Complain,
        limit: int = 1024,
        threads: int = 1,
    ) -> None:
        super().__init__(kinds, limit)
        self.name = name
        self.done = self.failed = 0
        self.ending = threading.Event()
        self._complain = complain
        self._counting = threading.Lock()
        self._lost_reported = self._unreported = 0
        self._quiet_until = float("-inf")
        names = [f"ongebd-{name}-{number}" for number in range(threads)]
        self._threads = [threading.Thread(target=self._work, name=one, daemon=True) for one in names]
        hub.add(self)

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def finish(self, seconds: float) -> None:
        """Handle what waits, for at most so long, then end; report what is left."""
        until = time.monotonic() + seconds
        self.ending.set()
        self.close()
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        left = 0
        while (record := self.get(0)) is not None:  # first, or a thread would take the next one
            left += 1
            self.missed(record)
        self.abandon()
        for thread in self._threads:
            thread.join(1.0)
        if left:
            self._complain(f"{self.name}: out of time: skipped {left} records")
        self.tidy()

    def handle(self, record: Any) -> None:
        """Do what the sink is for. A record that fails or is left at the end is `missed`, like a dropped one.

        Raises:
            OngebdError: It failed; one line says why.
            OSError: It failed.
        """
        raise NotImplementedError

    def abandon(self) -> None:
        """The time to finish is over: stop what is still running, if anything is."""

    def tidy(self) -> None:
        """All threads have ended: close what is open."""

    def _work(self) -> None:
        while (record := self.get()) is not None:
            with self._counting:
                new, self._lost_reported = self.lost - self._lost_reported, self.lost
            if new:
                self._report(f"can't keep up: dropped {new} record{'s' * (new != 1)}")
            try:
                self.handle(record)
            except (OngebdError, OSError) as problem:
                with self._counting:
                    self.failed += 1
                self._report(str(problem))
                self.missed(record)
            with self._counting:
                self.done += 1

    def _report(self, what: str) -> None:
        with self._counting:
            now = time.monotonic()
            if now < self._quiet_until:
                self._unreported += 1
                return
            self._quiet_until = now + _QUIET_SECONDS
            more, self._unreported = self._unreported, 0
        since = f" ({more} more error{'s' * (more != 1)} since)" if more else ""
        self._complain(f"{self.name}: {what}{since}")
