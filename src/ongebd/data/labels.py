"""Reads labels of event boundaries: Kinetics-GEBD, TAPOS, INRIA-style steps, and our own CSV and JSON.

Anyone can write ours by hand. The CSV has one line per video and annotator, with boundaries in seconds:

    id,duration,annotator,boundaries
    kitchen,62.4,anna,3.1 12.0 40.5
    kitchen,62.4,ben,3.3 39.9

The JSON says the same: `{"kitchen": {"duration": 62.4, "boundaries": [[3.1, 12.0, 40.5], [3.3, 39.9]]}}`;
with one annotator the inner list may be left out. `kinds`, a column or key like `boundaries`, may say of each
what it is, in one word (`cut dissolve event`): `ongebd evaluate` then also reports each kind.

INRIA-style sets mark *steps* with a start and an end: a CSV with one line per step, `id,duration,start,end`
in seconds, and a column `annotator` if there are several. A boundary is where a step starts or ends. Ends
that coincide with a start count once; those at 0 or at the video's end don't count. (A video without steps
needs our CSV.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from ongebd.common.writing import MUXERS
from ongebd.data import exchange
from ongebd.data.files import (
    UnreadKeys,
    kind,
    parse_json,
    parse_number,
    read_bytes,
    read_text,
    sha256,
    table_rows,
)
from ongebd.data.kinetics_raw import convert_raw_annotation, is_raw_annotation
from ongebd.data.label_dicts import FRAMES, KINDS, OFFICIAL, OWN, TIMES, from_dict
from ongebd.data.label_set import LabelSet, VideoLabels
from ongebd.data.restricted_pickle import read_pickle
from ongebd.errors import LabelError, os_errors

Dataset = Literal["auto", "kinetics-gebd", "tapos", "inria", "custom"]


def read_labels(path: Path | str, dataset: Dataset = "auto", fps: Fraction | None = None) -> LabelSet:
    """The labels in a file, or in all such files of a folder.

    The ending says how the file is written: `.pkl` or `.pickle` (restricted unpickling), `.json`, `.csv`, and
    those that `ongebd.data.exchange` reads. The content says which schema it follows: the official one, the
    raw Kinetics-GEBD annotation (which is converted), INRIA-style steps, another program's, or our own.

    Args:
        path: The file or folder.
        dataset: Whose rules apply. "auto" takes a file in the official schema for TAPOS if its ids are those
            of TAPOS instances and each has one annotator, and otherwise for Kinetics-GEBD; a table of steps
            for an INRIA-style set, and anything else for a set of your own.
        fps: Frames a second, for files that count frames and don't say how long one lasts.

    Raises:
        LabelError: The file can't be read or trusted; the message says what is wrong and where.
    """
    path = Path(path)
    with os_errors(path, "check the path", LabelError):
        labels = (_from_folder if path.is_dir() else _from_file)(path, dataset, fps)
    return labels if dataset == "auto" else replace(labels, dataset=dataset)


def _from_file(path: Path, dataset: Dataset, fps: Fraction | None) -> LabelSet:
    suffix = path.suffix.lower()
    data = b"" if suffix in MUXERS else read_bytes(path)
    value: object = None
    if suffix in (".pkl", ".pickle", ".json"):
        value = parse_json(data, path) if suffix == ".json" else read_pickle(data, path)
    if (read := exchange.entries_of(path, data, value, fps)) is not None:
        return from_dict(read[0], OWN, "custom", str(path), sha256(data or repr(read).encode()), read[1])
    if value is not None:
        return _from_entries(value, path, dataset, sha256(data))
    if suffix == ".csv":
        return _from_csv(data, path)
    raise LabelError(
        f"{path}: labels end in .pkl, .pickle, .json or .csv, or {', '.join(exchange.READERS)}; save"
        ' {id: {"duration": …, "boundaries": […]}} as JSON, for example'
    )


def _from_folder(path: Path, dataset: Dataset, fps: Fraction | None) -> LabelSet:
    """All labels in the files of a folder, but not the chapters of videos."""
    wanted = {".json", *exchange.READERS}.difference(MUXERS)
    files = [file for file in sorted(path.iterdir()) if file.suffix.lower() in wanted]
    sets = [_from_file(file, dataset, fps) for file in files]
    merged: dict[str, VideoLabels] = {}
    for file, labels in zip(files, sets, strict=True):
        if twice := merged.keys() & labels.videos.keys():
            raise LabelError(f"{file}: video {min(twice)!r} is in another file of this folder too; keep one")
        merged |= labels.videos
    notes = tuple(dict.fromkeys(note for labels in sets for note in labels.notes))
    fingerprint = sha256("".join(labels.sha256 or "" for labels in sets).encode())
    return LabelSet(merged, sets[0].dataset if sets else "custom", str(path), fingerprint, notes)


def as_label_set(labels: LabelSet | Mapping[str, Mapping[str, object]]) -> LabelSet:
    """A label set from a label set, or from a plain dict in the official schema."""
    return labels if isinstance(labels, LabelSet) else from_dict(dict(labels.items()))


def min_consistency_of(dataset: str) -> float | None:
    """The least `f1_consis_avg` of a set's own rule: 0.3 for Kinetics-GEBD, none for the others."""
    return 0.3 if dataset == "kinetics-gebd" else None


_ID_COLUMNS = {"id", "ids", "video", "video_id", "youtube_id", "name", "instance", "instance_id", "key"}


def read_ids(path: Path | str) -> list[str]:
    """The ids in the first column of a CSV file, whose first line may name the column."""
    path = Path(path)
    text = read_text(read_bytes(path), path)
    first = text.partition("\n")[0]
    if first.partition(",")[0].strip(' "').lower() not in _ID_COLUMNS:
        text = f"id{',' * first.count(',')}\n{text}"
    ids = [next(iter(row.values())) for _, row in table_rows(text.encode(), path, set())]
    if not ids:
        raise LabelError(f"{path}: no ids in it")
    return ids


def _from_entries(entries: object, path: Path, dataset: Dataset, fingerprint: str) -> LabelSet:
    if not isinstance(entries, Mapping):
        raise LabelError(f"{path}: labels are a dict of videos by id, not {kind(entries)}")
    first = next(iter(entries.values()), None)
    official = isinstance(first, Mapping) and not {"video_duration", TIMES, FRAMES}.isdisjoint(first)
    if not official and path.suffix.lower() == ".json":
        return from_dict(entries, OWN, "custom", str(path), fingerprint)
    notes: list[str] = []
    if is_raw_annotation(entries):
        dataset = "kinetics-gebd" if dataset == "auto" else dataset
        entries, notes = convert_raw_annotation(entries, str(path))
    return from_dict(entries, OFFICIAL, dataset, str(path), fingerprint, notes)


def _from_csv(data: bytes, path: Path) -> LabelSet:
    """Our own table, or one of steps."""
    header = read_text(data, path).split("\n", 1)[0].lower()
    steps = {"start", "end"} <= {name.strip(' "\r') for name in header.split(",")}
    columns = ("start", "end") if steps else ("boundaries",)
    unread = UnreadKeys("id", "duration", "annotator", KINDS, *columns)
    entries: dict[object, dict[str, Any]] = {}
    for where, row in table_rows(data, path, {"id", "duration", *columns}):
        unread.see(row, where)
        if not row["id"]:
            raise LabelError(f"{where}: the id is empty; name the video")
        duration = parse_number(row["duration"], f"{where}, duration")
        entry = entries.setdefault(row["id"], {"duration": duration, "boundaries": {}, KINDS: []})
        if entry["duration"] != duration:
            both = f"{entry['duration']:g} and {duration:g} s"
            raise LabelError(f"{where}: video {row['id']!r} has two durations, {both}")
        annotators, name = entry["boundaries"], row.get("annotator", "")
        if steps:
            annotators.setdefault(name, set()).update(_ends_of_step(row, where, duration))
        elif name in annotators:
            raise LabelError(
                f"{where}: annotator {name!r} of video {row['id']!r} occurs twice; keep one line"
            )
        else:
            cells = row["boundaries"].replace(";", " ").split()
            annotators[name] = [parse_number(cell, f"{where}, boundaries") for cell in cells]
            entry[KINDS].append(row.get(KINDS, "").replace(";", " ").split())
    for entry in entries.values():
        annotators = entry["boundaries"].values()
        entry["boundaries"] = [sorted(times) if steps else times for times in annotators]
        entry[KINDS] = entry[KINDS] if any(entry[KINDS]) else None
    notes = ["boundaries are the starts and ends of steps; equal times count once"] if steps else []
    dataset = "inria" if steps else "custom"
    return from_dict(entries, OWN, dataset, str(path), sha256(data), [*notes, *unread.notes()])


def _ends_of_step(row: Mapping[str, str], where: str, duration: float) -> set[float]:
    """Start and end of a step, without those at 0 and at the video's end."""
    start, end = (parse_number(row[name], f"{where}, {name}") for name in ("start", "end"))
    if end < start:
        raise LabelError(f"{where}: the step ends at {end:g} s, before it starts at {start:g} s; swap them")
    return {time for time in (start, end) if 0 < time < duration}
