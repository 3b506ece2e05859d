"""The outcome of each video in a folder of results: one line of JSON each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from ongebd.common.writing import write_whole
from ongebd.errors import OngebdError, os_errors
from ongebd.features.records import write_at


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One video.

    Attributes:
        id: Its name in the results.
        source: Without credentials.
        status: `done` or `failed` by the last command that worked on it, `skipped` if that found it done.
        reason: Why it failed, in one line.
        attempts: Above 1 if a worker died while working on it.
        key: Digest of everything that its result depends on; None if the folder itself shows what is done.
        files: sha256 of each result file, by format.
        trace: Traceback of a bug in the program.
    """

    id: str
    source: str
    status: Literal["done", "failed", "skipped"]
    reason: str | None = None
    attempts: int = 1
    key: str | None = None
    files: dict[str, str] = field(default_factory=dict)
    trace: str | None = None

    @classmethod
    def of(cls, video: str, source: str, reason: str | None, attempts: int, trace: str | None) -> Entry:
        """Of a video that was worked on; it failed if there is a reason."""
        status: Literal["done", "failed"] = "done" if reason is None else "failed"
        return cls(id=video, source=source, status=status, reason=reason, attempts=attempts, trace=trace)

    def to_line(self) -> bytes:
        """A line of JSON without the fields that are not set."""
        known = {name: value for name, value in asdict(self).items() if value not in (None, {})}
        return json.dumps(known, ensure_ascii=True).encode() + b"\n"


class Manifest:
    """The file `manifest.jsonl` of a folder of results."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "manifest.jsonl"
        self._size = 0

    def read(self) -> dict[str, Entry]:
        """All entries by id; a line that a kill cut short is skipped."""
        found = {}
        for line in self.path.read_bytes().splitlines() if self.path.exists() else []:
            with suppress(ValueError, TypeError, RecursionError):
                entry = Entry(**json.loads(line))
                found[entry.id] = entry
        return found

    def begin(self, skipped: Iterable[Entry], todo: Iterable[str]) -> None:
        """Start a command: replace the entries of videos that it skips, and remove those of its own videos.

        Raises:
            OngebdError: The file can't be written.
        """
        entries = self.read() | {entry.id: entry for entry in skipped}
        for video_id in todo:
            entries.pop(video_id, None)
        lines = b"".join(entry.to_line() for entry in entries.values())
        with self._writing(), write_whole(self.path) as part:
            write_at(part, 0, lines)
        self._size = len(lines)

    def add(self, entry: Entry) -> None:
        """Add a video that is done or failed; its line is on the disk when this returns.

        Raises:
            OngebdError: The file can't be written; it is unchanged.
        """
        line = entry.to_line()
        with self._writing():
            write_at(self.path, self._size, line)
        self._size += len(line)

    def _writing(self) -> AbstractContextManager[None]:
        return os_errors(f"can't write {self.path}", error=OngebdError)
