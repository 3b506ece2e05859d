"""What a command shows on stderr (progress and lines), and standard streams that may be closed or gone."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ongebd.common.text import printable, public_name

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

_EVERY = 10.0  # seconds between two lines without a terminal


class ClosedOutput(io.TextIOBase):
    """Replaces a closed standard output (`>&-`): writing to it fails."""

    name = "<stdout>"
    encoding = "utf-8"

    def write(self, _text: str) -> int:
        raise OSError(errno.EBADF, "it is closed")


def fill_closed_streams() -> None:
    """Reopen closed standard streams; otherwise the next file would become standard output.

    What a stream's encoding lacks is escaped from now on.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    if sys.stdout is None:
        sys.stdout = ClosedOutput()
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - for as long as we live


def leave_output() -> None:
    """Discard standard output, which is gone, so that the interpreter can exit without an error."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if not isinstance(sys.stdout, ClosedOutput):
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()


def say(line: str) -> None:
    """Print one line to standard error, if it still exists, without secrets and terminal controls."""
    with contextlib.suppress(OSError, ValueError):
        # In one piece, so that threads do not mix their lines.
        sys.stderr.write(f"{printable(public_name(line))}\n")
        sys.stderr.flush()


class Progress:
    """A bar on a terminal, from the first `show` to the end of the context. Never writes to stdout.

    Args:
        quiet: No bar and no lines of progress.
        lines: Without a terminal, print what the bar would show every ten seconds.
    """

    def __init__(self, *, quiet: bool = False, lines: bool = False) -> None:
        self.quiet = quiet
        self._lines = lines and not quiet
        self._bar = _bar() if sys.stderr.isatty() and not quiet else None
        self._task: TaskID | None = None
        self._started = self._last_line = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    @property
    def seconds(self) -> float:
        """Time since the start or the last `restart`; above 0."""
        return max(time.monotonic() - self._started, 1e-9)

    def restart(self) -> None:
        """Start the clock again, and remove the bar until the next `show`."""
        self._started = time.monotonic()
        if self._bar is not None and self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None

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
                self._bar.start()
                self._task = self._bar.add_task("", total=total, now="")
            what, now = printable(what), printable(now)
            self._bar.update(self._task, description=what, completed=done, total=total, now=now)
        elif self._lines and time.monotonic() - self._last_line >= _EVERY:
            self._last_line = time.monotonic()
            self.say(now)

    def say(self, line: str) -> None:
        """Print one line as `say` does, above the bar if there is one."""
        if self._bar is not None:
            self._bar.console.print(printable(public_name(line)), markup=False, soft_wrap=True)
        else:
            say(line)

    def summary(self, line: str) -> None:
        """Print one line unless quiet."""
        if not self.quiet:
            self.say(line)


def _bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    return Bar(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[now]}", markup=False),
        TimeRemainingColumn(),
        console=Console(stderr=True, highlight=False),
        transient=True,
        redirect_stdout=sys.stdout.isatty(),  # rich must not draw results into its bar
    )


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

    @contextlib.contextmanager
    def summed_up(self, text: Callable[[], str]) -> Iterator[None]:
        """Print a summary that begins with `text` at the end of the block, also if it stops early."""
        stopped = "; stopped early: run the same command again to continue"
        try:
            yield
            stopped = ""
        finally:
            before = f"; {self._there} were already done" if self._there else ""
            failed = f"; {self.failed} failed: see {self._log}" if self.failed else ""
            if not stopped or self.done or self.failed:
                self._progress.summary(f"{text()}{before}{failed}{stopped}")


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
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
