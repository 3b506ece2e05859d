"""How a source is opened and waited for: time-outs, what each protocol needs, and being told to stop."""

from __future__ import annotations

import os
import re
import select
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from ongebd.errors import ConfigError, a_number
from ongebd.video.interruption import LONGEST_TIMEOUT

OPEN_TIMEOUT = 10.0
READ_TIMEOUT = 30.0
"""Seconds that a network source may take to open, and to send its next packet."""

_SLICE = 0.1  # seconds between two looks at whether to stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Connecting:
    """How to open and read a source.

    Attributes:
        open_timeout: Seconds that a network source may take to open.
        read_timeout: Seconds that it may take to send its next packet.
        live: Whether it is watched as it comes: FFmpeg then looks at its first second only before it begins,
            and a pipe has the read time-out too, which else is waited for without end.
        options: FFmpeg's, for the protocol and the container; they go over those that are set here.
        stop: Once it is set, reading ends as if the source had broken off.

    Raises:
        ConfigError: A time-out is no number of seconds above 0.
    """

    open_timeout: float = field(default_factory=lambda: OPEN_TIMEOUT)
    read_timeout: float = field(default_factory=lambda: READ_TIMEOUT)
    live: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    stop: threading.Event | None = None

    def __post_init__(self) -> None:
        for name in ("open_timeout", "read_timeout"):
            if not 0 < a_number(name, getattr(self, name)) <= LONGEST_TIMEOUT:
                raise ConfigError(
                    f"{name} must be a number of seconds above 0 and at most {LONGEST_TIMEOUT:.0f},"
                    f" not {getattr(self, name)}"
                )

    @property
    def timeout(self) -> tuple[float, float]:
        """Both, as PyAV takes them."""
        return float(self.open_timeout), float(self.read_timeout)

    @property
    def stopped(self) -> bool:
        """Whether reading is to end."""
        return self.stop is not None and self.stop.is_set()

    def options_for(self, text: str) -> dict[str, str]:
        """FFmpeg's options for a source.

        >>> Connecting().options_for("rtsp://camera/1")
        {'rtsp_transport': 'tcp'}
        """
        scheme = (re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", text) or ["", ""])[1].lower()
        options: dict[str, str] = {}
        if scheme in ("rtsp", "rtsps"):
            options["rtsp_transport"] = "tcp"  # by UDP every lost packet is a smear, and firewalls eat all
        if scheme == "udp":
            options["overrun_nonfatal"] = "1"
        if self.live:
            options["analyzeduration"] = "1000000"
        return options | dict(self.options)


class PipeEnd:
    """The reading end of a pipe, as a file object for PyAV whose wait can be ended.

    Args:
        descriptor: Of the pipe; it stays open.
        connecting: The read time-out, if it is live, and whether to stop.

    Attributes:
        interrupted: What interrupted a read, by a signal's handler, say. PyAV would pass over it: whoever
            reads raises it.
    """

    def __init__(self, descriptor: int, connecting: Connecting) -> None:
        self._descriptor = descriptor
        self._connecting = connecting
        self.interrupted: BaseException | None = None

    def read(self, size: int) -> bytes:
        """Up to so many bytes; none at the end, or when told to stop.

        Raises:
            TimeoutError: None came in time.
        """
        until = time.monotonic() + self._connecting.read_timeout if self._connecting.live else inf
        try:
            while not self._connecting.stopped and self.interrupted is None:
                if select.select([self._descriptor], [], [], _SLICE)[0]:
                    return os.read(self._descriptor, size)
                if time.monotonic() > until:
                    raise TimeoutError(f"no data for {self._connecting.read_timeout:g} s")
        except Exception:
            raise
        except BaseException as interruption:  # noqa: BLE001 - raised by whoever reads
            self.interrupted = interruption
        return b""
