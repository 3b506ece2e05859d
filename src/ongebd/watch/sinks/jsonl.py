"""A file of JSON lines with what a watcher sees, replaced before it grows too large or too old."""

from __future__ import annotations

import contextlib
import re
from dataclasses import asdict
from pathlib import Path
from typing import get_args

from ongebd import __version__
from ongebd.common.text import printable, public_name
from ongebd.errors import ConfigError, OngebdError
from ongebd.output import JsonlWriter, RunEnd, RunHeader, writing
from ongebd.output.writer import rounded
from ongebd.watch.records import Found, Point, Retuned, StateChanged, Told, Updated, record_line
from ongebd.watch.sink import Complain, HubSink
from ongebd.watch.sinks.folder import file_time, oldest_first
from ongebd.watch.watcher import Watcher

_BEGINS = b'{"type": "header"'
_SECONDS = 86_400.0
"""The age at which a file is put aside."""


class RecordSink(HubSink):
    """Writes each boundary and change of state as a line of JSON, with the schema of `ongebd detect`.

    Each file begins with a header and ends with an end record, so that it can be read by itself
    (`ongebd.output.jsonl.read_jsonl`). The newest file has the given name; older ones also have the time at
    which they were put aside: `seen.jsonl`, `seen-20261128T080000.123Z.jsonl`.

    Args:
        path: Of the newest file. An existing file is put aside, not overwritten.
        size: Bytes of a file that is full.
        files: How many old files are kept.
        points: Whether to write a line for each decided frame too.

    Raises:
        ConfigError: Something else than a file is there.
        OngebdError: The file can't be written.
    """

    def __init__(
        self,
        path: Path,
        watcher: Watcher,
        complain: Complain,
        *,
        size: int = 64 << 20,
        files: int = 30,
        points: bool = False,
    ) -> None:
        kinds = (*get_args(Told), Updated, Retuned, *([Point] if points else []))
        super().__init__("jsonl", watcher.hub, kinds, complain, limit=16_384)
        self._path, self._watcher, self._size, self._files = path, watcher, size, files
        self._names = {key: public_name(stream.name) for key, stream in watcher.streams.items()}
        self._epochs: dict[str, int] = {}
        self._complete = dict.fromkeys(self._names, False)
        self._out: JsonlWriter | None = None
        self._open()

    def handle(self, record: Told | Updated | Retuned | Point) -> None:
        """Write a record, into a new file if the old one is full or too old."""
        lines = [record_line(record)]
        if isinstance(record, StateChanged):
            self._complete[record.stream] = record.state == "ended" and record.reason != "stopped"
            if record.state == "live" and record.epoch > self._epochs.get(record.stream, 0):
                self._epochs[record.stream] = record.epoch
                epoch = {"type": "epoch", "stream": record.stream, "epoch": record.epoch, "time": 0.0}
                reason = record.reason or "reconnected to the source"
                lines.append({**epoch, "reason": reason, "wall": rounded(record.wall)})
        if self._out is not None:
            old = self._watcher.clock.wall() - self._began >= _SECONDS
            if old or self._out.size >= self._size or not self._path.exists():
                self._close_file(complete=False)
        (self._out or self._open()).write(*lines)
        self._boundaries += isinstance(record, Found)

    def tidy(self) -> None:
        """Write the end record."""
        try:
            self._close_file(complete=all(self._complete.values()))
        except OngebdError as problem:
            self.failed += 1
            self._report(str(problem), broken=True)

    def _open(self) -> JsonlWriter:
        """Begin a file. If its first lines can't be written, the next record begins it again."""
        self._put_aside()
        self._boundaries, self._frames_before = 0, self._frames()
        self._began = self._watcher.clock.wall()
        sources, model = ", ".join(self._names.values()), self._watcher.model.name
        header = RunHeader(sources, model, asdict(self._watcher.config), 0, 0, __version__)
        with writing(self._path, "--jsonl"):
            self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            out = JsonlWriter(self._path, header, "--jsonl")
            out.write({"type": "streams", "streams": self._names, "wall": rounded(self._began)})
        except OngebdError:
            with contextlib.suppress(OSError):  # the first error is enough
                self._path.unlink()
            raise
        self._out = out
        return out

    def _close_file(self, *, complete: bool) -> None:
        out, self._out = self._out, None
        if out is not None:
            seconds = self._watcher.clock.wall() - self._began
            frames = self._frames() - self._frames_before
            warnings = [
                f"{self._names[key]}: {warning}"
                for key, stream in self._watcher.streams.items()
                for warning in stream.status().warnings
            ]
            out.close(RunEnd(complete, seconds, frames, self._boundaries, warnings))

    def _frames(self) -> int:
        return sum(stream.status().frames for stream in self._watcher.streams.values())

    # The handlers of `logging` can't do this: they overwrite old files by number, know no first and last
    # line of a file, and raise nothing when a disk is full.
    def _put_aside(self) -> None:
        check_recordable(self._path)
        with writing(self._path, "--jsonl"):
            if not self._path.exists() or self._path.stat().st_size == 0:
                return
            stem, suffix = self._path.stem, self._path.suffix
            wall = self._watcher.clock.wall()
            while (aside := self._path.with_name(f"{stem}-{file_time(wall)}{suffix}")).exists():
                wall += 0.001
            self._path.replace(aside)
            ours = re.compile(rf"{re.escape(stem)}-\d{{8}}T\d{{6}}\.\d{{3}}Z{re.escape(suffix)}")
            older = [path for path in oldest_first(self._path.parent, ours) if _is_ours(path)]
            for surplus in older[: max(0, len(older) - self._files)]:
                surplus.unlink(missing_ok=True)


def _is_ours(path: Path) -> bool:
    """Whether we wrote a file: what was put aside first may be the user's own."""
    with path.open("rb") as file:
        return file.read(len(_BEGINS)) == _BEGINS


def check_recordable(path: Path) -> None:
    """Refuse to record where something else than a file is: it would be moved away.

    Raises:
        ConfigError: It is a folder, a device or a pipe.
        OngebdError: It can't be read.
    """
    with writing(path, "--jsonl"):
        if not path.exists() or path.is_file():
            return
    raise ConfigError(f"--jsonl {printable(str(path))} is not a file; name a file, existing or new")
