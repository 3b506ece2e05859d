"""What a person sees while a cluster finds boundaries: a bar over all videos, or lines now and then."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType

from rich.progress import BarColumn, SpinnerColumn, TextColumn

from ongebd.cli.bars import StderrBar
from ongebd.cli.extract_progress import span
from ongebd.cluster import Detected, Refused

_EVERY = 10.0  # seconds between two lines where there is no terminal


class DetectProgress(StderrBar):
    """A bar on a terminal, a line every ten seconds elsewhere, and a summary. Never writes to stdout.

    Args:
        videos: To be done.
        there: Videos whose results were there before.
        out: Folder of the results.
        quiet: Failures and warnings only.

    Attributes:
        failures: How many videos failed so far.
        complete: Set when all were tried.
    """

    def __init__(self, videos: int, there: int, out: Path, *, quiet: bool) -> None:
        super().__init__(
            SpinnerColumn(),
            TextColumn("detecting"),
            BarColumn(),
            TextColumn("{task.fields[now]}"),
            quiet=quiet,
        )
        if self._bar is not None:
            self._task = self._bar.add_task("", total=videos, now="")
        self.failures = 0
        self.complete = False
        self._videos, self._there, self._out = videos, there, out
        self._done = self._boundaries = 0
        self._seconds = 0.0
        self._started = self._last_line = time.monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if not self._quiet and (self.complete or self._done or self.failures):
            self._sum_up()

    def detected(self, event: Detected) -> None:
        """A video was read to its end."""
        self._done += 1
        self._boundaries += event.end.boundaries
        self._seconds += event.end.duration
        for warning in event.end.warnings:
            self.say(f"ongebd: {event.source}: {warning}")
        self._show()

    def refused(self, event: Refused) -> None:
        """A video could not be read, or not to its end."""
        self.failures += 1
        self.say(f"ongebd: {event.reason}")
        self._show()

    def _show(self) -> None:
        done = self._done + self.failures
        took = time.monotonic() - self._started
        now = f"{done}/{self._videos} videos  about {span(took / done * (self._videos - done))} left"
        if self._bar is not None:
            self._bar.update(self._task, completed=done, now=now)
        elif not self._quiet and time.monotonic() - self._last_line >= _EVERY:
            self._last_line = time.monotonic()
            self.say(now)

    def _sum_up(self) -> None:
        took = time.monotonic() - self._started
        found = f"{self._boundaries} {'boundary' if self._boundaries == 1 else 'boundaries'}"
        videos = f"{self._done} video{'' if self._done == 1 else 's'}"
        parts = [f"{found} in {videos} ({self._seconds:.0f} s of video), into {self._out} in {span(took)}"]
        if self._there:
            parts.append(f"{self._there} were done already")
        if self.failures:
            parts.append(f"{self.failures} failed: see {self._out / 'manifest.jsonl'}")
        if not self.complete:
            parts.append("stopped early: the same command goes on from here")
        self.say("; ".join(parts))
