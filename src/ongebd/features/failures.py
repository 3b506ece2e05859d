"""The videos of a store that couldn't be extracted, and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from ongebd.common.text import public_name
from ongebd.common.writing import write_whole
from ongebd.errors import StoreError, os_errors
from ongebd.features.disk import write_at


@dataclass(frozen=True, slots=True)
class Failure:
    """One video that couldn't be extracted, its source without credentials, and why, in one line."""

    id: str
    source: str
    reason: str

    @classmethod
    def of(cls, video_id: str, source: str, problem: object) -> Self:
        """The failure of a video, with the problem as one line without credentials."""
        return cls(video_id, public_name(source), public_name(" ".join(str(problem).split())))


class Failures:
    """The file `failures.jsonl` of a store: a line for each video that failed and hasn't been done since."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "failures.jsonl"

    def read(self) -> list[Failure]:
        """All failures in the file; a line that wasn't written whole is ignored."""
        if not self._path.exists():
            return []
        found = []
        for line in self._path.read_bytes().split(b"\n")[:-1]:  # the last one has no end
            with suppress(ValueError, TypeError, RecursionError):
                found.append(Failure(**json.loads(line)))
        return found

    def keep(self, wanted: Callable[[Failure], bool]) -> None:
        """Forget all other failures."""
        before = self.read()
        left = [failure for failure in before if wanted(failure)]
        if len(left) < len(before):
            with os_errors(self._path, error=StoreError), write_whole(self._path) as part:
                write_at(part, 0, b"".join(map(_line, left)))

    def add(self, failure: Failure) -> None:
        """Write one more after the last whole line, over what a killed process left of another."""
        with os_errors(self._path, error=StoreError):
            lines = self._path.read_bytes() if self._path.exists() else b""
            write_at(self._path, lines.rfind(b"\n") + 1, _line(failure))


def _line(failure: Failure) -> bytes:
    return json.dumps(asdict(failure), ensure_ascii=True).encode() + b"\n"
