"""Progress of a command on stderr: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from ongebd.cli.standard_streams import say
from ongebd.common.text import public_name

_EVERY = 10.0  # seconds between two lines without a terminal


class Progress:
    """One bar, shown from the first `show` until `clear` or the end of the context. Never writes to stdout.

    Args:
        quiet: No bar and no lines of progress.
        lines: Without a terminal, print what the bar would show every ten seconds.
        patience: Seconds before the bar appears.
    """

    def __init__(self, *, quiet: bool = False, lines: bool = False, patience: float = 0.0) -> None:
        self.quiet = quiet
        self._console = Console(stderr=True, highlight=False)
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._lines = lines and not quiet
        self._started = self._last_line = time.monotonic()
        self._patience = patience
        if self._console.is_terminal and not quiet:
            self._bar = Bar(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[now]}"),
                TimeRemainingColumn(),
                console=self._console,
                transient=True,
                redirect_stdout=sys.stdout.isatty(),  # rich must not draw results into its bar
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    @property
    def seconds(self) -> float:
        """Time since the start or the last `restart`; above 0."""
        return max(time.monotonic() - self._started, 1e-9)

    def restart(self) -> None:
        """Start the clock again, and remove the bar of what is over."""
        self._started = time.monotonic()
        self.clear()

    def show(self, what: str, done: float, total: float | None, now: str = "") -> None:
        """Show how far the work is, in any unit.

        Args:
            what: The text before the bar.
            done: Work done so far.
            total: All work; None if unknown.
            now: The text after the bar, and of the lines without a terminal.
        """
        if self._bar is not None:
            if self._task is None:
                if self.seconds < self._patience:
                    return
                self._bar.start()
                self._task = self._bar.add_task("", total=total, now="")
            self._bar.update(self._task, description=escape(what), completed=done, total=total, now=now)
        elif self._lines and time.monotonic() - self._last_line >= _EVERY:
            self._last_line = time.monotonic()
            self.say(now)

    def clear(self) -> None:
        """Remove the bar until the next `show`."""
        if self._bar is not None and self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None

    def say(self, line: str) -> None:
        """Print one line, above the bar if there is one, without the secrets of a URL."""
        line = public_name(line)
        if self._bar is not None:
            self._console.print(line, markup=False, soft_wrap=True)
        else:
            say(line)

    def summary(self, line: str) -> None:
        """Print one line unless quiet."""
        if not self.quiet:
            self.say(line)


class Videos:
    """Counts the finished videos of a command, shows them, and sums them up.

    Args:
        what: The text before the bar.
        todo: Videos to do.
        there: Videos that were done before.
        log: The file that lists failures.

    Attributes:
        done: Videos that succeeded so far.
        failed: Videos that failed so far.
    """

    def __init__(self, progress: Progress, what: str, todo: int, there: int, log: Path) -> None:
        self._progress, self._what, self._log = progress, what, log
        self._todo, self._there = todo, there
        self.done = self.failed = 0

    def add(self, failure: str | None) -> None:
        """Count a finished video; `failure` is the line that says why it failed."""
        if failure is None:
            self.done += 1
        else:
            self.failed += 1
            self._progress.say(f"ongebd: {failure}")

    def show(self, at: float | None = None, more: str = "") -> None:
        """Show the finished videos, or `at` of them if some are in progress."""
        at = self.done + self.failed if at is None else at
        left = span(self._progress.seconds / at * (self._todo - at)) if at else "?"
        now = f"{int(at)}/{self._todo} videos  {more}about {left} left"
        self._progress.show(self._what, at, self._todo, now)

    @contextmanager
    def summed_up(self, text: Callable[[], str]) -> Iterator[None]:
        """Print a summary that begins with `text` at the end of the block, also if it stops early."""
        complete = False
        try:
            yield
            complete = True
        finally:
            parts = [text()]
            if self._there:
                parts.append(f"{self._there} were done already")
            if self.failed:
                parts.append(f"{self.failed} failed: see {self._log}")
            if not complete:
                parts.append("stopped early: run the same command again to continue")
            if complete or self.done or self.failed:
                self._progress.summary("; ".join(parts))


def counted(number: int, what: str) -> str:
    """A number with its noun.

    >>> counted(1, "boundary"), counted(2, "boundary"), counted(2, "video")
    ('1 boundary', '2 boundaries', '2 videos')
    """
    if number != 1:
        what = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number} {what}"


def span(seconds: float) -> str:
    """A stretch of time, for people.

    >>> span(7.31), span(95), span(7300)
    ('7.3 s', '1 min 35 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
