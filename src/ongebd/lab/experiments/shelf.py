"""Where finished work is kept, each piece under a key of all that it depends on.

WORK/KIND/KEY/          a piece, whole; `facts.json` in it
WORK/KIND/KEY.new/      one that is being made, or that a run left which was killed
WORK/KIND/KEY.lock      held by the run that is making it
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from ongebd.errors import ConfigError
from ongebd.lab.experiments.piece_lock import give_back, held, take

_FACTS = "facts.json"
_UNDER_WAY = re.compile(r"([0-9a-f]{20})\.(new|lock)")


class Shelf:
    """A folder of finished pieces of work. A piece has its name only when it is whole.

    Any number of runs may share it: each piece is made by one of them, and the others wait for it.

    Args:
        folder: Made with the first piece.
        tell: Told where another run is waited for.
    """

    def __init__(self, folder: Path, tell: Callable[[str], None] = lambda _: None) -> None:
        self.folder = folder
        self._tell = tell

    def place(self, kind: str, key: Mapping[str, Any]) -> Path:
        """Where a piece is kept."""
        return self.folder / kind / key_of(key)

    def has(self, kind: str, key: Mapping[str, Any]) -> bool:
        """Whether it is there."""
        return (self.place(kind, key) / _FACTS).exists()

    def facts(self, kind: str, key: Mapping[str, Any]) -> dict[str, Any]:
        """What is known of a piece that is there."""
        read: dict[str, Any] = json.loads((self.place(kind, key) / _FACTS).read_text(encoding="utf-8"))
        return read

    def every(self, kind: str) -> list[dict[str, Any]]:
        """The facts of all pieces of a kind."""
        return [
            json.loads(path.read_text(encoding="utf-8"))
            for path in sorted((self.folder / kind).glob(f"*/{_FACTS}"))
        ]

    def kept(
        self, kind: str, key: Mapping[str, Any], make: Callable[[Path], Mapping[str, Any] | None]
    ) -> Path:
        """The folder of a piece, which is made if it is not there.

        Args:
            kind: What sort of piece.
            key: All that it depends on; plain values.
            make: Fills an empty folder; what it returns is kept as facts beside key and seconds.

        Raises:
            ConfigError: The folder cannot be written.
        """
        place = self.place(kind, key)
        if (place / _FACTS).exists():
            return place
        aside, lock = _aside(place), _lock(place)

        def waiting() -> None:
            self._tell(f"another run is making this, and is waited for ({lock})")

        with _writing(aside):
            place.parent.mkdir(parents=True, exist_ok=True)
            with held(lock, waiting):
                if not (place / _FACTS).exists():  # (it is there where another run was waited for)
                    _make(place, key, make)
        return place

    def clear(self) -> int:
        """Remove what killed runs left half-made; what a living one is making stays.

        Returns:
            How many pieces that were.

        Raises:
            ConfigError: The folder cannot be written.
        """
        left = {
            path.with_name(match[1])
            for path in self.folder.glob("*/*")
            if (match := _UNDER_WAY.fullmatch(path.name))
        }
        removed = 0
        for place in sorted(left):
            with _writing(_aside(place)):
                lock = take(_lock(place))
                if lock is None:
                    continue
                try:
                    removed += _aside(place).exists()
                    _remove(_aside(place))
                finally:
                    give_back(lock, _lock(place))
        return removed


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise ConfigError(
            f"{path}: cannot be written ({problem.strerror or problem}); name another --work"
        ) from None


def _make(place: Path, key: Mapping[str, Any], make: Callable[[Path], Mapping[str, Any] | None]) -> None:
    """Make a piece aside, and give it its name when it is whole."""
    aside = _aside(place)
    for half in (aside, place):
        _remove(half)
    aside.mkdir()
    began = time.monotonic()
    facts = {"key": dict(key), **(make(aside) or {})}
    facts["seconds"] = round(time.monotonic() - began, 3)
    (aside / _FACTS).write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    aside.rename(place)


def _remove(folder: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def _aside(place: Path) -> Path:
    return place.with_name(f"{place.name}.new")


def _lock(place: Path) -> Path:
    return place.with_name(f"{place.name}.lock")


def key_of(parts: Mapping[str, Any]) -> str:
    """A short name for plain values, whatever their order.

    >>> key_of({"a": 1, "b": [2]}) == key_of({"b": [2], "a": 1}) != key_of({"a": 1, "b": [3]})
    True
    """
    return sha256(json.dumps(parts, sort_keys=True, default=list).encode()).hexdigest()[:20]
