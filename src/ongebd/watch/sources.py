"""What to watch: `NAME=URL`, unique keys, which sources are live, and how long to wait for them."""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from ongebd.common.settings import Range, check_fields
from ongebd.common.text import printable, spoken_name
from ongebd.errors import ConfigError, SourceError
from ongebd.video import VideoReader
from ongebd.video.access import options_for_url, plain_url
from ongebd.video.source import is_url, kind_of, status_of
from ongebd.watch.cameras import Camera

_NAMED = re.compile(r"([^\W_][\w .-]{0,39})=(.+)", re.DOTALL)
_NOT_IN_KEYS = re.compile(r"[^a-z0-9]+")
_LONGEST_KEY = 24
SEGMENTED = frozenset({"hls", "dash"})
"""Containers that come in pieces of several seconds, which the reader fetches."""
# Streams over these never end by themselves: if one does, something broke.
_ALWAYS_LIVE = frozenset({"rtsp", "rtsps", "rtmp", "rtmps", "rtmpe", "udp", "tcp", "rtp", "srt"})


class Clock:
    """The machine's clock; tests replace it."""

    def wall(self) -> float:
        """Unix seconds (UTC)."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never step back."""
        return time.monotonic()

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Wait for so long, or until `stop` is set; returns whether it is."""
        return stop.wait(max(0.0, seconds))


@dataclass(frozen=True, slots=True)
class WatchedSource:
    """One source of a watcher.

    Attributes:
        key: Short, unique in its watcher, valid in a URL and in a file name.
        name: For people; without credentials.
        source: What to open. It may contain credentials, so it is never shown.
        camera: Its own settings, if it has some.
    """

    key: str
    name: str
    source: str = field(repr=False)
    camera: Camera | None = None


Opener = Callable[[WatchedSource, threading.Event], AbstractContextManager[VideoReader]]
"""Opens a source; reading ends when the event is set."""


Seconds = Annotated[float, Range(above=0, most=86_400)]


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a watcher waits for a source.

    Raises:
        ConfigError: A number is out of range.
    """

    open_timeout: Seconds = 10.0
    """Seconds that a source may take to open."""

    read_timeout: Seconds = 10.0
    """Seconds without data before the watcher reconnects."""

    stall_after: Seconds = 3.0
    """Seconds without a frame before a stream counts as stalled."""

    retries: Annotated[int, Range(least=0)] | None = None
    """Attempts in a row without a frame before the watcher gives up; None: it never does."""

    first_delay: Seconds = 1.0
    """Seconds before the first attempt to reconnect; each later one waits twice as long."""

    longest_delay: Seconds = 60.0
    """The most seconds between two attempts."""

    def __post_init__(self) -> None:
        check_fields(self)

    def delay(self, attempt: int) -> float:
        """Seconds to wait before an attempt (the first is 1): doubling, less a random part of up to half.

        The random part keeps many watchers from reconnecting to a restarted server at the same moment.
        """
        longest = min(self.longest_delay, self.first_delay * 2.0 ** min(attempt - 1, 32))
        return longest * random.uniform(0.5, 1.0)


def sources_of(given: Sequence[str | Camera]) -> list[WatchedSource]:
    """Give each source a key and a name.

    Args:
        given: Files, URLs, `camera:N`, `-`, each of which may begin with `NAME=`; and cameras.

    Raises:
        ConfigError: Two have the same name, or an address can never work.

    >>> [(one.key, one.name) for one in sources_of(["Front door=rtsp://me:secret@cam/1", "udp://:5000"])]
    [('front-door', 'Front door'), ('cam2', 'udp://:5000')]
    """
    sources: dict[str, WatchedSource] = {}
    for number, one in enumerate(given, 1):
        camera = None if isinstance(one, str) else one
        name, source = _split(one) if isinstance(one, str) else (one.name, one.source)
        words = _NOT_IN_KEYS.sub("-", (name or _stem(source)).lower()).strip("-")
        key = words[:_LONGEST_KEY].strip("-") or f"cam{number}"
        if key in sources:
            if name is not None:
                raise ConfigError(f"two sources are named {printable(name)}; give each its own name")
            key = next(k for n in range(2, len(given) + 2) if (k := f"{key}-{n}") not in sources)
        shown = printable(name or spoken_name(source))
        if any(other.name == shown for other in sources.values()):  # what tells them apart is hidden
            shown = f"{shown} ({key})"
        if is_url(source):
            try:
                options_for_url(source)
            except SourceError as problem:
                raise ConfigError(f"{shown}: {problem}") from None
        sources[key] = WatchedSource(key, shown, source, camera)
    return list(sources.values())


def is_source(text: str) -> bool:
    """Whether a text clearly names a source: a URL, a camera or a file that exists, maybe behind `NAME=`."""
    source = _split(text)[1]
    return is_url(source) or kind_of(source) == "camera" or status_of(source) is not None


def is_live(source: str, duration: float | None) -> bool:
    """Whether a source that ends has broken off, so that the watcher reconnects.

    Args:
        source: As given.
        duration: Seconds that its container claims to last; None if it makes no claim.
    """
    kind = kind_of(source)
    if kind != "url":
        return kind == "camera"
    return plain_url(source).partition("://")[0].lower() in _ALWAYS_LIVE or duration is None


def _split(text: str) -> tuple[str | None, str]:
    named = _NAMED.fullmatch(text)
    if named is None or (not is_url(named[2]) and status_of(text) is not None):
        return None, text
    return named[1].strip(), named[2]


def _stem(source: str) -> str:
    """The name of a file; empty for a URL, which may contain anything."""
    if kind_of(source) == "camera" or is_url(source):
        return ""
    return "stdin" if source == "-" else Path(os.fspath(source)).stem
