"""What is to be watched: `NAME=URL`, keys that are unique, what is live, and how long to wait for it."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ongebd.common.text import printable, spoken_name
from ongebd.errors import ConfigError, a_number, a_whole_number
from ongebd.video.source import is_url, kind_of

_NAMED = re.compile(r"([^\W_][\w .-]{0,39})=(.+)", re.DOTALL)
_NOT_IN_KEYS = re.compile(r"[^a-z0-9]+")
_LONGEST_KEY = 24
SEGMENTED = frozenset({"hls", "dash"})
"""Containers that come in pieces of seconds, fetched when they are asked for."""
OPEN_SECONDS, READ_SECONDS, STALL_SECONDS = 10.0, 10.0, 3.0
"""How long a source is waited for, where nobody says: see `Patience`."""
# Of these a stream never ends by itself: where it does, something broke.
_ALWAYS_LIVE = frozenset(
    {"rtsp", "rtsps", "rtmp", "rtmps", "rtmpt", "udp", "tcp", "rtp", "srt", "mmsh", "mmst"}
)


@dataclass(frozen=True, slots=True)
class WatchedSource:
    """One source of a watcher.

    Attributes:
        key: Short, unique among a watcher's, fit for a URL and a file name.
        name: For people; without credentials.
        source: What to open; it may hold credentials, so it is shown nowhere.
    """

    key: str
    name: str
    source: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a watcher waits for a source, and what it does then.

    Raises:
        ConfigError: A number is out of its range.
    """

    open_timeout: float = OPEN_SECONDS
    """Seconds that a source may take to open."""

    read_timeout: float = READ_SECONDS
    """Seconds without data after which it is connected anew."""

    stall_after: float = STALL_SECONDS
    """Seconds without a frame after which it is called stalled."""

    retries: int | None = None
    """Attempts in a row without a frame after which it is given up; None: never."""

    first_delay: float = 1.0
    """Seconds before the first attempt to connect anew; each further one waits twice as long."""

    longest_delay: float = 60.0
    """Seconds between two attempts at most."""

    def __post_init__(self) -> None:
        for name in ("open_timeout", "read_timeout", "stall_after", "first_delay", "longest_delay"):
            if not 0 < a_number(name, getattr(self, name)) <= 86_400:
                raise ConfigError(f"{name} must be above 0 and at most 86400 s, not {getattr(self, name)}")
        if self.retries is not None and a_whole_number("retries", self.retries) < 0:
            raise ConfigError(f"retries must be at least 0, not {self.retries}")

    def delay(self, attempt: int, chance: random.Random) -> float:
        """Seconds to wait before an attempt, the first being 1: doubling, of which up to half is left out.

        So that a hundred watchers do not come back to a restarted server in the same moment.
        """
        longest = min(self.longest_delay, self.first_delay * 2.0 ** min(attempt - 1, 32))
        return longest * chance.uniform(0.5, 1.0)


def sources_of(given: Sequence[str]) -> list[WatchedSource]:
    """Name what is to be watched.

    Args:
        given: Files, URLs, `camera:N`, `-`; each may have `NAME=` in front.

    Raises:
        ConfigError: There is none, one is empty, or two have the same name.

    >>> [(one.key, one.name) for one in sources_of(["Front door=rtsp://me:secret@cam/1", "udp://:5000"])]
    [('front-door', 'Front door'), ('cam2', 'udp://:5000')]
    """
    if not given:
        raise ConfigError("there is nothing to watch: name a camera, a URL or a file")
    if given.count("-") > 1:
        raise ConfigError("standard input (-) is named twice, and can be read once; name it once")
    named = [_split(text) for text in given]
    keys: dict[str, None] = {}
    for number, (name, source) in enumerate(named, 1):
        key = _key(name if name is not None else _stem(source)) or f"cam{number}"
        if key in keys:
            if name is not None:
                raise ConfigError(f"two sources are named {printable(name)}; give each a name of its own")
            key = next(k for n in range(2, len(given) + 2) if (k := f"{key}-{n}") not in keys)
        keys[key] = None
    return [
        WatchedSource(key, printable(name if name is not None else spoken_name(source)), source)
        for key, (name, source) in zip(keys, named, strict=True)
    ]


def is_live(source: str, duration: float | None) -> bool:
    """Whether a source that ends has broken off, so that it is to be connected anew.

    Args:
        source: As given.
        duration: Seconds that its container claims to last; None where it makes no claim.
    """
    kind = kind_of(source)
    if kind == "camera":
        return True
    if kind != "url":
        return False
    return source.partition("://")[0].lower() in _ALWAYS_LIVE or duration is None


def may_come_back(source: str) -> bool:
    """Whether it makes sense to try again to open a source that could not be opened."""
    return kind_of(source) in ("camera", "url")


def _split(text: str) -> tuple[str | None, str]:
    if not text:
        raise ConfigError("a source is empty; name a camera, a URL or a file")
    named = _NAMED.fullmatch(text)
    if named is None or (not is_url(named[2]) and Path(text).exists()):
        return None, text
    return named[1].strip(), named[2]


def _stem(source: str) -> str:
    """What a source without a name may be called by: a file's name; a URL's could hold anything."""
    if kind_of(source) == "camera" or is_url(source):
        return ""
    return "stdin" if source == "-" else Path(os.fspath(source)).stem


def _key(name: str) -> str:
    return _NOT_IN_KEYS.sub("-", name.lower()).strip("-")[:_LONGEST_KEY].strip("-")
