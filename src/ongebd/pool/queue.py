"""What waits in a pool, stream by stream, and whose turn is next. No threads."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import inf
from typing import Any, Generic, Literal, TypeVar

from ongebd.detector.config import StreamConfig

Request = Literal["flush", "epoch", "close", "retune"]
S = TypeVar("S", bound=Hashable)


@dataclass(slots=True, eq=False)
class Entry:
    """A frame in the queue, or what to do with a stream after all its frames so far.

    Attributes:
        what: A frame, or the request.
        given: Of a frame: what the runtime's `accept` returned.
        time: Of a frame, in seconds.
        since: When the frame came, on the machine's monotonic clock. A request has waited forever.
        config: For "retune".
        release: Called when the outcome is known.
    """

    what: Literal["frame"] | Request
    given: Any = None
    time: float = 0.0
    since: float = -inf
    config: StreamConfig | None = None
    release: Callable[[], None] | None = None


class FairQueue(Generic[S]):
    """The entries of every stream, oldest first; streams take turns.

    A batch takes at most one entry of each stream, and a stream that has more goes to the end. So every
    stream gets its share, however many frames another has waiting.

    >>> queue = FairQueue[str]()
    >>> for time in range(3):
    ...     queue.push("flood", Entry("frame", time=time))
    >>> queue.push("calm", Entry("frame", time=7))
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
        return len(entries) >= room and sum(entry.what == "frame" for entry in entries) >= room

    def drop(self, stream: S, most: int | None = None) -> int:
        """Drop the frames of the stream, or the oldest ones; how many. Push something right after."""
        entries = self._entries.get(stream, deque())
        frames = [entry for entry in entries if entry.what == "frame"][:most]
        for frame in frames:
            entries.remove(frame)
        return len(frames)

    def oldest(self) -> float:
        """Since when the oldest first entry has waited."""
        return min(entries[0].since for entries in self._entries.values())
