"""Where finished work is kept, each piece under a key of all that it depends on."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from ongebd.errors import ConfigError

_FACTS = "facts.json"


class Shelf:
    """A folder of finished pieces of work. A piece has its name only when it is whole.

    Args:
        folder: Made with the first piece.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

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
        aside = place.with_name(f"{place.name}.new")
        try:
            for half in (aside, place):
                with suppress(FileNotFoundError):
                    shutil.rmtree(half)
            aside.mkdir(parents=True)
            began = time.monotonic()
            facts = {"key": dict(key), **(make(aside) or {})}
            facts["seconds"] = round(time.monotonic() - began, 3)
            (aside / _FACTS).write_text(
                json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
            )
            aside.rename(place)
        except OSError as problem:
            raise ConfigError(
                f"{aside}: cannot be written ({problem.strerror or problem}); name another --work"
            ) from None
        return place


def key_of(parts: Mapping[str, Any]) -> str:
    """A short name for plain values, whatever their order.

    >>> key_of({"a": 1, "b": [2]}) == key_of({"b": [2], "a": 1}) != key_of({"a": 1, "b": [3]})
    True
    """
    return sha256(json.dumps(parts, sort_keys=True, default=list).encode()).hexdigest()[:20]
