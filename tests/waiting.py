"""How tests wait: for the condition itself, so long that only a hang fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
HANG = 60.0
"""Seconds after which a test takes its program for stuck; a busy machine needs many of them."""
NEVER = 150.0
"""Seconds of a time-out that a test shows nobody waits for."""


def until(ready: Callable[[], T], seconds: float = HANG) -> T:
    """Wait until something is true, and return it."""
    end = time.monotonic() + seconds
    while not (found := ready()):
        assert time.monotonic() < end, f"it doesn't come within {seconds:g} s"
        time.sleep(0.01)
    return found


@contextmanager
def at_once() -> Iterator[None]:
    """What happens within ends long before `NEVER`, on a busy machine too."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < HANG
