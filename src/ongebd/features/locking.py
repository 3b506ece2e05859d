"""A lock that one process holds on a file, and that the system takes back when the process dies."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO

if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: BinaryIO) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _try_lock(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_file(path: Path) -> BinaryIO | None:
    """Take the lock on a file, made if it is not there.

    Returns:
        The open file, whose closing gives the lock back; None where another holds it.

    Raises:
        OSError: The file cannot be opened for writing.
    """
    file = path.open("ab", buffering=0)
    try:
        _try_lock(file)
    except OSError:
        file.close()
        return None
    return file


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, on systems where that is a thing to do."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
