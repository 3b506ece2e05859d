"""The index of a store: a line for each video, appended, and read to the last whole line."""

from __future__ import annotations

import os
from pathlib import Path

from ongebd.errors import StoreError
from ongebd.features.records import Record


class Index:
    """The records of a store, in the order in which they were added.

    A line that was not written whole (the process was killed, the disk was full) is passed over, and
    overwritten by the next one. A broken line that others follow is no accident of that kind, and is refused.

    Args:
        path: A file of JSON lines; read at once, if it is there.

    Raises:
        StoreError: A line is broken, or an id stands twice.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: tuple[int, int] | None = None
        self.records: dict[str, Record] = {}
        self.size = 0
        """Bytes of the whole lines."""
        self.refresh()

    def refresh(self) -> None:
        """Read the file again, if it changed."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return
        stamp = (status.st_size, status.st_mtime_ns)
        if stamp == self._read:
            return
        data = self._path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        records: dict[str, Record] = {}
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                record = Record.from_line(line)
            except ValueError:
                raise StoreError(
                    f"{self._path}, line {number}: damaged; restore the file from a copy, or delete the lines"
                    " from there on and extract those videos again"
                ) from None
            if record.id in records:
                raise StoreError(f"{self._path}, line {number}: {record.id!r} stands in it twice")
            records[record.id] = record
        self.records, self.size, self._read = records, len(whole), stamp

    def append(self, record: Record) -> None:
        """Add a line behind the last whole one, and bring it to the disk.

        Raises:
            OSError: It could not be written; the file is as it was.
        """
        line = record.to_line()
        write_at(self._path, self.size, line)
        self.size += len(line)
        self.records[record.id] = record
        self._read = None


def write_at(path: Path, offset: int, data: bytes | bytearray) -> None:
    """Write bytes so that the file ends with them, and bring them to the disk.

    What stood at `offset` or after is gone; on an error the file ends there.

    Raises:
        OSError: They could not be written.
    """
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
