"""How often a video was begun: so that one that kills its workers is given up, and no other is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition
from typing import Protocol

MOST = 3
"""So often a video is begun whose worker dies over it."""


class Attempts:
    """Counts, for all workers, how often work on a video began since it last came to an end.

    On a cluster this is an actor beside the driver: what a worker began outlives the worker.

    >>> attempts = Attempts()
    >>> attempts.begin(7), attempts.begin(7), attempts.begin(8), attempts.unfinished(7)
    (1, 2, 1, 2)
    >>> attempts.end(7)
    >>> attempts.unfinished(7)
    0
    """

    def __init__(self) -> None:
        self._begun: Counter[int] = Counter()

    def begin(self, number: int) -> int:
        """Work on a video begins; the how manieth time, from 1."""
        self._begun[number] += 1
        return self._begun[number]

    def end(self, number: int) -> None:
        """Work on it came to an end, whatever the end was."""
        del self._begun[number]

    def unfinished(self, number: int) -> int:
        """How often it began without an end."""
        return self._begun[number]


class Counting(Protocol):
    """What a worker needs of `Attempts`, wherever it lives."""

    def begin(self, number: int) -> int:
        """Work on a video begins."""

    def end(self, number: int) -> None:
        """Work on it came to an end."""

    def unfinished(self, number: int) -> int:
        """How often it began without an end."""


class Turns:
    """Lets the threads of one worker go side by side, or one of them alone.

    A video over which a worker died is worked on alone: if the worker dies again, that video is to blame, and
    not those that were worked on beside it.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._together = 0
        self._alone = False

    @contextmanager
    def turn(self, *, alone: bool) -> Iterator[None]:
        """Wait for a turn, and have it."""
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            if alone:
                self._alone = True
                self._changed.wait_for(lambda: not self._together)
            else:
                self._together += 1
        try:
            yield
        finally:
            with self._changed:
                if alone:
                    self._alone = False
                else:
                    self._together -= 1
                self._changed.notify_all()
