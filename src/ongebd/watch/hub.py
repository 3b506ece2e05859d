"""One publisher and many subscribers. None of them can delay another, or the publisher."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from ongebd.errors import ConfigError
from ongebd.watch.records import Record


class Subscription(AbstractContextManager["Subscription"]):
    """The records of some kinds that one subscriber has not read yet; made by `Hub.subscribe`.

    Args:
        kinds: Classes of records; none means all.
        limit: Records that may wait. When one more comes, the oldest is dropped.

    Attributes:
        lost: Records that were dropped because they were not read in time.
        closed: Whether the subscription has ended; the records that wait can still be read.

    Raises:
        ConfigError: The limit is below 1.
    """

    def __init__(self, kinds: Sequence[type[Any]], limit: int = 1024) -> None:
        if limit < 1:
            raise ConfigError(f"limit must be at least 1, not {limit}")
        self.lost, self.closed = 0, False
        self._kinds, self._limit = tuple(kinds), limit
        self._waiting: deque[Record] = deque()
        self._news = threading.Condition()

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(self, timeout: float | None = None) -> Record | None:
        """The oldest record that waits.

        Args:
            timeout: The most seconds to wait for a record; None waits until one comes.

        Returns:
            None after the timeout, or when the subscription is closed and all of it has been read.
        """
        with self._news:
            self._news.wait_for(lambda: self._waiting or self.closed, timeout)
            return self._waiting.popleft() if self._waiting else None

    def close(self) -> None:
        """Take no more records, and wake every thread that waits in `get`."""
        with self._news:
            self.closed = True
            self._news.notify_all()

    def offer(self, record: Record) -> None:
        """Called by the hub: queue a record if the subscriber wants its kind."""
        if self._kinds and not isinstance(record, self._kinds):
            return
        oldest = None
        with self._news:
            if self.closed:
                return
            if len(self._waiting) >= self._limit:
                oldest = self._waiting.popleft()
                self.lost += 1
            self._waiting.append(record)
            self._news.notify()
        if oldest is not None:
            self.missed(oldest)

    def missed(self, record: Any) -> None:
        """A record was dropped. Called in the publisher's thread; must not wait."""


_S = TypeVar("_S", bound=Subscription)


class Hub:
    """Hands records to all subscribers.

    >>> from ongebd.watch.records import Retuned
    >>> hub = Hub()
    >>> with hub.subscribe(limit=2) as reader:
    ...     for n in range(3):
    ...         hub.publish(Retuned("door", float(n), 0.5))
    ...     (reader.lost, reader.get(0).wall, reader.get(0).wall, reader.get(0))
    (1, 1.0, 2.0, None)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: tuple[Subscription, ...] = ()
        self._closed = False

    def publish(self, record: Record) -> None:
        """Give a record to every subscription. Never waits."""
        for subscription in self._subscriptions:
            subscription.offer(record)

    def subscribe(self, *kinds: type[Any], limit: int = 1024) -> Subscription:
        """Begin to listen; the arguments are those of `Subscription`."""
        return self.add(Subscription(kinds, limit))

    def add(self, subscription: _S) -> _S:
        """Begin to hand records to a subscription."""
        with self._lock:
            if self._closed:
                subscription.close()
            still_open = (one for one in self._subscriptions if not one.closed)
            self._subscriptions = (*still_open, subscription)
        return subscription

    def close(self) -> None:
        """Close all subscriptions; the records that wait can still be read."""
        with self._lock:
            self._closed = True
        for subscription in self._subscriptions:
            subscription.close()
