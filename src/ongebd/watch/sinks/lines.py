"""One line for people for each incident and each change of state."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

from ongebd.common.text import printable
from ongebd.errors import OngebdError, os_errors
from ongebd.output import clock
from ongebd.watch.records import Digest, Dropped, Incident, Retuned, StateChanged, Warned
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
    """Writes lines; those that are no alerts begin with `#`.

    Args:
        write: Takes a line without its end.
        quiet: Only alerts.

    Attributes:
        reader_gone: Set when the reader of the lines went away.
    """

    tries = 1  # a stream keeps what it couldn't write

    def __init__(
        self, write: Callable[[str], object], watcher: Watcher, complain: Complain, *, quiet: bool = False
    ) -> None:
        kinds = (Incident,) if quiet else (Incident, Digest, StateChanged, Dropped, Retuned)
        self._quiet, self._told = quiet, dict[str, int]()
        super().__init__("lines", watcher.hub, kinds, complain, limit=16_384)
        self.reader_gone = threading.Event()
        self._write = write
        self._streams = watcher.streams
        self._width = max(len(key) for key in watcher.streams)

    def handle(self, record: Incident | Digest | StateChanged | Dropped | Retuned) -> None:
        """Write its line, if it has one."""
        alert = isinstance(record, Incident) and record.held is None
        match record:
            case Incident(stream=stream, number=number):
                over = record.state == "ended" and not self._quiet
                if self._told.get(stream) == number or not (alert or over):
                    return
                if alert:
                    self._told[stream] = number
                count = f"{record.count} boundar{'y' if record.count == 1 else 'ies'}"
                why = "" if alert else f"  held: {record.held}"
                what = f"incident {number} at {clock(record.start)}  peak {record.peak:.2f}  {count}{why}"
            case Digest(day=day, told=told):
                held = ", ".join(f"{reason} {count}" for reason, count in record.held.items())
                strongest = ", ".join(map(str, record.strongest))
                what = f"{day}: alerts: {told}; held: {held} (the strongest: {strongest})"
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
        mark = "" if alert else "# "
        try:
            with os_errors("can't write to standard output", error=OngebdError):
                self._write(printable(f"{mark}{when}  {record.stream.ljust(self._width)}  {what}"))
        except BrokenPipeError:
            self.reader_gone.set()
