"""Boundaries of one stream that wait for their clips."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ongebd.watch.records import Filmed, Found

_MOST = 1000
"""More wait only where nobody writes the clips: 60 s of footage have some hundred boundaries at most."""


@dataclass(slots=True)
class _Awaited:
    """What is known so far of a boundary that began."""

    found: Found | None = None
    settled: bool = False
    path: Path | None = None


class AwaitedClips:
    """Brings a boundary's centre and its clip together, whichever comes first, and tells each boundary once.

    May be called from any thread; `tell` is called in the same.

    Args:
        tell: Hears of each boundary when both are known.
    """

    def __init__(self, tell: Callable[[Filmed], object]) -> None:
        self._tell = tell
        self._waiting: dict[int, _Awaited] = {}  # the oldest first
        self._lock = threading.Lock()

    def begin(self, number: int) -> None:
        """A boundary began. Where far too many wait, the oldest is told without a clip."""
        oldest = None
        with self._lock:
            if len(self._waiting) >= _MOST:
                oldest = self._waiting.pop(next(iter(self._waiting)))
            self._waiting[number] = _Awaited()
        if oldest is not None and oldest.found is not None:
            self._filmed(oldest.found, None)

    def found(self, found: Found) -> None:
        """Its centre is known."""
        with self._lock:
            awaited = self._waiting.get(found.number)
            if awaited is not None and not awaited.settled:
                awaited.found = found
                return
            self._waiting.pop(found.number, None)
        self._filmed(found, None if awaited is None else awaited.path)

    def settle(self, number: int, path: Path | None) -> None:
        """Its clip is in this file, or there will be none. What comes too late is ignored."""
        with self._lock:
            awaited = self._waiting.get(number)
            if awaited is None:
                return
            if awaited.found is None:
                awaited.settled, awaited.path = True, path
                return
            del self._waiting[number]
        self._filmed(awaited.found, path)

    def give_up(self) -> None:
        """No clip comes any more: tell all that wait."""
        with self._lock:
            rest, self._waiting = list(self._waiting.values()), {}
        for awaited in rest:
            if awaited.found is not None:
                self._filmed(awaited.found, None)

    def _filmed(self, found: Found, path: Path | None) -> None:
        self._tell(Filmed(found.stream, found.wall, found, path))
