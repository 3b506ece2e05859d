"""What all sinks share: threads that take records from a queue which drops rather than holds anyone up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from ongebd.errors import OngebdError
from ongebd.watch.hub import Hub
from ongebd.watch.records import Record

Complain = Callable[[str], object]
"""Takes one line for people."""

_QUIET_SECONDS = 60.0


class HubSink:
    """Handles the hub's records of some kinds, each once, in threads of its own.

    One that cannot be handled is counted, and told at most once a minute; the next is tried all the same.

    Args:
        name: As in the option that asks for it.
        hub: Where records come from.
        kinds: Which.
        complain: Who hears of trouble.
        limit: Records that may wait; one more and the oldest is dropped, counted and told.
        threads: Records that are handled at once; with one they are handled in their order.

    Attributes:
        done: Records handled.
        failed: Of those, in vain.
        tells: Whether it tells records itself; then it ends before those who hear of them.
        ending: Set when the watcher ends: what waits is still handled, but no more than is left of the time.
    """

    tells = False

    def __init__(
        self,
        name: str,
        hub: Hub,
        kinds: Sequence[type[Record]],
        complain: Complain,
        *,
        limit: int = 1024,
        threads: int = 1,
    ) -> None:
        self.name = name
        self.done = self.failed = 0
        self.ending = threading.Event()
        self._complain = complain
        self._counting = threading.Lock()
        self._told_lost = 0
        self._untold = 0  # failures that were not told, for another was told just before
        self._quiet_until = float("-inf")
        self._records = hub.subscribe(*kinds, limit=limit, dropped=self.missed)
        self._threads = [
            threading.Thread(target=self._work, name=f"ongebd-{name}-{number}", daemon=True)
            for number in range(threads)
        ]

    @property
    def lost(self) -> int:
        """Records that were dropped, for too many waited."""
        return self._records.lost

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def finish(self, seconds: float) -> None:
        """Handle what waits, for so long at most, and end. What is left then is told."""
        until = time.monotonic() + seconds
        self.ending.set()
        self._records.close()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, until - time.monotonic()))
        left = 0
        # (Before what is under way is ended, or the next would begin.)
        while (record := self._records.get(0)) is not None:
            left += 1
            self.missed(record)
        if any(thread.is_alive() for thread in self._threads):
            self.abandon()
            for thread in self._threads:
                thread.join(1.0)
        if left:
            self._complain(f"{self.name}: {left} of its records were left undone at the end")
        self.close()

    def handle(self, record: Record) -> None:
        """Do what the sink is for.

        Raises:
            OngebdError: It could not be done; one line says why.
            OSError: Likewise.
        """
        raise NotImplementedError

    def missed(self, record: Record) -> None:
        """A record was not handled: in vain, dropped, or left at the end. For who must tell; never waits."""

    def abandon(self) -> None:
        """The time to finish is over: end what is under way. For those who can."""

    def close(self) -> None:
        """All threads have ended: close what is open."""

    def _work(self) -> None:
        while (record := self._records.get()) is not None:
            self._tell_lost()
            try:
                self.handle(record)
            except (OngebdError, OSError) as problem:
                with self._counting:
                    self.failed += 1
                self._tell(str(problem))
                self.missed(record)
            with self._counting:
                self.done += 1

    def _tell_lost(self) -> None:
        with self._counting:
            new, self._told_lost = self._records.lost - self._told_lost, self._records.lost
        if new:
            self._tell(f"too slow: {new} of its records were dropped")

    def _tell(self, what: str) -> None:
        with self._counting:
            now = time.monotonic()
            if now < self._quiet_until:
                self._untold += 1
                return
            self._quiet_until = now + _QUIET_SECONDS
            untold, self._untold = self._untold, 0
        more = f" ({untold} other troubles since the last)" if untold else ""
        self._complain(f"{self.name}: {what}{more}")
