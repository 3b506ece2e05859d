"""What waits in a pool, stream by stream, and whose turn is next. No threads."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from ongebd.detector.config import StreamConfig

Request = Literal["flush", "epoch", "close", "retune"]
S = TypeVar("S", bound=Hashable)


@dataclass(frozen=True, slots=True)
class WaitingFrame:
    """A frame in the queue.

    Attributes:
        given: What the runtime's `accept` returned.
        time: In seconds.
        since: When it came, on the machine's monotonic clock.
        release: Called when its outcome is known.
    """

    given: Any
    time: float
    since: float
    release: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class WaitingRequest:
    """What to do with a stream after all its frames so far; `config` is for "retune"."""

    what: Request
    config: StreamConfig | None = None
    release: Callable[[], None] | None = None


Entry = WaitingFrame | WaitingRequest


class FairQueue(Generic[S]):
    """The entries of every stream, oldest first; streams take turns.

    A batch takes at most one entry of each stream, and a stream that has more goes to the end. So every
    stream gets its share, however many frames another has waiting.

    >>> queue = FairQueue[str]()
    >>> for time in range(3):
    ...     queue.push("flood", WaitingFrame(None, time, 0.0))
    >>> queue.push("calm", WaitingFrame(None, 7, 0.0))
    >>> [[(stream, entry.time) for stream, entry in queue.take(1)] for _ in range(4)]
    [[('flood', 0)], [('calm', 7)], [('flood', 1)], [('flood', 2)]]
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[S, deque[Entry]] = OrderedDict()  # in the order of their turns

    def __len__(self) -> int:
        """How many streams have something waiting."""
        return len(self._entries)

    def push(self, stream: S, entry: Entry) -> None:
        """Add an entry behind the stream's others."""
        self._entries.setdefault(stream, deque()).append(entry)

    def take(self, most: int) -> list[tuple[S, Entry]]:
        """The next batch: the oldest entry of up to `most` streams."""
        taken = [self._entries.popitem(last=False) for _ in range(min(most, len(self._entries)))]
        batch = [(stream, entries.popleft()) for stream, entries in taken]
        self._entries.update((stream, entries) for stream, entries in taken if entries)
        return batch

    def full(self, stream: S, room: int) -> bool:
        """Whether `room` frames of the stream wait; requests take no room."""
        entries = self._entries.get(stream, ())
        return len(entries) >= room and sum(isinstance(entry, WaitingFrame) for entry in entries) >= room

    def drop_oldest(self, stream: S) -> None:
        """Drop the frame of the stream that has waited longest; push another right after."""
        entries = self._entries[stream]
        entries.remove(next(entry for entry in entries if isinstance(entry, WaitingFrame)))

    def clear(self, stream: S) -> list[Entry]:
        """Drop and return all entries of the stream."""
        return list(self._entries.pop(stream, ()))

    def oldest(self) -> float:
        """Since when the oldest first entry has waited; minus infinity if one of them is a request."""
        first = (entries[0] for entries in self._entries.values())
        return min(entry.since if isinstance(entry, WaitingFrame) else float("-inf") for entry in first)
