"""How tests wait: for the condition itself, so long that only a hang fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
HANG = 60.0
"""Seconds after which a test takes its program for stuck; a busy machine needs many of them."""


def until(ready: Callable[[], T], how: Callable[[], object] = lambda: "it does not come") -> T:
    """Wait until something is true, and return it; or fail with how it stands."""
    end = time.monotonic() + HANG
    while not (found := ready()):
        assert time.monotonic() < end, how()
        time.sleep(0.01)
    return found
