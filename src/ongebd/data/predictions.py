"""Reads predictions: our JSONL (a file or a folder), the official pickle, JSON, CSV."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ongebd.data.files import (
    UnreadKeys,
    kind,
    number,
    number_list,
    parse_json,
    parse_number,
    read_bytes,
    read_text,
    sha256,
    table_rows,
)
from ongebd.data.files import videos as count_of
from ongebd.data.prediction_set import PredictionSet, Unit, VideoPrediction
from ongebd.data.restricted_pickle import read_pickle
from ongebd.errors import LabelError, os_errors

# (pathlib keeps one of the two slashes; a single letter is a drive; a path follows `file:`.)
_URL = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]+:/", re.IGNORECASE)


def read_predictions(path: Path | str, *, unit: Unit = "seconds") -> PredictionSet:
    """The predictions in a file or a folder.

    - A folder, or a file that ends in `.jsonl`: what `ongebd detect --out` wrote, one file per video. The id
      is the stem of the source that the file names. Unknown kinds of records are skipped.
    - `.pkl`, `.pickle`: the official `{id: [times]}`, unpickled with restrictions.
    - `.json`: the same, or `{id: {"times": […], "decided": […], "onsets": […], "onsets_known": […]}}`.
    - `.csv`: one line per boundary, `id,time` and where known `onset`, `decided`, `onset_known`. A line with
      an empty time says that the video was processed and has no boundary.

    Args:
        path: The file or folder.
        unit: "frames" where a pickle, JSON or CSV holds frame numbers.

    Raises:
        LabelError: It can't be read or trusted; the message says what is wrong and where.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    with os_errors(path, "check the path", LabelError):
        folder = path.is_dir()
        path.stat()  # raises if it doesn't exist
    if folder or suffix == ".jsonl":
        if unit == "frames":
            raise LabelError(f"{path}: our JSONL is in seconds; leave out --unit frames")
        predictions = _read_jsonl(path, folder=folder)
    elif suffix in (".pkl", ".pickle", ".json", ".csv"):
        data = read_bytes(path)
        if suffix == ".csv":
            form, (videos, notes) = "csv", _from_csv(data, path)
        elif suffix == ".json":
            form, (videos, notes) = "json", _from_mapping(parse_json(data, path), path)
        else:
            form, (videos, notes) = "pickle", _from_mapping(read_pickle(data, path), path)
        notes += _disorder(videos)
        predictions = PredictionSet(videos, str(path), form, sha256(data), unit, notes=tuple(notes))
    else:
        raise LabelError(
            f"{path}: predictions are a folder or end in .jsonl, .pkl, .json or .csv; save"
            " {id: [times]} as JSON, for example"
        )
    if not predictions.videos:
        raise LabelError(f"{path}: no video in it; is it the right file?")
    return predictions


def _disorder(videos: Mapping[str, VideoPrediction]) -> list[str]:
    count = sum(bool((np.diff(video.times) < 0).any()) for video in videos.values())
    note = f"{count_of(count)} with times out of order (kept so, as the official rule does)"
    return [note] if count else []


def _read_jsonl(path: Path, *, folder: bool) -> PredictionSet:
    files = {file: read_bytes(file) for file in (sorted(path.glob("*.jsonl")) if folder else [path])}
    if not files:
        raise LabelError(
            f"{path}: no .jsonl file in this folder; give the folder that `ongebd detect --out` wrote"
        )
    prints = [sha256(data) for data in files.values()]
    fingerprint = sha256("".join(prints).encode()) if folder else prints[0]
    runs: dict[str, _Run] = {}
    for run in (run for file, data in files.items() for run in _parse_jsonl(data, file)):
        other = runs.setdefault(run.stem, run)
        if other is not run:
            raise LabelError(
                f"{run.place}: a second result for video {run.stem!r}, also in {other.place}; keep one, or"
                " score them from separate folders"
            )
    videos = {stem: run.prediction() for stem, run in runs.items()}
    notes = _disorder(videos)
    cut = sum(not video.complete for video in videos.values())
    if cut:
        notes.append(
            f"{count_of(cut)} whose detection was cut short (no end record, or it says so), scored as is"
        )
    made_by = dict(Counter(run.method for run in runs.values() if run.method).most_common())
    return PredictionSet(videos, str(path), "ongebd-jsonl", fingerprint, notes=tuple(notes), made_by=made_by)


@dataclass
class _Run:
    """The records of one video.

    Attributes:
        header: Its header, or nothing.
        path: Its file.
        place: The file and line where it begins.
        boundaries: (time, onset, decided, onset_known) of each, seconds; NaN where the last is unknown.
        complete: An end record says so.
        duration: The video's, seconds, as an end record says.
    """

    header: Mapping[str, object]
    path: Path
    place: str
    boundaries: list[tuple[float, float, float, float]] = field(default_factory=list)
    complete: bool = False
    duration: float | None = None

    @property
    def stem(self) -> str:
        """The id in the header, or else the stem of the source (a path or a URL), or else of the file."""
        if isinstance(name := self.header.get("id"), str) and name:
            return name
        source = self.header.get("source")
        if not isinstance(source, str) or not source.strip():
            return self.path.stem
        if _URL.match(source):  # a file's name may contain a question mark
            source = source.split("?")[0]
        return Path(source.replace("\\", "/").rstrip("/")).stem or self.path.stem

    @property
    def method(self) -> str | None:
        """The model, with τ and the program's version where the header has them."""
        model, version, tau = self.header.get("model"), self.header.get("version"), self._setting("tau")
        if not isinstance(model, str) or not model:
            return None
        known_tau = f", τ {tau:g}" if isinstance(tau, int | float) else ""
        return model[:120] + known_tau + (f", ongebd {version[:40]}" if isinstance(version, str) else "")

    def _setting(self, name: str) -> object:
        settings = self.header.get("settings")
        return settings.get(name) if isinstance(settings, Mapping) else None

    def prediction(self) -> VideoPrediction:
        rows = np.array(self.boundaries, dtype=np.float64).reshape(-1, 4)
        times, onsets, decided, known = rows.T.copy()
        longest = self._setting("max_run")
        if longest == 0 and not isinstance(longest, bool):
            known = decided  # a boundary is decided at its onset; older versions don't write onset_known
        onsets_known = None if np.isnan(known).any() else known
        return VideoPrediction(times, decided, onsets, self.complete, onsets_known, self.duration)


def _parse_jsonl(data: bytes, path: Path) -> list[_Run]:
    """The videos of one of our files. Each header begins one; without a header the file's name is the id."""
    runs: list[_Run] = []
    # Not splitlines: it also splits at U+2028 and others, which JSON text may contain.
    lines = read_text(data, path).rstrip("\n").split("\n")
    for line, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        where = f"{path}, line {line}"
        record = _record(text, where, last=line == len(lines))
        if record is None:
            break
        form = record.get("type")
        if form == "header":
            runs.append(_Run(record, path, where if line > 1 else str(path)))
        elif form == "streams" and isinstance(names := record.get("streams"), Mapping) and len(names) > 1:
            raise LabelError(
                f"{where}: records of {len(names)} streams, of `ongebd watch`, not of one video;"
                " give each stream a --jsonl file"
            )
        elif form in ("boundary", "end"):
            if not runs:
                runs.append(_Run({}, path, where if line > 1 else str(path)))
            if form == "end":
                runs[-1].complete = record.get("complete") is True
                duration = record.get("duration")
                if isinstance(duration, int | float) and not isinstance(duration, bool):
                    runs[-1].duration = number(duration, f"{where}, duration")
            else:
                runs[-1].boundaries.append(_boundary(record, where))
    if not runs:
        raise LabelError(f"{path}: no header and no boundary; is it the output of `ongebd detect`?")
    return runs


def _record(text: str, where: str, *, last: bool) -> Mapping[str, object] | None:
    """One line's record; None for a last line that was cut off when the run was killed."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as problem:
        if last:
            return None
        why = "nested too deeply" if isinstance(problem, RecursionError) else str(problem)[:80]
        raise LabelError(f"{where}: not JSON ({why}); remove or correct the line") from None
    if not isinstance(record, Mapping):
        raise LabelError(f"{where}: must be an object, not {kind(record)}")
    return record


def _boundary(record: Mapping[str, object], where: str) -> tuple[float, float, float, float]:
    for name in ("time", "onset", "decided"):
        if name not in record:
            raise LabelError(f"{where}: a boundary without {name!r}; complete or remove the line")
    time, onset, decided = (number(record[name], f"{where}, {name}") for name in ("time", "onset", "decided"))
    known = record.get("onset_known")
    return time, onset, decided, np.nan if known is None else number(known, f"{where}, onset_known")


def _from_mapping(value: object, path: Path) -> tuple[dict[str, VideoPrediction], list[str]]:
    if not isinstance(value, Mapping):
        raise LabelError(f"{path}: predictions are a dict of times by id, not {kind(value)}")
    videos: dict[str, VideoPrediction] = {}
    extras = ("decided", "onsets", "onsets_known")
    unread = UnreadKeys("times", *extras)
    for key, entry in value.items():
        name = key.decode("latin1") if isinstance(key, bytes) else str(key)
        where = f"{path}: video {name!r}"
        if name in videos:  # 1 and "1", for example, in a pickle
            raise LabelError(f"{where}: occurs twice; keep one of them")
        if not isinstance(entry, Mapping):
            videos[name] = VideoPrediction(number_list(entry, where))
            continue
        if "times" not in entry:
            found = ", ".join(map(str, entry))[:60]
            raise LabelError(f"{where}: 'times' is missing, it has {found!r}; give a list of boundary times")
        unread.see(entry, where)
        times = number_list(entry["times"], f"{where}, times")
        arrays = {
            part: number_list(entry[part], f"{where}, {part}")
            for part in extras
            if entry.get(part) is not None
        }
        for part, values in arrays.items():
            if len(values) != len(times):
                raise LabelError(
                    f"{where}: {len(values)} {part} for {len(times)} times; give one for each, or none"
                )
        videos[name] = VideoPrediction(
            times, arrays.get("decided"), arrays.get("onsets"), onsets_known=arrays.get("onsets_known")
        )
    return videos, unread.notes()


def _from_csv(data: bytes, path: Path) -> tuple[dict[str, VideoPrediction], list[str]]:
    columns = {"time": "times", "decided": "decided", "onset": "onsets", "onset_known": "onsets_known"}
    unread = UnreadKeys("id", *columns)
    entries: dict[str, dict[str, list[float]]] = {}
    for where, row in table_rows(data, path, {"id", "time"}):
        unread.see(row, where)
        if not row["id"]:
            raise LabelError(f"{where}: the id is empty; name the video")
        there = [column for column in columns if column in row]
        entry = entries.setdefault(row["id"], {columns[column]: [] for column in there})
        for column in there if row["time"] else ():
            entry[columns[column]].append(parse_number(row[column], f"{where}, {column}"))
    return _from_mapping(entries, path)[0], unread.notes()
