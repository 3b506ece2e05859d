"""JSON lines of what a watcher sees, in a file that is exchanged before it grows too large or too old."""

from __future__ import annotations

import contextlib
import errno
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ongebd.common.text import printable
from ongebd.errors import ConfigError, OngebdError, a_number
from ongebd.output.jsonl import header_record
from ongebd.output.writer import RunHeader, TextFile, rounded
from ongebd.watch.hub import Hub
from ongebd.watch.records import (
    Clip,
    Dropped,
    Filmed,
    Footage,
    Found,
    Onset,
    Point,
    Record,
    Retuned,
    StateChanged,
)
from ongebd.watch.sinks.base import Complain, HubSink

KINDS: tuple[type[Record], ...] = (Onset, Found, StateChanged, Dropped, Retuned, Clip)


@dataclass(frozen=True, slots=True)
class Rotation:
    """When a file is exchanged for a new one, and how many old ones are kept.

    Raises:
        ConfigError: A number is out of its range.
    """

    most_bytes: int = 64 * 1024 * 1024
    seconds: float = 86_400.0
    files: int = 30

    def __post_init__(self) -> None:
        if self.most_bytes < 1024 or not a_number("seconds", self.seconds) > 0 or self.files < 0:
            raise ConfigError("a file of records has at least 1024 bytes, some time, and 0 or more before it")


class RecordSink(HubSink):
    """Writes each boundary and change of state as a line of JSON, with the schema of `ongebd detect`.

    Each file begins with a header and ends with an end record, so that it can be read by itself
    (`ongebd.output.read_jsonl`). The newest has the name that was given; an older one the time at which it
    was put aside as well: `seen.jsonl`, `seen-20261128T080000.123Z.jsonl`.

    Args:
        path: Of the newest file. A file that is there already is put aside, not overwritten.
        hub: Where records come from.
        names: Of each stream's key its name.
        header: The model and its settings.
        complain: Who hears of trouble.
        frames: How many were decided so far, of all streams.
        wall: Unix seconds.
        rotation: When files are exchanged.
        points: Whether each decided frame has a line too.

    Raises:
        ConfigError: There is something else than a file (`check_recordable`).
        OngebdError: The file cannot be written.
    """

    def __init__(
        self,
        path: Path,
        hub: Hub,
        names: Mapping[str, str],
        header: RunHeader,
        complain: Complain,
        frames: Callable[[], int],
        *,
        wall: Callable[[], float],
        rotation: Rotation | None = None,
        points: bool = False,
    ) -> None:
        super().__init__("jsonl", hub, (*KINDS, Point) if points else KINDS, complain, limit=16_384)
        self._path, self._names, self._header, self._wall = path, dict(names), header, wall
        self._rotation = rotation or Rotation()
        self._frames = frames
        self._epochs: dict[str, int] = {}
        self._over = dict.fromkeys(names, False)
        self._out: TextFile | None = None
        self._size = self._boundaries = self._frames_before = 0
        self._began = 0.0
        self._open()

    def handle(self, record: Record) -> None:
        """Write a record, in a new file if the old one is full or too old."""
        old = self._wall() - self._began >= self._rotation.seconds
        if self._out is not None and (old or self._size >= self._rotation.most_bytes):
            self._finish_file(complete=False)
        if self._out is None:
            self._open()
        self._write(*self._lines(record))
        self._boundaries += isinstance(record, Found)

    def close(self) -> None:
        """Write the end record."""
        try:
            self._finish_file(complete=all(self._over.values()))
        except OngebdError as problem:
            self.failed += 1
            self._complain(f"{self.name}: {problem}")

    def _lines(self, record: Record) -> list[dict[str, Any]]:
        line = record_line(record)
        if not isinstance(record, StateChanged):
            return [line]
        self._over[record.stream] = record.state == "ended" and record.reason != "stopped"
        known = self._epochs.get(record.stream, 0)
        if record.state != "live" or record.epoch <= known:
            return [line]
        self._epochs[record.stream] = record.epoch
        broke = record.reason or "the source was connected anew"
        epoch = {
            "type": "epoch",
            "stream": record.stream,
            "epoch": record.epoch,
            "time": 0.0,
            "reason": broke,
            "wall": rounded(record.wall),
        }
        return [line, epoch]

    def _open(self) -> None:
        """Begin a file; one without its first lines is none, so that the next record begins it again."""
        self._put_aside()
        with _recording(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._out = TextFile(self._path)
        self._size = self._boundaries = 0
        self._began, self._frames_before = self._wall(), self._frames()
        streams = {"type": "streams", "streams": self._names, "wall": rounded(self._began)}
        try:
            self._write(header_record(self._header), streams)
        except OngebdError:
            out, self._out = self._out, None
            with contextlib.suppress(OSError, OngebdError):  # that it cannot be written is told already
                out.close()
                self._path.unlink()
            raise

    def _finish_file(self, *, complete: bool) -> None:
        if self._out is None:
            return
        end = {
            "type": "end",
            "complete": complete,
            "duration": rounded(self._wall() - self._began),
            "frames": self._frames() - self._frames_before,
            "boundaries": self._boundaries,
            "warnings": [],
        }
        try:
            self._write(end)
        finally:
            out, self._out = self._out, None
            with _recording(self._path):
                out.close()

    def _put_aside(self) -> None:
        check_recordable(self._path)
        with _recording(self._path):
            if not self._path.exists() or self._path.stat().st_size == 0:
                return
            when = datetime.fromtimestamp(self._wall(), UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
            stem, ending = self._path.stem, self._path.suffix
            aside, number = self._path.with_name(f"{stem}-{when}Z{ending}"), 1
            while aside.exists():
                number += 1
                aside = self._path.with_name(f"{stem}-{when}Z.{number:03d}{ending}")
            self._path.replace(aside)
            name = re.compile(rf"{re.escape(stem)}-\d{{8}}T\d{{6}}\.\d{{3}}Z(\.\d+)?{re.escape(ending)}")
            older = sorted(path for path in self._path.parent.iterdir() if name.fullmatch(path.name))
            for surplus in older[: max(0, len(older) - self._rotation.files)]:
                surplus.unlink(missing_ok=True)

    def _write(self, *records: dict[str, Any]) -> None:
        """Write all of them, or none."""
        if self._out is not None:
            lines = (json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n" for record in records)
            text = "".join(lines)
            with _recording(self._path):
                self._out.write(text)
            self._size += len(text.encode("utf-8", "replace"))


def check_recordable(path: Path) -> None:
    """Refuse to record where something else than a file is: it would be moved out of the way.

    Raises:
        ConfigError: It is a folder, a device or a pipe.
        OngebdError: It cannot be looked at.
    """
    with _recording(path):
        other = path.exists() and not path.is_file()
    if other:
        what = "a folder" if path.is_dir() else "no regular file"
        raise ConfigError(f"--jsonl {printable(str(path))} is {what}; name a file, new or of records")


@contextlib.contextmanager
def _recording(path: Path) -> Iterator[None]:
    """Turn what goes wrong into a line that names the option of `watch`, which is not the one of `detect`."""
    try:
        yield
    except (OngebdError, OSError, ValueError) as problem:
        cause = problem.__cause__ if isinstance(problem, OngebdError) else problem
        full = isinstance(cause, OSError) and cause.errno == errno.ENOSPC
        mend = "free some space or write elsewhere" if full else "write elsewhere"
        why = getattr(cause, "strerror", None) or cause or problem
        raise OngebdError(f"cannot write {printable(str(path))}: {why} ({mend}, see --jsonl)") from problem


def record_line(record: Record) -> dict[str, Any]:
    """A record as JSON has it. Times are in seconds, `wall` and `onset_wall` Unix ones."""
    wall = rounded(record.wall)
    match record:
        case Onset():
            line: dict[str, Any] = {
                "type": "onset",
                "stream": record.stream,
                "number": record.number,
                "epoch": record.epoch,
                "onset": rounded(record.time),
                "score": rounded(record.score),
            }
        case Found(boundary=boundary):
            line = {
                "type": "boundary",
                "stream": record.stream,
                "number": record.number,
                "epoch": record.epoch,
                "time": rounded(boundary.time),
                "onset": rounded(boundary.onset),
                "decided": rounded(boundary.decided),
                "score": rounded(boundary.score),
            }
        case StateChanged():
            line = {
                "type": "state",
                "stream": record.stream,
                "state": record.state,
                "epoch": record.epoch,
                "reason": record.reason,
            }
        case Dropped():
            line = {"type": "drop", "stream": record.stream, "count": record.count, "total": record.total}
        case Retuned():
            line = {"type": "retuned", "stream": record.stream, "sensitivity": record.sensitivity}
        case Clip():
            line = {
                "type": "clip",
                "stream": record.stream,
                "number": record.number,
                "epoch": record.epoch,
                "onset": rounded(record.time),
                "path": str(record.path),
                "seconds": rounded(record.seconds),
            }
        case Filmed(found=found):
            line = {
                "type": "filmed",
                "stream": record.stream,
                "number": found.number,
                "epoch": found.epoch,
                "path": None if record.path is None else str(record.path),
            }
        case Footage():
            line = {"type": "footage", "stream": record.stream, "number": record.onset.number}
        case Point():
            line = {
                "type": "point",
                "stream": record.stream,
                "epoch": record.epoch,
                "time": rounded(record.time),
                "error": rounded(record.error),
                "mean": rounded(record.mean),
                "std": rounded(record.std),
                "threshold": rounded(record.threshold),
                "z": rounded(record.z),
                "positive": record.positive,
                "ready": record.ready,
            }
    return {**line, "wall": wall}
