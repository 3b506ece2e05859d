"""One line for people for each boundary and each change of state."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import datetime

from ongebd.common.text import printable
from ongebd.errors import OngebdError
from ongebd.output.naming import clock
from ongebd.watch.hub import Hub
from ongebd.watch.records import Dropped, Found, Record, Retuned, StateChanged
from ongebd.watch.sinks.base import Complain, HubSink

_SECONDS_BETWEEN_DROPS = 10.0


class LineSink(HubSink):
    """Writes lines, those of states and drops with a `#` in front.

    Args:
        write: Takes a line without its end.
        hub: Where records come from.
        names: Of each stream's key its name.
        complain: Who hears of trouble.

    Attributes:
        gone: Set when whoever reads the lines went away.
    """

    def __init__(
        self, write: Callable[[str], object], hub: Hub, names: Mapping[str, str], complain: Complain
    ) -> None:
        super().__init__("lines", hub, (Found, StateChanged, Dropped, Retuned), complain, limit=16_384)
        self.gone = threading.Event()
        self._take = write
        self._width = max((len(key) for key in names), default=0)
        self._drops_told: dict[str, tuple[float, int]] = {}

    def handle(self, record: Record) -> None:
        """Write its line, if it has one."""
        text = self._line(record)
        if text is None or self.gone.is_set():
            return
        try:
            self._take(text)
        except BrokenPipeError:
            self.gone.set()
        except OSError as problem:
            raise OngebdError(f"cannot write to standard output: {problem.strerror or problem}") from problem

    def _line(self, record: Record) -> str | None:
        who = record.stream.ljust(self._width)
        when = datetime.fromtimestamp(record.wall).astimezone().isoformat(" ", "milliseconds")
        match record:
            case Found(boundary=boundary):
                score = f"{boundary.score:.{1 if abs(boundary.score) >= 1 else 2}f}"
                times = f"{clock(boundary.time)}  onset {clock(boundary.onset)}"
                return f"{when}  {who}  boundary {record.number} at {times}  score {score}"
            case StateChanged():
                reason = f": {printable(record.reason)}" if record.reason else ""
                return f"# {when}  {who}  {record.state}, epoch {record.epoch}{reason}"
            case Dropped():
                return self._drops(record, f"# {when}  {who}  ")
            case Retuned():
                return f"# {when}  {who}  sensitivity {record.sensitivity:g}"
        return None

    def _drops(self, record: Dropped, begin: str) -> str | None:
        """At most one line in a while; the first at once."""
        then, told = self._drops_told.get(record.stream, (float("-inf"), 0))
        if record.wall - then < _SECONDS_BETWEEN_DROPS:
            return None
        self._drops_told[record.stream] = record.wall, record.total
        new = record.total - told
        frames = "1 frame" if new == 1 else f"{new} frames"
        return f"{begin}{frames} dropped, for the model is too slow for it ({record.total} in all)"
