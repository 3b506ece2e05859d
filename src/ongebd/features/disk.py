"""Writes that survive a killed process and a full disk, and a lock that ends with its process."""

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
    """Lock a file, which is created if needed; None if another has the lock.

    Closing the file, or the end of the process, gives the lock back. (filelock would take 0.1 s to import.)
    """
    file = path.open("ab", buffering=0)
    try:
        _try_lock(file)
    except OSError:
        file.close()
        return None
    return file


def write_at(path: Path, offset: int, data: bytes | bytearray) -> None:
    """Write bytes to the disk at `offset`, in place of all that follows. On an error the file ends there."""
    with path.open("r+b" if path.exists() else "x+b", buffering=0) as file:
        file.truncate(offset)
        try:
            file.seek(offset)
            left = memoryview(data)
            while left:
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(offset)
            raise


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
