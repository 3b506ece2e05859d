"""The thread of a source: opens it, hands its frames on, and comes back when it is lost."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from ongebd.common.text import public_name
from ongebd.errors import SourceError
from ongebd.types import Epoch, Frame
from ongebd.watch.clock import LiveClock
from ongebd.watch.records import State
from ongebd.watch.sources import SEGMENTED, Patience, WatchedSource, is_live, may_come_back
from ongebd.watch.stream import WatchedStream


class Reader(Protocol):
    """What a source is read by; `VideoReader` is one.

    Attributes:
        broken: Why it broke off; None where it ended by itself.
        expected_duration: Seconds that it claims to last; None where it makes no claim.
        container: FFmpeg's name of what it comes in.
        epochs: Breaks in its clock or format so far.
    """

    broken: str | None
    expected_duration: float | None
    container: str
    epochs: list[Epoch]

    def __iter__(self) -> Iterator[Frame]: ...


Opener = Callable[[WatchedSource, threading.Event], AbstractContextManager[Reader]]
"""Opens a source; reading ends when the event is set."""


@dataclass(frozen=True, slots=True)
class _Lost:
    """How a connection ended.

    Attributes:
        reason: One line.
        state: The stream's last one; None where it is to be connected anew.
        frames: How many it gave.
    """

    reason: str
    state: State | None
    frames: int


class Supervisor:
    """Watches over one source, in a thread of its own.

    Args:
        source: What to open.
        stream: Who takes the frames.
        opener: Opens it.
        patience: How long to wait.
        clock: The watcher's.
        stop: Ends it.
        realtime: Whether frames of what is not live are handed on when their time has come.
        fail: Told of what ought not to happen.
        chance: For the delays between attempts.
    """

    def __init__(
        self,
        source: WatchedSource,
        stream: WatchedStream,
        opener: Opener,
        patience: Patience,
        clock: LiveClock,
        stop: threading.Event,
        *,
        realtime: bool,
        fail: Callable[[BaseException], None],
        chance: random.Random,
    ) -> None:
        self._source, self._stream, self._opener, self._patience = source, stream, opener, patience
        self._clock, self._stop, self._realtime, self._fail, self._chance = (
            clock,
            stop,
            realtime,
            fail,
            chance,
        )
        # A daemon: a driver that hangs in the kernel must not keep the program.
        self.thread = threading.Thread(target=self._run, name=f"ongebd-read-{source.key}", daemon=True)

    def _run(self) -> None:
        try:
            self._watch()
        except BaseException as problem:  # noqa: BLE001 - handed over, and raised where the watcher is used
            self._fail(problem)

    def _watch(self) -> None:
        attempt = 0
        while True:
            lost = self._connection()
            self._stream.disconnect()
            if self._stop.is_set():
                return self._stream.finish("ended", "stopped")
            if lost.state is not None:
                return self._stream.finish(lost.state, lost.reason)
            attempt = 1 if lost.frames else attempt + 1
            retries = self._patience.retries
            if retries is not None and attempt > retries:
                tried = f"given up after {retries} attempts" if retries != 1 else "given up after 1 attempt"
                return self._stream.finish("failed", f"{lost.reason}; {tried}" if retries else lost.reason)
            delay = self._patience.delay(attempt, self._chance)
            self._stream.change("reconnecting", f"{lost.reason}; next attempt in {delay:.1f} s")
            self._clock.wait(self._stop, delay)

    def _connection(self) -> _Lost:
        """One connection, from before it is opened until it is over."""
        self._stream.connect()
        frames = 0
        opened = False
        live = True
        try:
            with self._opener(self._source, self._stop) as reader:
                opened = True
                live = is_live(self._source.source, reader.expected_duration)
                # Pieces of seconds are played at their pace, or each would be a flood and then a stall.
                segmented = live and reader.container in SEGMENTED
                paced = segmented or (self._realtime and not live)
                self._stream.wait_for_model(segmented or not (live or self._realtime))
                for frame in self._paced(reader) if paced else reader:
                    self._stream.take(frame, _newest(reader.epochs))
                    frames += 1
                    if self._stop.is_set():
                        break
                broken = reader.broken
        except SourceError as problem:
            final = not (may_come_back(self._source.source) and (live or not opened))
            return _Lost(public_name(str(problem)), "failed" if final else None, frames)
        if live:
            return _Lost(public_name(broken or "the source ended"), None, frames)
        return _Lost(public_name(broken or "the source is over"), "failed" if broken else "ended", frames)

    def _paced(self, reader: Reader) -> Iterator[Frame]:
        """Each frame when its time has come; at once, when it is late."""
        began: float | None = None
        for frame in reader:
            if began is None:
                began = self._clock.monotonic() - float(frame.time)
            if self._clock.wait(self._stop, began + float(frame.time) - self._clock.monotonic()):
                return
            yield frame


def _newest(epochs: Sequence[Epoch]) -> str:
    return epochs[-1].reason if epochs else ""
