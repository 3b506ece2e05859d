"""A lock for each piece of work, held while it is made; the system takes it back when the maker dies."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ongebd.features.disk import lock_file

_LOOK_EVERY = 0.2  # seconds


@contextmanager
def held(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a lock for as long as the context lasts, after whoever has it now.

    Args:
        path: Its file, which is there only while somebody has the lock.
        waiting: Called once, where another has it.

    Raises:
        OSError: The file cannot be written.
    """
    file = take(path)
    if file is None:
        waiting()
        while (file := take(path)) is None:
            time.sleep(_LOOK_EVERY)
    try:
        yield
    finally:
        give_back(file, path)


def take(path: Path) -> BinaryIO | None:
    """Take a lock that is to be given back; None where another has it.

    Raises:
        OSError: The file cannot be written.
    """
    while (file := lock_file(path)) is not None:
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()  # whoever had it removed the file after we had opened it: that lock is nobody's any more
    return None


def give_back(file: BinaryIO, path: Path) -> None:
    """Give a lock back, and remove its file."""
    if sys.platform == "win32":
        file.close()
        with suppress(PermissionError):  # there an open file cannot be removed: another has it by now
            path.unlink(missing_ok=True)
    else:
        path.unlink(missing_ok=True)  # while it is ours, so that it is not another's that goes
        file.close()
