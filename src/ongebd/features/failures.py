"""The videos of a store that could not be extracted, and why."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from ongebd.common.text import public_name
from ongebd.errors import StoreError
from ongebd.features.index import write_at


@dataclass(frozen=True, slots=True)
class Failure:
    """One video that could not be extracted.

    Attributes:
        id: The video's.
        source: Where it is, without credentials.
        reason: One line for people.
    """

    id: str
    source: str
    reason: str

    @classmethod
    def of(cls, video_id: str, source: str, problem: object) -> Self:
        """The failure of a video, with what went wrong as one line without credentials."""
        return cls(video_id, public_name(source), public_name(" ".join(str(problem).split())))


class Failures:
    """The file `failures.jsonl` of a store: a line for each video that failed and was not mended since."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "failures.jsonl"

    def read(self) -> list[Failure]:
        """All that stand in the file; a line that was not written whole is passed over."""
        if not self._path.exists():
            return []
        found = []
        for line in self._path.read_bytes().split(b"\n")[:-1]:  # the last one has no end
            with suppress(ValueError, TypeError, RecursionError):
                found.append(Failure(**json.loads(line)))
        return found

    def keep(self, wanted: Callable[[Failure], bool]) -> None:
        """Forget all but the wanted ones.

        Raises:
            StoreError: The file cannot be written.
        """
        before = self.read()
        left = [failure for failure in before if wanted(failure)]
        if len(left) == len(before):
            return
        fresh = self._path.with_suffix(".new")
        with _told(self._path):
            write_at(fresh, 0, b"".join(_line(failure) for failure in left))
            fresh.replace(self._path)

    def add(self, failure: Failure) -> None:
        """Write one more, behind the last whole line: what a killed process left of another is overwritten.

        Raises:
            StoreError: The file cannot be written.
        """
        with _told(self._path):
            there = self._path.read_bytes() if self._path.exists() else b""
            write_at(self._path, there.rfind(b"\n") + 1, _line(failure))


def _line(failure: Failure) -> bytes:
    return json.dumps(asdict(failure), ensure_ascii=True).encode() + b"\n"


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise StoreError(f"{path}: could not be written: {problem.strerror}") from None
