"""How long a source is waited for, what each protocol needs, and how another thread ends a wait."""

from __future__ import annotations

import errno
import os
import re
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import Annotated, Any, BinaryIO, TypeVar

import av.container.core

from ongebd.common import MAX_PIXELS
from ongebd.common.settings import Range, check_fields
from ongebd.errors import uninterrupted

OPEN_TIMEOUT = 10.0
READ_TIMEOUT = 30.0
"""Seconds that a network source may take to open, and to send its next packet."""

_LONGEST = 1e6  # seconds
SLICE = 0.1
"""Seconds between two looks at whether to stop."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Connecting:
    """How to open and read a source.

    Attributes:
        open_timeout: Seconds that a network source may take to open.
        read_timeout: Seconds that it may take to send its next packet.
        live: Whether the source is watched live. Then FFmpeg looks only at its first second before it begins,
            and the read time-out holds for pipes too; otherwise they may take any time.
        private_network: Whether what a web source names (pieces of a playlist, redirects) may have a private
            or loopback address. The server that the user named may always.
        max_pixels: The largest picture that is decoded.
        stop: Once set, reading ends as if the source had broken off.
    """

    open_timeout: Annotated[float, Range(above=0, most=_LONGEST)] = field(
        default_factory=lambda: OPEN_TIMEOUT
    )
    read_timeout: Annotated[float, Range(above=0, most=_LONGEST)] = field(
        default_factory=lambda: READ_TIMEOUT
    )
    live: bool = False
    private_network: bool = False
    max_pixels: Annotated[int, Range(least=1, most=2**31 - 1)] = MAX_PIXELS
    stop: threading.Event | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def stopped(self) -> bool:
        """Whether reading must end."""
        return self.stop is not None and self.stop.is_set()

    def options_for(self, text: str) -> dict[str, str]:
        """FFmpeg's options for a source.

        >>> Connecting().options_for("rtsp://camera/1")
        {'rtsp_transport': 'tcp'}
        """
        scheme = (re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", text) or ["", ""])[1].lower()
        options: dict[str, str] = {}
        if scheme in ("rtsp", "rtsps"):
            options["rtsp_transport"] = "tcp"  # with UDP every lost packet smears, and firewalls block it
        if scheme == "udp":
            options["overrun_nonfatal"] = "1"
        if self.live:
            options["analyzeduration"] = "1000000"
        return options


def turns(connecting: Connecting, seconds: float) -> Iterator[None]:
    """The turns of a wait. Once this thread must stop, or waited too long, an OSError says so."""
    until = min(time.monotonic() + seconds, getattr(_here, "until", inf))
    while not (connecting.stopped or getattr(_here, "heard", None)):
        if time.monotonic() > until:
            raise TimeoutError(f"no data for {seconds:g} s")
        yield
    raise OSError(errno.ECANCELED, "it was stopped")


def aside(work: Callable[[], T], connecting: Connecting, seconds: float | None = None) -> T:
    """What some work returns or raises that nothing can end: in a thread, which can be left.

    Raises:
        OSError: It took longer than so many seconds (None: the time to open), or must stop.
    """
    done: list[T] = []
    problems: list[Exception] = []

    def run() -> None:
        try:
            done.append(work())
        except Exception as problem:  # noqa: BLE001 - raised below
            problems.append(problem)

    thread = threading.Thread(target=run, name="ongebd-aside", daemon=True)
    thread.start()
    for _ in turns(connecting, seconds or connecting.open_timeout):
        thread.join(SLICE / 2)
        if problems:
            raise problems[0]
        if done:
            return done[0]
    raise AssertionError  # the turns have no other end


class PipeEnd:
    """The reading end of a pipe, as a file object for PyAV whose wait can be ended.

    Args:
        pipe: The descriptor of a pipe, which stays open; or the name of one.

    Attributes:
        count: Bytes read so far.
    """

    def __init__(self, pipe: int | str, connecting: Connecting) -> None:
        self._connecting, self.count, self._owned = connecting, 0, False
        if isinstance(pipe, str):  # without waiting for a writer
            pipe, self._owned = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), True
        self._descriptor = pipe

    def __del__(self) -> None:
        if self._owned:
            os.close(self._descriptor)

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; none at the end. An OSError if they don't come in time, and after a stop."""
        for _ in turns(self._connecting, self._connecting.read_timeout if self._connecting.live else inf):
            if select.select([self._descriptor], [], [], SLICE)[0]:
                data = os.read(self._descriptor, size)
                self.count += len(data)
                return data
        raise AssertionError


class Rest:
    """The bytes of a file from some place on, as a file object for PyAV."""

    def __init__(self, file: BinaryIO, start: int, name: str) -> None:
        self._file, self.start, self.name = file, start, name
        file.seek(start)

    def read(self, size: int) -> bytes:
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset + (self.start if whence == 0 else 0), whence) - self.start

    def tell(self) -> int:
        return self._file.tell() - self.start

    def seekable(self) -> bool:
        return True


# While FFmpeg waits for a network, it asks PyAV ten times a second whether to go on, and PyAV compares its
# module's clock with the source's time-out. Nothing else works: closing a container that is being read
# crashes. So that module gets a clock that jumps beyond any time-out in a thread that must stop, or that may
# wait no longer though bytes come. If a PyAV doesn't read its clock that way, a read ends at its time-out.

_here = threading.local()


class _Clock:
    """The module `time`, as PyAV reads it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    @staticmethod
    def monotonic() -> float:
        """Seconds that never step back; in a thread that must stop, each reading is far ahead of the last."""
        stop: threading.Event | None = getattr(_here, "stop", None)
        now = time.monotonic()
        stopped = (stop is not None and stop.is_set()) or getattr(_here, "heard", None)
        if stopped or now > getattr(_here, "until", inf):
            _here.ahead = getattr(_here, "ahead", 0.0) + 2 * _LONGEST
        return now + float(getattr(_here, "ahead", 0.0))


def give_up() -> None:
    """What this thread opens or reads times out, until the end of the block below."""
    _here.until = 0.0


@contextmanager
def interruptible(stop: threading.Event | None, until: float = inf) -> Iterator[None]:
    """Once `stop` is set, what this thread opens and reads in the block times out immediately.

    So it does after Ctrl-C, whose exception FFmpeg's callback would lose; it is raised at the block's end.

    Args:
        stop: None: nothing stops it.
        until: The same after this moment of `time.monotonic`, also while bytes come.
    """
    before = getattr(_here, "stop", None), getattr(_here, "until", inf), getattr(_here, "heard", None)
    with uninterrupted() as heard:
        _here.stop, _here.until, _here.heard = stop, until, heard
        try:
            yield
        finally:
            _here.stop, _here.until, _here.heard = before


if getattr(av.container.core, "time", None) is time:
    av.container.core.time = _Clock()  # type: ignore[attr-defined]
