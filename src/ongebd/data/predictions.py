"""Predictions from files: our JSONL (a file or a folder), the official pickle, JSON, CSV."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ongebd.data.files import is_folder, parse_json, read_bytes, read_text, sha256, table_rows
from ongebd.data.keys import UnreadKeys
from ongebd.data.numbers import kind, number, number_list, parse_number
from ongebd.data.numbers import videos as count_of
from ongebd.data.prediction_set import (
    PredictionSet,
    SharedName,
    Unit,
    VideoPrediction,
    as_prediction_set,
    count_disorder,
)
from ongebd.data.restricted_pickle import read_pickle
from ongebd.errors import LabelError

__all__ = ["PredictionSet", "VideoPrediction", "as_prediction_set", "read_predictions"]

# (pathlib leaves one slash of the two; a single letter is a drive; what follows `file:` is a path.)
_URL = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]+:/", re.IGNORECASE)
_COLUMNS = ("time", "decided", "onset", "onset_known")


def read_predictions(path: Path | str, *, unit: Unit = "seconds") -> PredictionSet:
    """The predictions in a file or a folder.

    - A folder, or a file that ends in `.jsonl`: what `ongebd detect --out` wrote, one file a video; the id
      is the stem of the source that the file names, or where several sources share a stem the source's
      whole name. Kinds of records that are not known are passed over.
    - `.pkl`, `.pickle`: the official `{id: [times]}`, unpickled with restrictions.
    - `.json`: the same, or `{id: {"times": […], "decided": […], "onsets": […], "onsets_known": […]}}`.
    - `.csv`: one line for each boundary, `id,time` and where known `onset`, `decided`, `onset_known`. A line
      whose time is empty says that the video was seen and has no boundary.

    Args:
        path: The file or folder.
        unit: "frames" where a pickle, JSON or CSV holds frame numbers.

    Raises:
        LabelError: Where it cannot be read or trusted; the message says what is wrong and where.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    folder = is_folder(path)
    if folder or suffix == ".jsonl":
        if unit == "frames":
            raise LabelError(f"{path}: our JSONL is in seconds; leave out --unit frames")
        predictions = _read_folder(path) if folder else _read_jsonl_file(path)
    else:
        data = read_bytes(path)
        if suffix in (".pkl", ".pickle"):
            (videos, unread), form = _from_mapping(read_pickle(data, path), path), "pickle"
        elif suffix == ".json":
            (videos, unread), form = _from_mapping(parse_json(data, path), path), "json"
        elif suffix == ".csv":
            (videos, unread), form = _from_csv(data, path), "csv"
        else:
            raise LabelError(
                f"{path}: predictions are a folder or end in .jsonl, .pkl, .json or .csv; rename the file"
            )
        notes = (*unread.notes(), *count_disorder(videos))
        predictions = PredictionSet(videos, str(path), form, sha256(data), unit, "centre", notes)
    if not predictions.videos:
        raise LabelError(f"{path}: no video in it; is it the right file?")
    return predictions


def _read_jsonl_file(path: Path) -> PredictionSet:
    data = read_bytes(path)
    return _jsonl_set({path: data}, path, sha256(data))


def _read_folder(path: Path) -> PredictionSet:
    files = {file: read_bytes(file) for file in sorted(path.glob("*.jsonl"))}
    if not files:
        raise LabelError(
            f"{path}: no .jsonl file in this folder; give the folder that `ongebd detect --out` wrote"
        )
    fingerprint = hashlib.sha256("".join(sha256(data) for data in files.values()).encode()).hexdigest()
    return _jsonl_set(files, path, fingerprint)


def _jsonl_set(files: Mapping[Path, bytes], source: Path, fingerprint: str) -> PredictionSet:
    runs = [run for file, data in files.items() for run in _parse_jsonl(data, file)]
    videos, shared = _named(runs)
    made_by = Counter(run.method for run in runs if run.method)
    notes = list(count_disorder(videos))
    cut = sum(not video.complete for video in videos.values())
    if cut:
        notes.append(
            f"{count_of(cut)} whose detection was cut short (no end record, or it says so), scored as is"
        )
    if shared:
        notes.append(
            f"stems that several sources share: {len(shared)}; the sources' whole names are the ids there"
        )
    return PredictionSet(
        videos,
        str(source),
        "ongebd-jsonl",
        fingerprint,
        "seconds",
        "centre",
        tuple(notes),
        tuple(shared),
        dict(made_by),
    )


def _named(runs: Sequence[_Run]) -> tuple[dict[str, VideoPrediction], list[SharedName]]:
    """The runs' results by id, and the stems that several of them share."""
    by_stem: dict[str, list[_Run]] = {}
    for run in runs:
        by_stem.setdefault(run.stem, []).append(run)
    videos = {stem: alike[0].close() for stem, alike in by_stem.items() if len(alike) == 1}
    shared = []
    for stem, alike in by_stem.items():
        if len(alike) == 1:
            continue
        places: dict[str, str] = {}
        for run in alike:
            name = run.source or run.stem
            if name in places:
                raise LabelError(
                    f"{run.place}: video {stem!r} stands in two places, of one source: {places[name]}; "
                    "keep one of them"
                )
            if name in videos:  # another source's stem
                name = f"{name} ({run.place})"
            videos[name] = run.close()
            places[name] = run.place
        shared.append(SharedName(stem, places))
    return videos, shared


class _Run:
    """A video whose records are being read.

    Attributes:
        stem: Of its source, or else of its file.
        source: The source that its header names, if it does.
        place: The file and line where it begins.
        method: What found it, if the header says so.
        at_once: Whether a boundary is decided at its onset, as the settings say (`max_run` is 0): then its
            onset was known when it was decided, also in a file of a version that does not write this.
    """

    def __init__(self, path: Path, line: int, header: Mapping[str, object] | None = None) -> None:
        header = header or {}
        source = header.get("source")
        self.stem = _stem(header, path)
        self.source = source if isinstance(source, str) and source.strip() else None
        self.place = f"{path}, line {line}" if line > 1 else str(path)
        self.method = _method(header)
        settings = header.get("settings")
        longest = settings.get("max_run") if isinstance(settings, Mapping) else None
        self.at_once = not isinstance(longest, bool) and longest == 0
        self.boundaries: list[_Told] = []
        self.complete = False

    def close(self) -> VideoPrediction:
        rows = [(each.time, each.onset, each.decided) for each in self.boundaries]
        times, onsets, decided = np.array(rows, dtype=np.float64).reshape(-1, 3).T.copy()
        known = [each.decided if self.at_once else each.onset_known for each in self.boundaries]
        told = None if None in known else np.array(known, dtype=np.float64)
        return VideoPrediction(times, decided, onsets, self.complete, told)


class _Told(NamedTuple):
    """A boundary record, seconds."""

    time: float
    onset: float
    decided: float
    onset_known: float | None


def _parse_jsonl(data: bytes, path: Path) -> list[_Run]:
    """The videos of one of our files: each header begins one; without one the file's name is the id."""
    runs: list[_Run] = []
    # Not splitlines: that parts a record at U+2028 and others, which JSON may hold as they are.
    lines = read_text(data, path).split("\n")
    if not lines[-1].strip():
        lines.pop()
    for line, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        record = _record(text, f"{path}, line {line}", last=line == len(lines))
        if record is None:  # the last line of a run that was killed
            break
        form = record.get("type")
        if form == "header":
            run = _Run(path, line, record)
            if any(run.source == other.source and run.stem == other.stem for other in runs):
                raise LabelError(
                    f"{path}, line {line}: a second header of video {run.stem!r}, which has one above; "
                    "keep one run"
                )
            runs.append(run)
        elif form == "streams" and isinstance(names := record.get("streams"), Mapping) and len(names) > 1:
            raise LabelError(
                f"{path}, line {line}: records of {len(names)} streams, of `ongebd watch`, are no single"
                " video's; watch each with a --jsonl of its own"
            )
        elif form in ("boundary", "end"):
            if not runs:
                runs.append(_Run(path, line))
            if form == "boundary":
                runs[-1].boundaries.append(_boundary(record, f"{path}, line {line}"))
            else:
                runs[-1].complete = record.get("complete") is True
    if not runs:
        raise LabelError(f"{path}: no header and no boundary; is it the output of `ongebd detect`?")
    return runs


def _record(text: str, where: str, *, last: bool) -> Mapping[str, object] | None:
    """One line's record; None where the file's last line was cut off in the middle."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as problem:
        if last:
            return None
        why = "nested too deeply" if isinstance(problem, RecursionError) else str(problem)[:80]
        raise LabelError(f"{where}: not JSON ({why}); remove or mend the line") from None
    if not isinstance(record, Mapping):
        raise LabelError(f"{where}: an object is wanted, not {kind(record)}")
    return record


def _stem(header: Mapping[str, object], path: Path) -> str:
    """The id: the stem of the source that the header names (a path or a URL), else the file's own."""
    source = header.get("source")
    if not isinstance(source, str) or not source.strip():
        return path.stem
    if _URL.match(source):  # a file's name may have a question mark
        source = source.split("?")[0]
    return Path(source.replace("\\", "/").rstrip("/")).stem or path.stem


def _method(header: Mapping[str, object]) -> str | None:
    """The method that a header names, with τ and the program's version where they are there."""
    model, version, settings = header.get("model"), header.get("version"), header.get("settings")
    if not isinstance(model, str) or not model:
        return None
    tau = settings.get("tau") if isinstance(settings, Mapping) else None
    parts = [model[:120]]
    if isinstance(tau, int | float):
        parts.append(f"τ {tau:g}")
    if isinstance(version, str):
        parts.append(f"ongebd {version[:40]}")
    return ", ".join(parts)


def _boundary(record: Mapping[str, object], where: str) -> _Told:
    """What a boundary record says."""
    for name in ("time", "onset", "decided"):
        if name not in record:
            raise LabelError(f"{where}: a boundary without {name!r}; complete or remove the line")
    known = record.get("onset_known")
    return _Told(
        number(record["time"], f"{where}, time"),
        number(record["onset"], f"{where}, onset"),
        number(record["decided"], f"{where}, decided"),
        None if known is None else number(known, f"{where}, onset_known"),
    )


def _from_mapping(value: object, path: Path) -> tuple[dict[str, VideoPrediction], UnreadKeys]:
    if not isinstance(value, Mapping):
        raise LabelError(f"{path}: predictions are a dict of times by id, not {kind(value)}")
    videos: dict[str, VideoPrediction] = {}
    unread = UnreadKeys({"times", "decided", "onsets", "onsets_known"})
    for key, entry in value.items():
        name = key.decode("latin1") if isinstance(key, bytes) else str(key)
        where = f"{path}: video {name!r}"
        if name in videos:  # 1 and "1", say, in a pickle
            raise LabelError(f"{where}: stands twice; keep one of them")
        if not isinstance(entry, Mapping):
            videos[name] = VideoPrediction(number_list(entry, where))
            continue
        if "times" not in entry:
            what = (
                "scores of frames, not boundaries"
                if "scores" in entry
                else f"{', '.join(map(str, entry))[:60]!r}"
            )
            raise LabelError(f"{where}: 'times' is missing, it has {what}; give a list of boundary times")
        unread.see(entry, where)
        times = number_list(entry["times"], f"{where}, times")
        extra = {
            part: number_list(entry[part], f"{where}, {part}") if entry.get(part) is not None else None
            for part in ("decided", "onsets", "onsets_known")
        }
        for part, values in extra.items():
            if values is not None and len(values) != len(times):
                raise LabelError(
                    f"{where}: {len(values)} {part} for {len(times)} times; give one for each, or none"
                )
        videos[name] = VideoPrediction(
            times, extra["decided"], extra["onsets"], onsets_known=extra["onsets_known"]
        )
    return videos, unread


def _from_csv(data: bytes, path: Path) -> tuple[dict[str, VideoPrediction], UnreadKeys]:
    columns: list[str] = []
    rows: dict[str, list[list[float]]] = {}
    unread = UnreadKeys({"id", *_COLUMNS}, of="line", called="column")
    for line, row in table_rows(data, path, {"id", "time"}):
        where = f"{path}, line {line}"
        if not row["id"]:
            raise LabelError(f"{where}: the id is empty; name the video")
        unread.see(row, str(path))
        columns = [name for name in _COLUMNS if name in row]
        boundaries = rows.setdefault(row["id"], [])
        if row["time"]:
            boundaries.append([parse_number(row[name], f"{where}, {name}") for name in columns])
    videos = {}
    for video_id, boundaries in rows.items():
        table = np.array(boundaries, dtype=np.float64).reshape(-1, len(columns))
        values = {name: table[:, place].copy() for place, name in enumerate(columns)}
        videos[video_id] = VideoPrediction(
            values["time"],
            values.get("decided"),
            values.get("onset"),
            onsets_known=values.get("onset_known"),
        )
    return videos, unread
