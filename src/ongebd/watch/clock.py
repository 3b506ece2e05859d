"""The clock of a watcher: real, or a test's."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class LiveClock(Protocol):
    """What a watcher reads the time from, and waits by."""

    def wall(self) -> float:
        """Unix seconds (UTC)."""

    def monotonic(self) -> float:
        """Seconds that never step back."""

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Wait so long, or until `stop` is set; whether it is."""


class RealClock:
    """The machine's."""

    def wall(self) -> float:
        """Unix seconds (UTC)."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never step back."""
        return time.monotonic()

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Wait so long, or until `stop` is set; whether it is."""
        return stop.wait(max(0.0, seconds))
