"""Whose frame is next: a bounded line of entries for each stream, and turns among the streams. No threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from ongebd.detector.config import StreamConfig
from ongebd.errors import ConfigError

WhenFull = Literal["block", "drop-oldest", "drop-newest"]
WHEN_FULL: tuple[WhenFull, ...] = ("block", "drop-oldest", "drop-newest")
Ended = Literal["flush", "epoch", "close", "retune"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A frame that waits.

    Attributes:
        given: What the runtime accepted.
        time: Seconds, as given with the frame.
        since: When it came, on the pool's clock.
        freed: Called when its outcome is there.
    """

    given: Any
    time: float
    since: float
    freed: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """Something that is to happen to a stream after all its frames before.

    Attributes:
        what: The kind.
        config: The new settings, where it is to be retuned.
        freed: Called when it is done.
    """

    what: Ended
    config: StreamConfig | None = None
    freed: Callable[[], None] | None = None


Entry = Waiting | Ending


@dataclass(slots=True, eq=False)
class Line:
    """The entries of one stream, oldest first.

    Attributes:
        stream: Whose.
        room: The most frames that may wait; endings take no room.
    """

    stream: Any
    room: int
    entries: deque[Entry] = field(default_factory=deque)
    frames: int = 0
    in_turn: bool = False

    @property
    def full(self) -> bool:
        """Whether another frame finds no room."""
        return self.frames >= self.room

    def drop_oldest(self) -> None:
        """Let go of the frame that has waited longest."""
        for place, entry in enumerate(self.entries):
            if isinstance(entry, Waiting):
                del self.entries[place]
                self.frames -= 1
                return

    def clear(self) -> int:
        """Let go of everything; how many frames there were."""
        frames, self.frames = self.frames, 0
        self.entries.clear()
        return frames


class Turns:
    """Streams that have something waiting, each once, in the order of their turns.

    A batch takes one entry of each stream at most, and a stream that has more goes to the end. So every
    stream gets its share however many frames another has waiting.

    >>> turns, flood, calm = Turns(), Line("flood", 9), Line("calm", 9)
    >>> for time in range(3):
    ...     turns.push(flood, Waiting(None, time, 0.0))
    >>> turns.push(calm, Waiting(None, 7, 0.0))
    >>> [[(line.stream, entry.time) for line, entry in turns.take(1)] for _ in range(4)]
    [[('flood', 0)], [('calm', 7)], [('flood', 1)], [('flood', 2)]]
    """

    def __init__(self) -> None:
        self._lines: deque[Line] = deque()

    def __len__(self) -> int:
        return len(self._lines)

    def push(self, line: Line, entry: Entry) -> None:
        """An entry comes to the end of its stream's line."""
        line.entries.append(entry)
        line.frames += isinstance(entry, Waiting)
        if not line.in_turn:
            line.in_turn = True
            self._lines.append(line)

    def take(self, most: int) -> list[tuple[Line, Entry]]:
        """The next batch: the oldest entry of at most so many streams."""
        taken = [self._lines.popleft() for _ in range(min(most, len(self._lines)))]
        batch: list[tuple[Line, Entry]] = []
        for line in taken:
            if line.entries:  # not cleared meanwhile
                entry = line.entries.popleft()
                line.frames -= isinstance(entry, Waiting)
                batch.append((line, entry))
            line.in_turn = bool(line.entries)
            if line.in_turn:
                self._lines.append(line)
        return batch

    def oldest(self) -> float:
        """Since when the first frame of a stream has waited; minus infinity where an ending is due."""
        return min(self._since(), default=float("inf"))

    def _since(self) -> Iterator[float]:
        for line in self._lines:
            first = line.entries[0] if line.entries else None
            yield first.since if isinstance(first, Waiting) else float("-inf")


def check_when_full(policy: object) -> WhenFull:
    """What to do with a frame that finds no room.

    Raises:
        ConfigError: It is none of `WHEN_FULL`.
    """
    for known in WHEN_FULL:
        if policy == known:
            return known
    raise ConfigError(f"when_full must be one of {', '.join(WHEN_FULL)}, not {policy!r}")
