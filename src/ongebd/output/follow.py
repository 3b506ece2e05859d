"""Runs one source to its end, into its writers: the same for a command and for a worker of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

from ongebd.common.text import spoken_name
from ongebd.detector import Seen, SourceRun
from ongebd.output.base import RunEnd, Sink, Tee
from ongebd.types import Boundary, Epoch


class Watcher(Protocol):
    """Is told how far a source is."""

    def begin(self, source: str, expected_duration: float | None) -> None:
        """A source begins; its length in seconds, if its container claims one."""

    def advance(self, seconds: float) -> None:
        """The source was read up to this time."""

    def found(self, boundaries: int) -> None:
        """So many boundaries were found so far."""

    def drop(self) -> None:
        """A source was refused before anything of it was read."""

    def end(self, source: str, end: RunEnd) -> None:
        """A source ended."""

    def say(self, line: str) -> None:
        """Print one line for people."""


class Results:
    """The sinks of one source, opened when there is something to write: a refused source leaves no file.

    Args:
        open_sinks: Opens them.
        paths: The files that they write, if they write any.
    """

    def __init__(self, open_sinks: Callable[[], Sequence[Sink]], paths: Sequence[Path] = ()) -> None:
        self._open, self._paths = open_sinks, paths
        self._tee: Tee | None = None

    @property
    def opened(self) -> Tee:
        """The sinks."""
        if self._tee is None:
            self._tee = Tee(self._open())
        return self._tee

    @property
    def is_open(self) -> bool:
        """Whether there are files."""
        return self._tee is not None

    def lacking(self) -> list[Path]:
        """Files that are not there, though the sinks were closed."""
        return [path for path in self._paths if not path.exists()]


def follow(run: SourceRun, results: Results, watcher: Watcher, source: str) -> None:
    """Run one source to its end, or to Ctrl-C; either way the results are finished.

    Raises:
        OngebdError: What `SourceRun` and the sinks raise. What was found until then is in the results.
    """
    frames = boundaries = 0
    complete = stopped = False
    try:
        with closing(iter(run)) as events:
            watcher.begin(source, run.video.expected_duration)
            for event in events:
                match event:
                    case Seen(frame, decision):
                        frames += 1
                        results.opened.decision(frame, decision)
                        watcher.advance(decision.time)
                    case Boundary():
                        boundaries += 1
                        results.opened.boundary(event)
                        watcher.found(boundaries)
                    case Epoch():
                        results.opened.epoch(event)
        complete = run.video.broken is None
    except KeyboardInterrupt:
        stopped = True
        raise
    finally:
        # Of a source that was refused before its first frame nothing is left behind.
        if complete or stopped or results.is_open:
            while not complete and (last := run.detector.flush()) is not None:
                boundaries += 1
                results.opened.boundary(last)
            end = RunEnd(complete, float(run.video.duration), frames, boundaries, run.video.warnings)
            _close(results, end, watcher, source)
            watcher.end(source, end)
        else:
            watcher.drop()


def _close(results: Results, end: RunEnd, watcher: Watcher, source: str) -> None:
    try:
        results.opened.close(end)
    except KeyboardInterrupt:
        for path in results.lacking():
            watcher.say(f"ongebd: {spoken_name(source)}: stopped before {path} was made")
        raise
