"""One publisher, many readers, none of whom can hold up another or the publisher."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from ongebd.errors import ConfigError
from ongebd.watch.records import Record


class Subscription:
    """The records that one reader has not read yet; made by `Hub.subscribe`.

    At most `limit` wait. When one more comes, the oldest is dropped and counted in `lost`.
    """

    def __init__(
        self, hub: Hub, kinds: tuple[type[Any], ...], limit: int, dropped: Callable[[Record], object] | None
    ) -> None:
        self._hub = hub
        self._kinds = kinds
        self._limit = limit
        self._dropped = dropped
        self._waiting: deque[Record] = deque()
        self._news = threading.Condition()
        self._closed = False
        self._lost = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """Whether nothing more will come; what waits can still be read."""
        return self._closed

    @property
    def lost(self) -> int:
        """Records dropped so far, because nobody read them in time."""
        return self._lost

    def get(self, timeout: float | None = None) -> Record | None:
        """The oldest record that waits.

        Args:
            timeout: Seconds to wait for one at most; None waits until there is one.

        Returns:
            None after the time-out, or where the subscription is closed and read to its end.
        """
        with self._news:
            self._news.wait_for(lambda: self._waiting or self._closed, timeout)
            return self._waiting.popleft() if self._waiting else None

    def close(self) -> None:
        """Take no more records, and wake who waits for one. A second time does nothing."""
        self._hub.forget(self)
        self.end()

    def end(self) -> None:
        """What `close` does, for the hub."""
        with self._news:
            self._closed = True
            self._news.notify_all()

    def offer(self, record: Record) -> None:
        """Take a record if it is of a kind that is read. For the hub."""
        if self._kinds and not isinstance(record, self._kinds):
            return
        oldest = None
        with self._news:
            if self._closed:
                return
            if len(self._waiting) >= self._limit:
                oldest = self._waiting.popleft()
                self._lost += 1
            self._waiting.append(record)
            self._news.notify()
        if oldest is not None and self._dropped is not None:
            self._dropped(oldest)


class Hub:
    """Hands records to all who subscribed.

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

    def subscribe(
        self, *kinds: type[Any], limit: int = 1024, dropped: Callable[[Record], object] | None = None
    ) -> Subscription:
        """Begin to listen.

        Args:
            *kinds: Classes of records; none for all.
            limit: Records that may wait.
            dropped: Hears of each that is dropped, in the thread of who publishes; it must not wait.

        Raises:
            ConfigError: The limit is below 1.
        """
        if limit < 1:
            raise ConfigError(f"limit must be 1 or more, not {limit}")
        subscription = Subscription(self, kinds, limit, dropped)
        with self._lock:
            if self._closed:
                subscription.end()
            else:
                self._subscriptions = (*self._subscriptions, subscription)
        return subscription

    def forget(self, subscription: Subscription) -> None:
        """Give it nothing more."""
        with self._lock:
            self._subscriptions = tuple(each for each in self._subscriptions if each is not subscription)

    def close(self) -> None:
        """End all subscriptions; each can read what waits for it."""
        with self._lock:
            self._closed = True
            ended, self._subscriptions = self._subscriptions, ()
        for subscription in ended:
            subscription.end()
