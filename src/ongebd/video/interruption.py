"""Ends a read of FFmpeg's that waits for a network, from another thread.

While it waits, FFmpeg asks PyAV ten times a second whether to go on, and PyAV compares its module's clock
with the source's time-out. There is no other way in: to close a container that is being read crashes. So that
module is given a clock which jumps ahead, beyond any time-out, in a thread that is told to stop. Where PyAV
does not read its clock that way, a read ends at its time-out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import av.container.core

LONGEST_TIMEOUT = 1e6
"""Seconds; the most that a source's time-out may be."""

_here = threading.local()


class _Clock:
    """The module `time`, as PyAV reads it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    @staticmethod
    def monotonic() -> float:
        """Seconds that never step back; in a thread that is to stop each reading is far ahead of the last."""
        stop: threading.Event | None = getattr(_here, "stop", None)
        if stop is not None and stop.is_set():
            _here.ahead = getattr(_here, "ahead", 0.0) + 2 * LONGEST_TIMEOUT
        return time.monotonic() + float(getattr(_here, "ahead", 0.0))


@contextmanager
def interruptible(stop: threading.Event | None) -> Iterator[None]:
    """Within, waits of sources that have a time-out end as if it were over, once `stop` is set.

    It concerns what this thread opens and reads.
    """
    before: threading.Event | None = getattr(_here, "stop", None)
    _here.stop = stop
    try:
        yield
    finally:
        _here.stop = before


if getattr(av.container.core, "time", None) is time:
    av.container.core.time = _Clock()  # type: ignore[attr-defined]
