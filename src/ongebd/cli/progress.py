"""What a person sees on stderr while sources run: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time

from rich.markup import escape
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn

from ongebd.cli.bars import StderrBar
from ongebd.common.text import spoken_name
from ongebd.output import RunEnd


class Progress(StderrBar):
    """One bar for the source at work, and a line for each that is done. Never writes to stdout."""

    def __init__(self, sources: int, *, quiet: bool) -> None:
        super().__init__(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[clock]}  {task.fields[found]}"),
            TimeRemainingColumn(),
            quiet=quiet,
            # Results go to stdout on their own; rich must not draw them into its bar.
            redirect_stdout=sys.stdout.isatty(),
        )
        self._sources = sources
        self._place = 0  # of the source that is read, from 1
        self._started = 0.0

    def next_source(self) -> None:
        """The next source is tried; it may be refused before it begins."""
        self._place += 1

    def begin(self, source: str, expected_duration: float | None) -> None:
        """A source begins; its length in seconds, if its container claims one."""
        self._started = time.monotonic()
        if self._bar is not None:
            number = f"{self._place}/{self._sources}  " if self._sources > 1 else ""
            label = escape(number + spoken_name(source))
            self._task = self._bar.add_task(
                label, total=expected_duration, clock="0.0 s", found=_boundaries(0)
            )

    def advance(self, seconds: float) -> None:
        """The source was read up to this time."""
        if self._bar is not None:
            self._bar.update(self._task, completed=seconds, clock=f"{seconds:.1f} s")

    def found(self, boundaries: int) -> None:
        """So many boundaries were found so far."""
        if self._bar is not None:
            self._bar.update(self._task, found=_boundaries(boundaries))

    def drop(self) -> None:
        """A source was refused before anything of it was read."""
        if self._bar is not None:
            self._bar.remove_task(self._task)

    def end(self, source: str, end: RunEnd) -> None:
        """A source ended: its warnings, and a line that sums it up."""
        if self._bar is not None:
            self._bar.remove_task(self._task)
        name = spoken_name(source)
        for warning in end.warnings:
            self.say(f"ongebd: {name}: {warning}")
        if not self._quiet:
            took = max(time.monotonic() - self._started, 1e-9)
            stopped = "" if end.complete else ", stopped early"
            self.say(
                f"{name}: {_boundaries(end.boundaries)} in {end.duration:.3f} s of video"
                f" ({end.duration / took:.1f} × real time{stopped})"
            )


def _boundaries(count: int) -> str:
    return f"{count} {'boundary' if count == 1 else 'boundaries'}"
