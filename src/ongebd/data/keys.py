"""Keys that a reader does not know: a misspelt one is refused, any other is counted and named."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable

from ongebd.errors import LabelError


class UnreadKeys:
    """Keeps account of keys (or columns) that are not read.

    >>> unread = UnreadKeys({"times", "onsets"})
    >>> unread.see(["times", "note"], "p.json")
    >>> unread.notes()
    ["1 video with a key that is not read: 'note'"]
    >>> unread.see(["times", "onset"], "p.json")
    Traceback (most recent call last):
    ongebd.errors.LabelError: p.json: the key 'onset' is not known; is 'onsets' meant? rename or remove it

    Args:
        known: The keys that are read.
        of: What has keys, for the note.
        called: What a key is called.
    """

    def __init__(self, known: set[str], *, of: str = "video", called: str = "key") -> None:
        self._known = known
        self._of = of
        self._called = called
        self._seen: Counter[str] = Counter()
        self._near: dict[str, str | None] = {}

    def see(self, keys: Iterable[object], where: str | None = None) -> None:
        """Count the keys that are not known.

        Args:
            keys: All keys of one entry.
            where: The file and the entry; None where a misspelt key may be counted too.

        Raises:
            LabelError: One is spelt almost as a known one, which is not there.
        """
        there = [str(key) for key in keys]
        for name in there:
            if name not in self._known:
                self._seen[name] += 1
                meant = self._meant(name) if where is not None else None
                if meant is not None and meant not in there:
                    raise LabelError(
                        f"{where}: the {self._called} {name[:60]!r} is not known; is {meant!r} meant? "
                        "rename or remove it"
                    )

    def notes(self) -> list[str]:
        """One line for each key that is not read, at most ten."""
        lines = [
            f"{count} {self._of}{'s' * (count > 1)} with a {self._called} that is not read: {name[:60]!r}"
            for name, count in self._seen.most_common(10)
        ]
        if len(self._seen) > 10:
            lines.append(f"{len(self._seen) - 10} more {self._called}s that are not read")
        return lines

    def _meant(self, name: str) -> str | None:
        """The known key that is spelt almost so; short ones have too many neighbours."""
        if name not in self._near:
            long = sorted(known for known in self._known if len(known) > 3)
            near = difflib.get_close_matches(name.strip().casefold()[:60], long, n=1, cutoff=0.8)
            self._near[name] = near[0] if near else None
        return self._near[name]
