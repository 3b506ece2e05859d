"""Opens a source, passes its frames on, and reconnects when it is lost."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ongebd.common.text import public_name
from ongebd.errors import SourceError
from ongebd.types import Epoch, Frame
from ongebd.watch.records import State
from ongebd.watch.sources import SEGMENTED, Clock, Patience, WatchedSource, is_live, may_come_back
from ongebd.watch.stream import WatchedStream


class Reader(Protocol):
    """What reads a source; `VideoReader` is one.

    Attributes:
        broken: Why it broke off; None if it ended by itself.
        expected_duration: Seconds that it claims to last; None if it makes no claim.
    """

    broken: str | None
    expected_duration: float | None
    container: str
    epochs: list[Epoch]

    def __iter__(self) -> Iterator[Frame]: ...


Opener = Callable[[WatchedSource, threading.Event], AbstractContextManager[Reader]]
"""Opens a source; reading ends when the event is set."""


class _Ending(NamedTuple):
    """How a connection ended.

    Attributes:
        state: The stream's last one; None to reconnect.
        frames: How many the connection gave.
    """

    reason: str
    state: State | None
    frames: int


@dataclass(frozen=True, kw_only=True)
class Supervisor:
    """Watches over one source.

    Attributes:
        realtime: Whether frames of a source that is not live are passed on at the source's own pace.
    """

    source: WatchedSource
    stream: WatchedStream
    opener: Opener
    patience: Patience
    clock: Clock
    stop: threading.Event
    realtime: bool

    def run(self) -> None:
        """Read the source until it is over, given up or stopped."""
        attempt, retries = 0, self.patience.retries
        chance = random.Random()
        while True:
            ending = self._connection()
            self.stream.disconnect()
            if self.stop.is_set():
                return self.stream.finish("ended", "stopped")
            if ending.state is not None:
                return self.stream.finish(ending.state, ending.reason)
            attempt = 1 if ending.frames else attempt + 1
            if retries is not None and attempt > retries:
                tried = f"; given up after {retries} attempt{'s' * (retries != 1)}" if retries else ""
                return self.stream.finish("failed", ending.reason + tried)
            delay = self.patience.delay(attempt, chance)
            self.stream.change_state("reconnecting", f"{ending.reason}; next attempt in {delay:.1f} s")
            self.clock.wait(self.stop, delay)

    def _connection(self) -> _Ending:
        """One connection, from opening it to its end."""
        frames, opened, live = 0, False, True
        try:
            with self.opener(self.source, self.stop) as reader:
                opened = True
                live = is_live(self.source.source, reader.expected_duration)
                # Pieces of seconds are played at their pace; else each would be a flood, then a stall.
                segmented = live and reader.container in SEGMENTED
                paced = segmented or (self.realtime and not live)
                self.stream.wait_for_model(segmented or not (live or self.realtime))
                for frame in self._paced(reader) if paced else reader:
                    self.stream.take(frame, reader.epochs[-1].reason if reader.epochs else "")
                    frames += 1
                    if self.stop.is_set():
                        break
                broken = reader.broken
        except SourceError as problem:
            final = not (may_come_back(self.source.source) and (live or not opened))
            return _Ending(public_name(str(problem)), "failed" if final else None, frames)
        if live:
            return _Ending(public_name(broken or "the source ended"), None, frames)
        return _Ending(public_name(broken or "the source is over"), "failed" if broken else "ended", frames)

    def _paced(self, reader: Reader) -> Iterator[Frame]:
        """Each frame when its time has come; a late frame immediately."""
        began: float | None = None
        for frame in reader:
            if began is None:
                began = self.clock.monotonic() - float(frame.time)
            if self.clock.wait(self.stop, began + float(frame.time) - self.clock.monotonic()):
                return
            yield frame
