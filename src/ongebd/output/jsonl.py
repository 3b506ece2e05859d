"""JSON lines: a header record, a record for each boundary as it is found, an end record; and their reader."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ongebd.errors import LabelError
from ongebd.output.base import QuietSink, RunEnd, RunHeader, Setting, Target, TextOut, rounded
from ongebd.output.naming import printable, public_name
from ongebd.types import Boundary, Epoch

Record = dict[str, Any]


class JsonlSink(QuietSink):
    """Writes one JSON object a line. All times are in seconds, rounded to the microsecond."""

    def __init__(self, target: Target, header: RunHeader, option: str = "--out") -> None:
        self._out = TextOut(target, option)
        self.write(header_record(header))

    def boundary(self, boundary: Boundary) -> None:
        """Write a `boundary` record."""
        self.write({"type": "boundary", **boundary_fields(boundary)})

    def epoch(self, epoch: Epoch) -> None:
        """Write an `epoch` record."""
        reason = public_name(epoch.reason)
        self.write({"type": "epoch", "epoch": epoch.number, "time": rounded(epoch.time), "reason": reason})

    def close(self, end: RunEnd) -> None:
        """Write the `end` record. A file without one is of a run that was killed."""
        self.write(
            {
                "type": "end",
                "complete": end.complete,
                "duration": rounded(end.duration),
                "frames": end.frames,
                "boundaries": end.boundaries,
                "warnings": [public_name(warning) for warning in end.warnings],
            }
        )
        self._out.close()

    def write(self, *records: Record) -> None:
        """Write records of any type: all of them, or none."""
        # A lone surrogate (of a file name that is not UTF-8) leaves TextOut as \udcXX, just as JSON has it.
        only_ascii = self._out.encoding.lower().replace("-", "") != "utf8"
        lines = (json.dumps(record, ensure_ascii=only_ascii, allow_nan=False) + "\n" for record in records)
        self._out.write("".join(lines))


def boundary_fields(boundary: Boundary) -> Record:
    """The times and the score of a boundary, as JSON has them."""
    known = boundary.onset_known
    fields: Record = {
        "time": rounded(boundary.time),
        "onset": rounded(boundary.onset),
        "decided": rounded(boundary.decided),
        "score": rounded(boundary.score),
    }
    return fields if known is None else {**fields, "onset_known": rounded(known)}


def header_record(header: RunHeader) -> Record:
    """Return the header as it is published: without credentials or numbers that JSON lacks."""
    record: Record = {
        "type": "header",
        "source": public_name(header.source),
        "model": public_name(header.model),
        "version": header.version,
        "width": header.width,
        "height": header.height,
        "settings": {name: _setting(value) for name, value in header.settings.items()},
    }
    asked = {"runtime": header.runtime, "precision": header.precision}
    return record | {name: value for name, value in asked.items() if value is not None}


def _setting(value: Setting) -> Setting:
    if isinstance(value, str):
        return public_name(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True, slots=True)
class Recording:
    """What a JSON lines file holds.

    Attributes:
        header: The run's header, credentials hidden.
        boundaries: In the order in which they were decided.
        epochs: Breaks in the source's clock or format.
        end: How the run ended; None if it was killed.
        cut: Whether the last line was cut short by a kill and left out.
        others: Records of types that this version does not know.
    """

    header: RunHeader
    boundaries: list[Boundary] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    end: RunEnd | None = None
    cut: bool = False
    others: list[Record] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether the run reached the end of its source."""
        return self.end is not None and self.end.complete


def read_jsonl(path: str | Path) -> Recording:
    """Read a file of `JsonlSink`, also one whose writer was killed.

    Raises:
        LabelError: The file cannot be read, has no header, or is damaged elsewhere than in its last line.
    """
    name = printable(str(path))
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except OSError as problem:
        raise LabelError(f"cannot read {name}: {problem.strerror}") from problem
    unfinished = lines.pop()  # empty, unless the writer was killed within a line
    records = [_parse(line, f"{name}, line {n}") for n, line in enumerate(lines, 1) if line.strip()]
    cut = False
    if unfinished.strip():
        try:
            records.append(_parse(unfinished, name))
        except LabelError:
            cut = True
    return _recording(records, cut, name)


def _parse(line: bytes, where: str) -> Record:
    try:
        record = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as problem:
        raise LabelError(f"{where}: not a JSON record ({problem})") from problem
    if not isinstance(record, dict) or "type" not in record:
        raise LabelError(f"{where}: not a record with a `type`")
    return record


def _recording(records: list[Record], cut: bool, name: str) -> Recording:
    if not records or records[0]["type"] != "header":
        raise LabelError(f"{name}: does not start with a header record, so `ongebd detect` did not write it")
    try:
        recording = Recording(header=RunHeader(**_without_type(records[0])), cut=cut, end=_end(records[-1]))
        for record in records[1:]:
            _sort_in(record, recording)
    except (KeyError, TypeError, ValueError) as problem:
        raise LabelError(f"{name}: a record lacks a field or has a wrong one ({problem})") from problem
    return recording


def _sort_in(record: Record, recording: Recording) -> None:
    if record["type"] == "boundary":
        times = {key: float(record[key]) for key in ("time", "onset", "decided", "score")}
        known = record.get("onset_known")  # records of earlier versions have none
        recording.boundaries.append(Boundary(**times, onset_known=None if known is None else float(known)))
    elif record["type"] == "epoch":
        recording.epochs.append(Epoch(int(record["epoch"]), float(record["time"]), str(record["reason"])))
    elif record["type"] != "end":
        recording.others.append(record)


def _end(record: Record) -> RunEnd | None:
    return RunEnd(**_without_type(record)) if record["type"] == "end" else None


def _without_type(record: Record) -> Record:
    return {key: value for key, value in record.items() if key != "type"}
