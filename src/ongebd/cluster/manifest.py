"""What became of each video of a folder: one line of JSON for each, and never two."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, Self

from ongebd.errors import OngebdError
from ongebd.features.disk import write_at

NAME = "manifest.jsonl"


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One video.

    Attributes:
        id: Its name in the results.
        source: Where it is, without credentials.
        status: `done` and `failed` by the last command that had it to do; `skipped` where that found it done.
        reason: Why it failed, in one line.
        attempts: How often it was begun; above 1 where a worker died over it.
        key: Stands for all that its result depends on; None where the folder itself tells what is done.
        files: sha256 of each result file, by format.
        trace: Where the program is at fault: the traceback.
    """

    id: str
    source: str
    status: Literal["done", "failed", "skipped"]
    reason: str | None = None
    attempts: int = 1
    key: str | None = None
    files: dict[str, str] = field(default_factory=dict)
    trace: str | None = None

    def to_line(self) -> bytes:
        """One line of JSON, its end included; what is not known is left out."""
        told = {name: value for name, value in asdict(self).items() if value not in (None, {})}
        return json.dumps(told, ensure_ascii=True).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """Read what `to_line` wrote.

        Raises:
            ValueError: It is no such line.
            TypeError: Likewise.
        """
        return cls(**json.loads(line))


class Manifest:
    """The file `manifest.jsonl` of a folder of results.

    Args:
        folder: The folder.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._size = 0

    def read(self) -> dict[str, Entry]:
        """All that stand in the file, by id; a line that was not written whole is passed over."""
        if not self.path.exists():
            return {}
        found = {}
        for line in self.path.read_bytes().splitlines():
            with suppress(ValueError, TypeError):
                entry = Entry.from_line(line)
                found[entry.id] = entry
        return found

    def begin(self, skipped: Iterable[Entry], todo: Iterable[str]) -> None:
        """A command begins: those it skips, and the ids of those it will do, which lose their lines.

        Videos of which it knows nothing keep theirs.

        Raises:
            OngebdError: The file cannot be written.
        """
        before = self.read()
        for video_id in todo:
            before.pop(video_id, None)
        lines = b"".join(
            entry.to_line() for entry in (before | {entry.id: entry for entry in skipped}).values()
        )
        fresh = self.path.with_suffix(".new")
        with self._told():
            write_at(fresh, 0, lines)
            fresh.replace(self.path)
        self._size = len(lines)

    def add(self, entry: Entry) -> None:
        """One more video is done, or failed; when this returns, its line is on the disk.

        Raises:
            OngebdError: The file cannot be written; it is as it was.
        """
        line = entry.to_line()
        with self._told():
            write_at(self.path, self._size, line)
        self._size += len(line)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            raise OngebdError(f"{self.path}: could not be written: {problem.strerror}") from None
