"""The base of all sinks: threads that take records from a queue, which drops records but delays nobody."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container, Sequence
from itertools import count
from math import inf
from typing import Any

from ongebd.watch.hub import Hub, Subscription
from ongebd.watch.sources import Patience

Complain = Callable[[str], object]
"""Takes one line for people."""

_QUIET_SECONDS = 60.0
_PAUSES = Patience(first_delay=0.5, longest_delay=30.0)
_HURRY_SECONDS = 1.0
_ABANDON_SECONDS = 0.3
_SLICE = 0.05


def countdown(seconds: float, signals: Sequence[object] = (), before: int = 0) -> Callable[[], float]:
    """Tells what is left of some seconds; of one second, once there are more signals than before."""
    until = time.monotonic() + seconds

    def left() -> float:
        nonlocal until, before
        now = time.monotonic()
        if len(signals) > before:
            before, until = len(signals), min(until, now + _HURRY_SECONDS)
        return max(0.0, until - now)

    return left


def may_pass(status: int) -> bool:
    """Whether a server that answers so may take the same record later."""
    return status >= 500 or status in (408, 429)


class HubSink(Subscription):
    """Handles the hub's records of some kinds, each once, in its own threads.

    It counts the records that it can't handle. It tells an error once, at most one a minute, and then when it
    works again. What the system refuses (an OSError, or an error that one caused) is tried again.

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
        cameras: The keys of the streams whose records it takes; None: all.
        publishes: Whether it publishes records itself; then it ends before the others.
        tries: How often it tries a record; unlimited unless it can be the record's fault.
        ending: Set when the watcher ends. What waits is still handled, as far as the time allows.
    """

    publishes = False
    tries = inf

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
        self.cameras: Container[str] | None = None
        self.done = self.failed = 0
        self.ending = threading.Event()
        self._complain = complain
        self._counting = threading.Lock()
        self._lost_reported = 0
        self._missing_told = 0
        self._broken = False  # whether an error was told that still holds
        self._quiet_until = float("-inf")
        names = [f"ongebd-{name}-{number}" for number in range(threads)]
        self._threads = [threading.Thread(target=self._work, name=one, daemon=True) for one in names]
        hub.add(self)

    def offer(self, record: Any) -> None:
        """Queue a record, if it is of its cameras."""
        if self.cameras is None or getattr(record, "found", record).stream in self.cameras:
            super().offer(record)

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Take no more records."""
        self.ending.set()
        self.close()

    def finish(self, left: Callable[[], float]) -> None:
        """After `end`: handle what waits while seconds are left, then stop; report what is left."""
        for thread in self._threads:
            while thread.is_alive() and (seconds := left()):
                thread.join(min(seconds, _SLICE))
        skipped = 0
        while (record := self.get(0)) is not None:  # first, or a thread would take the next one
            skipped += 1
            self.missed(record)
        self.abandon()
        for thread in self._threads:
            thread.join(_ABANDON_SECONDS)
        if (missing := self._missing()) > 1:
            self._complain(f"{self.name}: records lost: {missing}")
        if skipped:
            self._complain(f"{self.name}: out of time: skipped {skipped} record{'s' * (skipped != 1)}")
        self.tidy()

    def handle(self, record: Any) -> None:
        """Do what the sink is for. A record that fails or is left at the end is `missed`, like a dropped one.

        Raises:
            Exception: It failed; its text is one line that says why.
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
            self._try(record)
            with self._counting:
                self.done += 1

    def _try(self, record: Any) -> None:
        """Handle a record. While the system refuses (a full disk, a server that is down), try again."""
        for attempt in count(1):
            try:
                self.handle(record)
            except Exception as problem:  # noqa: BLE001 - whatever it is, the next record is tried
                passing = isinstance(problem, OSError) or isinstance(problem.__cause__, OSError)
                again = passing and attempt < self.tries and not self.ending.is_set()
                self._report(
                    f"{str(problem) or type(problem).__name__}{'; trying again' * again}", broken=True
                )
                if again:
                    self.ending.wait(_PAUSES.delay(attempt))  # the last try comes when the watch ends
                    continue
                with self._counting:
                    self.failed += 1
                self.missed(record)
            else:
                self._works()
            return

    def _report(self, what: str, *, broken: bool = False) -> None:
        """Tell an error, unless one was told within a minute, or the sink hasn't worked since."""
        with self._counting:
            now = time.monotonic()
            if self._broken or now < self._quiet_until:
                return
            self._quiet_until, self._broken = now + _QUIET_SECONDS, broken
        self._complain(f"{self.name}: {what}")

    def _works(self) -> None:
        """Tell that the sink works again, and what was lost; if that wasn't told, at most once a minute."""
        with self._counting:
            missing = self._missing()
            untold = self.failed and missing and time.monotonic() >= self._quiet_until
            if not self._broken and not untold:
                return
            self._broken, self._missing_told = False, self._missing_told + missing
            self._lost_reported = self.lost
        self._complain(f"{self.name}: works again; records lost: {missing}")

    def _missing(self) -> int:
        return self.failed + self.lost - self._missing_told
