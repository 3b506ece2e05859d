"""A bar on a terminal, plain lines elsewhere; always on stderr. What the commands' progress is made of."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress, ProgressColumn, TaskID

from ongebd.cli.standard_streams import say
from ongebd.common.text import public_name


class StderrBar:
    """Holds rich's bar where stderr is a terminal, and none elsewhere. A context manager.

    Args:
        columns: What the bar shows.
        quiet: No bar, even on a terminal.
        redirect_stdout: Whether rich puts what is printed to stdout above the bar.
    """

    def __init__(self, *columns: ProgressColumn, quiet: bool, redirect_stdout: bool = True) -> None:
        self._quiet = quiet
        self._console = Console(stderr=True, highlight=False)
        self._bar: Progress | None = None
        self._task = TaskID(0)
        if self._console.is_terminal and not quiet:
            self._bar = Progress(
                *columns, console=self._console, transient=True, redirect_stdout=redirect_stdout
            )

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, line: str) -> None:
        """Print one line, above the bar if there is one; never with a secret of a URL in it."""
        line = public_name(line)
        if self._bar is not None:
            self._console.print(line, markup=False, soft_wrap=True)
        else:
            say(line)
