"""Keeps incidents with their pictures in an SQLite file, for the page and for later runs."""

from __future__ import annotations

import secrets
import sqlite3
import tempfile
import threading
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from itertools import islice
from math import inf
from operator import itemgetter
from pathlib import Path
from typing import Any

from ongebd.common.text import printable
from ongebd.errors import ConfigError, OngebdError, os_errors
from ongebd.watch.history import Best
from ongebd.watch.records import Clip, Incident
from ongebd.watch.sink import Complain, HubSink
from ongebd.watch.watcher import Watcher

Row = dict[str, Any]
FILE = "incidents.sqlite"
_OURS = 0x6F676264
"""Marks our files (SQLite's `application_id`)."""
_TOLD = ("stream", "wall", "wall_end", "peak", "count", "kind", "held")
_FIELDS = ("id", "name", "ended", "clip", *_TOLD)
_ALL = (*_FIELDS, "best", "onset")
_TABLE = f"""
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA application_id = {_OURS};
CREATE TABLE IF NOT EXISTS incidents ({", ".join(_ALL)}, PRIMARY KEY (id));
CREATE INDEX IF NOT EXISTS by_time ON incidents (wall);
"""
_READ = f"""
SELECT {", ".join(_FIELDS)}, best IS NOT NULL AS picture FROM incidents
WHERE (:stream = '' OR stream = :stream) AND wall >= :since AND wall < :before
AND NOT (:alerts AND held IS NOT NULL) ORDER BY wall DESC
"""
_WRITE = f"""
INSERT INTO incidents VALUES ({", ".join(f":{name}" for name in _ALL)})
ON CONFLICT (id) DO UPDATE SET held = :held,
{", ".join(f"{name} = coalesce(:{name}, {name})" for name in _ALL if name != "held")}
"""
_OLDEST = "DELETE FROM incidents WHERE id IN (SELECT id FROM incidents ORDER BY wall LIMIT 20)"
_RECENT = 1000
_DAY = 86_400.0


class KeptIncidents(HubSink):
    """All incidents: the newest in memory, and all of them in a file, if there is a folder for it.

    A row is a dict with `id` (unique in all runs), `stream`, `name`, `wall`, `wall_end`, `ended`, `peak`,
    `count`, `kind`, `held`, `clip` (a path or None), `picture` (whether there is one), and `strength`: 2 for
    the strongest tenth of the stream's newest incidents, 1 for the rest of their stronger half, else 0.

    Args:
        folder: Where the file is or will be; None: only memory.
        days: Older incidents are deleted.
        most_bytes: The oldest incidents are deleted before the file gets larger.

    Attributes:
        run: Names this run.

    Raises:
        ConfigError: The folder's file is not ours.
        OngebdError: The folder can't be used.
    """

    def __init__(
        self,
        watcher: Watcher,
        complain: Complain,
        folder: Path | None = None,
        days: float = 30,
        most_bytes: int = 2 << 30,
    ) -> None:
        self.run = secrets.token_hex(4)
        self._path = None if folder is None else folder / FILE
        self._streams, self._clock, self._days, self._most = watcher.streams, watcher.clock, days, most_bytes
        self._noting = threading.Lock()
        # By id: the newest rows, those that the page doesn't have, those that the file doesn't have.
        self._recent, self._untold, self._unwritten = dict[str, Row](), dict[str, Row](), dict[str, Row]()
        self._peaks: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=500))
        if self._path is not None:
            self._begin(self._path)
        super().__init__("keep", watcher.hub, (Incident, Clip), complain, limit=4096)

    def offer(self, record: Any) -> None:
        """Note a record in memory at once, whatever the disk does."""
        if isinstance(record, Incident | Clip):
            with self._noting:
                row = self._row(record) if isinstance(record, Incident) else self._filmed(record)
                for rows in (self._recent, self._untold, self._unwritten):
                    if row is None:
                        break
                    rows.pop(row["id"], None)
                    rows[row["id"]] = row
                    if len(rows) > _RECENT:
                        del rows[next(iter(rows))]
        if self._path is not None:
            super().offer(record)

    def handle(self, record: Incident | Clip) -> None:
        """Write all that isn't written yet."""
        with self._noting:
            rows = dict(self._unwritten)
        if self._path is None or not rows:  # (without a folder, no record comes)
            return
        with self._using(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with _database(self._path) as database:
                database.executescript(_TABLE)
                for row in rows.values():
                    pictures = {"best": self._seen(row, "best"), "onset": self._seen(row, "onset")}
                    database.execute(_WRITE, row | pictures)
                self._forget(database)
        with self._noting:
            for key, row in rows.items():
                if self._unwritten.get(key) is row:
                    del self._unwritten[key]

    def news(self) -> list[Row]:
        """What has changed since the last call."""
        with self._noting:
            rows, self._untold = list(self._untold.values()), {}
        return [self._whole(row) for row in rows]

    def rows(
        self,
        stream: str = "",
        since: float = 0.0,
        before: float = inf,
        strength: int = 0,
        alerts: bool = False,
        most: int = 24,
    ) -> list[Row]:
        """The newest incidents of a stream (empty: of all) and a time, as strong as this, or only its alerts.

        Those of the file are left out while it can't be read.
        """
        with self._noting:
            recent = dict(self._recent)
        found = [
            row
            for row in map(self._whole, recent.values())
            if stream in ("", row["stream"]) and since <= row["wall"] < before and row["strength"] >= strength
            if not (alerts and row["held"])
        ]
        if self._path is not None:
            asked = {"stream": stream, "since": since, "before": before, "alerts": alerts}
            with suppress(OSError), _database(self._path, "ro") as database:
                kept = (self._whole(dict(row) | {"ended": 1}) for row in database.execute(_READ, asked))
                fits = (one for one in kept if one["id"] not in recent and one["strength"] >= strength)
                found += islice(fits, most)
        return sorted(found, key=itemgetter("wall"), reverse=True)[:most]

    def picture(self, key: str, which: str) -> bytes | None:
        """The `best` picture of an incident, or that of its `onset`."""
        row = self._recent.get(key)
        seen = None if row is None else self._seen(row, which)
        return seen or self._cell(key, "best" if which == "best" else "onset")

    def clip(self, key: str) -> Path | None:
        """The file of an incident's clip, if it has one; it may have been deleted since."""
        row = self._recent.get(key)
        path = self._cell(key, "clip") if row is None else row["clip"]
        return None if path is None else Path(path)

    def _row(self, record: Incident) -> Row:
        key = f"{self.run}-{record.stream}-{record.number}"
        told = {name: getattr(record, name) for name in _TOLD}
        stream, ended = self._streams[record.stream], record.state == "ended"
        if ended:
            self._peaks[record.stream].append(record.peak)
        clip = stream.history.clip(record.first)
        mine = {"number": record.number, "first": record.first, "picture": record.has_picture, "ended": ended}
        return {**told, **mine, "id": key, "name": stream.name, "clip": clip and str(clip)}

    def _filmed(self, record: Clip) -> Row | None:
        """The row of the incident that begins with a clip's boundary, if one does."""
        boundary, path = (record.stream, record.number), str(record.path)
        begins = (one for one in self._recent.values() if (one["stream"], one["first"]) == boundary)
        return next((one | {"clip": path} for one in begins), None)

    def _whole(self, row: Row) -> Row:
        """A row with its strength."""
        peaks = list(self._peaks[row["stream"]])
        below = sum(peak < row["peak"] for peak in peaks) / len(peaks) if len(peaks) >= 10 else 0.5
        return row | {"strength": (below >= 0.5) + (below >= 0.9)}

    def _seen(self, row: Row, which: str) -> bytes | None:
        """A picture of an incident of this run, while the history has it."""
        history = self._streams[row["stream"]].history
        return history.picture(Best(row["number"]) if which == "best" else row["first"])

    def _cell(self, key: str, column: str) -> Any:
        if self._path is not None:
            with suppress(OSError), _database(self._path, "ro") as database:
                for (value,) in database.execute(f"SELECT {column} FROM incidents WHERE id = ?", [key]):
                    return value
        return None

    def _begin(self, path: Path) -> None:
        """Look at the file of earlier runs, if there is one."""
        with self._using(path, "name another folder"):
            path.parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=path.parent).close()  # refuses a folder that can't be written
            with _database(path) if path.exists() else nullcontext() as database:
                if database is None:
                    return
                if database.execute("PRAGMA application_id").fetchone()[0] != _OURS:
                    raise ConfigError(f"--keep: {printable(str(path))} isn't ongebd's; name another folder")
                for stream, peak in database.execute("SELECT stream, peak FROM incidents ORDER BY wall"):
                    self._peaks[stream].append(peak)

    def _forget(self, database: sqlite3.Connection) -> None:
        """Delete what is too old or too much."""
        database.execute("DELETE FROM incidents WHERE wall < ?", [self._clock.wall() - self._days * _DAY])
        while _size(database) > self._most and database.execute(_OLDEST).rowcount:
            pass
        database.commit()
        database.executescript("PRAGMA incremental_vacuum")  # (`execute` would free one page)

    def _using(self, path: Path, advice: str = "") -> Any:
        return os_errors(f"can't keep incidents in {printable(str(path.parent))}", advice, OngebdError)


@contextmanager
def _database(path: Path, mode: str = "rwc") -> Iterator[sqlite3.Connection]:
    """The file, opened for one use: it may be gone and come back in between.

    Raises:
        OSError: It can't be read or written.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True)) as database:
            database.row_factory = sqlite3.Row
            yield database
    except sqlite3.Error as problem:
        raise OSError(str(problem)) from problem


def _size(database: sqlite3.Connection) -> int:
    """Bytes in use."""
    counts = ("page_count", "freelist_count", "page_size")
    pages, free, size = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in counts)
    return int((pages - free) * size)
