"""One line for people for each boundary and each change of state."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

from ongebd.common.text import printable
from ongebd.errors import OngebdError, os_errors
from ongebd.output import clock
from ongebd.watch.records import Dropped, Found, Retuned, StateChanged, Warned
from ongebd.watch.sink import Complain, HubSink
from ongebd.watch.watcher import Watcher


class WarningSink(HubSink):
    """Tells the warnings of all sources."""

    def __init__(self, watcher: Watcher, complain: Complain) -> None:
        super().__init__("warnings", watcher.hub, (Warned,), complain)
        self._streams = watcher.streams

    def handle(self, record: Warned) -> None:
        """Tell one."""
        self._complain(f"{self._streams[record.stream].name}: {record.warning}")


class LineSink(HubSink):
    """Writes lines; those of states, drops and sensitivities begin with `#`.

    Args:
        write: Takes a line without its end.
        quiet: Only boundaries.

    Attributes:
        reader_gone: Set when the reader of the lines went away.
    """

    tries = 1  # a stream keeps what it couldn't write

    def __init__(
        self, write: Callable[[str], object], watcher: Watcher, complain: Complain, *, quiet: bool = False
    ) -> None:
        kinds = (Found,) if quiet else (Found, StateChanged, Dropped, Retuned)
        super().__init__("lines", watcher.hub, kinds, complain, limit=16_384)
        self.reader_gone = threading.Event()
        self._write = write
        self._streams = watcher.streams
        self._width = max(len(key) for key in watcher.streams)

    def handle(self, record: Found | StateChanged | Dropped | Retuned) -> None:
        """Write its line."""
        match record:
            case Found(boundary=boundary):
                score = f"{boundary.score:.{1 if abs(boundary.score) >= 1 else 2}f}"
                times = f"{clock(boundary.time)}  onset {clock(boundary.onset)}"
                what = f"boundary {record.number} at {times}  score {score}"
            case StateChanged():
                reason = f": {record.reason}" if record.reason else ""
                what = f"{record.state}, epoch {record.epoch}{reason}"
            case Retuned():
                what = f"sensitivity {record.sensitivity:g}"
            case Dropped():
                frames = f"{record.count} frame{'s' * (record.count != 1)}"
                rate = self._streams[record.stream].rate
                fix = "try --fps 8" if rate > 8 else "watch fewer sources"
                what = f"can't keep up: dropped {frames} ({record.total} in all); {fix}"
        when = datetime.fromtimestamp(record.wall).astimezone().isoformat(" ", "milliseconds")
        mark = "" if isinstance(record, Found) else "# "
        try:
            with os_errors("can't write to standard output", error=OngebdError):
                self._write(printable(f"{mark}{when}  {record.stream.ljust(self._width)}  {what}"))
        except BrokenPipeError:
            self.reader_gone.set()
