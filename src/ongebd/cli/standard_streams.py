"""Standard output and error that may be closed, full or gone: nothing is lost without a word."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys


class ClosedOutput(io.TextIOBase):
    """Stands where standard output was closed (`>&-`): whoever writes to it hears of it."""

    name = "<stdout>"
    encoding = "utf-8"

    def write(self, _text: str) -> int:
        """Refuse."""
        raise OSError(errno.EBADF, "it is closed")


def fill_closed_streams() -> None:
    """Open what the caller closed of the three standard streams.

    Otherwise the next file opened would be standard output, and what libraries print would land in it.
    """
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
    """Turn standard output to nowhere: it is gone, and the interpreter must not trip over it at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if isinstance(sys.stdout, ClosedOutput):
        return
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()


def say(line: str) -> None:
    """Print one line to standard error. If even that is gone, there is nobody to tell."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{line}\n")  # at once, so that no other thread's line comes between
        sys.stderr.flush()
