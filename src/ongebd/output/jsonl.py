"""JSON lines: a header record, one record per boundary as it is found, an end record; and their reader."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ongebd.common.text import printable, public_name
from ongebd.detector.segments import Segment, segments_of
from ongebd.errors import LabelError, os_errors
from ongebd.output.writer import RunEnd, RunHeader, Setting, Target, TextFile, Writer, rounded
from ongebd.types import Boundary, Epoch

Record = dict[str, Any]


class JsonlWriter(Writer):
    """Writes one JSON object per line. Times are in seconds, rounded to the microsecond.

    Args:
        target: Where to write; an existing file is overwritten.
        header: Of the run.
        option: The command-line option that error messages point to.

    Attributes:
        size: Bytes written so far.
    """

    def __init__(self, target: Target, header: RunHeader, option: str = "--out") -> None:
        self._out = TextFile(target, option)
        self._ascii = self._out.encoding.lower().replace("-", "") != "utf8"
        self.size = 0
        self.write(header_record(header))

    def write(self, *records: Record) -> None:
        """Write records of any type: all of them or none."""
        text = "".join(f"{self._line(record)}\n" for record in records)
        self._out.write(text)
        self.size += len(text.encode("utf-8", "replace"))

    def _line(self, record: Record) -> str:
        """ASCII escapes where the encoding may lack a character, or where one would act on a terminal."""
        line = json.dumps(record, ensure_ascii=self._ascii, allow_nan=False)
        return line if printable(line) == line else json.dumps(record, allow_nan=False)

    def found(self, boundary: Boundary) -> None:
        self.write({"type": "found", **boundary_fields(boundary)})

    def boundary(self, boundary: Boundary) -> None:
        self.write({"type": "boundary", **boundary_fields(boundary)})

    def closed(self, boundary: Boundary) -> None:
        self.write({"type": "update", **update_fields(boundary)})

    def epoch(self, epoch: Epoch) -> None:
        reason = public_name(epoch.reason)
        self.write({"type": "epoch", "epoch": epoch.number, "time": rounded(epoch.time), "reason": reason})

    def close(self, end: RunEnd) -> None:
        """Write the end record and close the file. A file without that record is of a run that was killed."""
        warnings = [public_name(warning) for warning in end.warnings]
        record = {"type": "end", **asdict(end), "duration": rounded(end.duration), "warnings": warnings}
        if end.found is None:
            del record["found"]
        try:
            self.write(record)
        finally:
            self._out.close()


def boundary_fields(boundary: Boundary) -> Record:
    """The times (seconds) and the score of a boundary, as JSON has them."""
    names = ["time", "onset", "decided", "score"]
    if boundary.onset_known is not None:
        names.append("onset_known")
    if boundary.peak is not None:
        names.append("peak")
    record: Record = {name: rounded(getattr(boundary, name)) for name in names}
    return record if boundary.kind is None else record | {"kind": boundary.kind}


def update_fields(boundary: Boundary) -> Record:
    """What became known of a boundary after its report, and its times."""
    fields = boundary_fields(boundary)
    return {name: fields.get(name) for name in ("time", "onset", "peak", "kind")}


def header_record(header: RunHeader) -> Record:
    """The header without credentials and without numbers that JSON lacks."""
    record: Record = {
        "type": "header",
        "source": public_name(header.source),
        "model": public_name(header.model),
        "version": header.version,
        "width": header.width,
        "height": header.height,
        "settings": {name: _setting(value) for name, value in header.settings.items()},
    }
    chosen = {"runtime": header.runtime, "precision": header.precision}
    chosen |= {"id": header.id, "rate": header.rate}
    return record | {name: value for name, value in chosen.items() if value is not None}


def _setting(value: Setting) -> Setting:
    if isinstance(value, str):
        return public_name(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(slots=True)
class Recording:
    """The content of a JSON lines file.

    Attributes:
        header: The run's header, credentials hidden.
        boundaries: In the order in which they were decided.
        epochs: Breaks in the source.
        end: How the run ended; None if it was killed.
        cut: Whether a kill cut the last line short; that line is left out.
        streams: The sources of a watch by their keys.
        others: Records of types that this version does not know.
    """

    header: RunHeader
    boundaries: list[Boundary] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    end: RunEnd | None = None
    cut: bool = False
    streams: dict[str, str] = field(default_factory=dict)
    others: list[Record] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether the run reached the end of its source."""
        return self.end is not None and self.end.complete

    @property
    def duration(self) -> float:
        """Seconds of the source; up to the last decision if the run was killed."""
        return self.end.duration if self.end else max((one.decided for one in self.boundaries), default=0.0)

    @property
    def warnings(self) -> list[str]:
        """Those of its end."""
        return self.end.warnings if self.end else []

    @property
    def segments(self) -> list[Segment]:
        """What lies between the boundaries, by time."""
        return segments_of(self.boundaries, (), float(self.header.settings.get("start") or 0), self.duration)


def read_jsonl(path: str | Path, stream: str | None = None) -> Recording:
    """Read a file of `JsonlWriter`, also if its writer was killed; of several streams, one or all.

    Raises:
        LabelError: The file can't be read, has no header, or is damaged before its last line.
    """
    name = printable(str(path))
    with os_errors(f"can't read {name}", error=LabelError):
        *lines, unfinished = Path(path).read_bytes().split(b"\n")
    try:
        header, *others = (json.loads(line) for line in lines)
        if header.pop("type") != "header":
            raise ValueError("the first line is not a header")
        recording = Recording(RunHeader(**header), cut=bool(unfinished))
        places: dict[Any, int] = {}
        for record in others:
            if stream is None or record.get("stream", stream) == stream:
                _add(recording, record, places)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as problem:
        raise LabelError(f"{name}: not a file that `ongebd detect` wrote ({problem})") from problem
    return recording


def _add(recording: Recording, record: Record, places: dict[Any, int]) -> None:
    """Add a record; `places` has those of the boundaries by stream, number and onset."""
    which = record.get("stream"), record.get("number"), record.get("onset")
    match record.pop("type"):
        case "boundary":
            time, onset, decided, score = (
                float(record[name]) for name in ("time", "onset", "decided", "score")
            )
            known = record.get("onset_known")  # earlier versions did not write it, nor a peak and a kind
            known = None if known is None else float(known)
            peak, kind = record.get("peak"), record.get("kind")
            places[which] = len(recording.boundaries)
            recording.boundaries.append(Boundary(time, onset, decided, score, known, peak, kind))
        case "update":
            peak, kind = record["peak"], record["kind"]
            if (place := places.get(which)) is not None:  # else it is in the file before
                recording.boundaries[place] = replace(recording.boundaries[place], peak=peak, kind=kind)
        case "epoch":
            recording.epochs.append(Epoch(int(record["epoch"]), float(record["time"]), str(record["reason"])))
        case "end":
            recording.end = RunEnd(**record)
        case "streams":
            recording.streams = {key: str(source) for key, source in record["streams"].items()}
        case other:
            recording.others.append({"type": other, **record})
