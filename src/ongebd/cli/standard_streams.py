"""Standard output and error that may be closed, full or gone: no result is lost silently."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys


class ClosedOutput(io.TextIOBase):
    """Replaces a closed standard output (`>&-`): writing to it fails."""

    name = "<stdout>"
    encoding = "utf-8"

    def write(self, _text: str) -> int:
        raise OSError(errno.EBADF, "it is closed")


def fill_closed_streams() -> None:
    """Reopen closed standard streams; otherwise the next file would become standard output."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    if sys.stdout is None:
        sys.stdout = ClosedOutput()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - for as long as we live


def leave_output() -> None:
    """Discard standard output, which is gone, so that the interpreter can exit without an error."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if isinstance(sys.stdout, ClosedOutput):
        return
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()


def say(line: str) -> None:
    """Print one line to standard error, if it still exists."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{line}\n")  # in one piece, so that threads do not mix their lines
        sys.stderr.flush()
