"""Finished work on disk, each entry under a key of all that it depends on.

WORK/KIND/KEY/           a finished entry; `facts.json` in it
WORK/KIND/KEY.new/       an entry in the making, or left by a killed run
WORK/locks/KIND-KEY      locked by the run that makes the entry; the system frees it when that run dies
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ongebd.errors import os_errors

_FACTS = "facts.json"


class Cache:
    """A folder of finished work. Any number of runs may share it: one makes an entry, the others wait.

    Args:
        folder: Made with the first entry.
        tell: Prints that this run waits for another.
    """

    def __init__(self, folder: Path, tell: Callable[[str], None] = lambda _: None) -> None:
        self.folder = folder
        self._tell = tell

    def path(self, kind: str, key: Mapping[str, Any]) -> Path:
        """The folder of an entry, which may not be there yet."""
        return self.folder / kind / key_of(key)

    def has(self, kind: str, key: Mapping[str, Any]) -> bool:
        """Whether an entry is there."""
        return (self.path(kind, key) / _FACTS).exists()

    def facts(self, entry: Path) -> dict[str, Any]:
        """The key of an entry that is there, and the facts that `make` returned."""
        facts: dict[str, Any] = json.loads((entry / _FACTS).read_text(encoding="utf-8"))
        return facts

    def get(
        self, kind: str, key: Mapping[str, Any], make: Callable[[Path], Mapping[str, Any] | None]
    ) -> Path:
        """The folder of an entry, which is made first if it isn't there.

        Args:
            kind: What sort of entry.
            key: All that it depends on; plain values.
            make: Fills an empty folder, and may return facts to keep.

        Raises:
            ConfigError: The folder can't be written.
        """
        entry = self.path(kind, key)
        if self.has(kind, key):
            return entry
        with self._locked(entry, wait=True):
            if not self.has(kind, key):
                self._make(entry, key, make)
        return entry

    def clear(self) -> int:
        """Remove what killed runs left half-made, but nothing that a living run is making.

        Returns:
            How many entries that were.

        Raises:
            ConfigError: The folder can't be written.
        """
        removed = 0
        for half in sorted(self.folder.glob(f"*/{'[0-9a-f]' * 20}.new")):
            with self._locked(half.with_suffix(""), wait=False) as ours:
                if ours and half.exists():
                    shutil.rmtree(half)
                    removed += 1
        return removed

    @contextmanager
    def _locked(self, entry: Path, *, wait: bool) -> Iterator[bool]:
        """Hold an entry's lock within the block, if another run doesn't."""
        path = self.folder / "locks" / f"{entry.parent.name}-{entry.name}"
        with os_errors(self.folder, "choose another --work"):
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(path)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                if not wait:
                    yield False
                    return
                self._tell(f"waiting for another run that makes the same ({entry})")
                lock.acquire()
            try:
                yield True
            finally:
                lock.release()

    def _make(self, entry: Path, key: Mapping[str, Any], make: Callable[[Path], Any]) -> None:
        aside = entry.with_name(f"{entry.name}.new")
        for half in (aside, entry):
            if half.exists():
                shutil.rmtree(half)
        aside.mkdir(parents=True)
        facts = {"key": dict(key), **(make(aside) or {})}
        text = json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
        (aside / _FACTS).write_text(text, encoding="utf-8")
        aside.rename(entry)


def key_of(parts: Mapping[str, Any]) -> str:
    """A short name for plain values, independent of their order.

    >>> key_of({"a": 1, "b": [2]}) == key_of({"b": [2], "a": 1}) != key_of({"a": 1, "b": [3]})
    True
    """
    return sha256(json.dumps(parts, sort_keys=True, default=list).encode()).hexdigest()[:20]
