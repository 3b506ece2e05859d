"""Labels that anyone can write by hand: our own CSV and JSON, and the step tables of INRIA-style sets.

Our CSV has one line for each video and annotator, boundaries in seconds with spaces between them:

    id,duration,annotator,boundaries
    kitchen,62.4,anna,3.1 12.0 40.5
    kitchen,62.4,ben,3.3 39.9

Our JSON says the same: `{"kitchen": {"duration": 62.4, "boundaries": [[3.1, 12.0, 40.5], [3.3, 39.9]]}}`;
with one annotator the inner list may be left out.

INRIA-style sets mark *steps*, spans with a start and an end, and a boundary is where a step begins or ends:
a CSV with one line for each step, `id,duration,start,end` in seconds, and where there are several annotators
a column `annotator`. Ends that coincide with a start count once; those at 0 or at the video's end are no
boundary. (A video without steps cannot stand in such a table; use our CSV for it.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ongebd.data.files import table_rows
from ongebd.data.keys import UnreadKeys
from ongebd.data.label_set import LabelSet, order_notes, video_labels
from ongebd.data.numbers import FloatArray, kind, number, number_list, parse_number
from ongebd.errors import LabelError


def from_simple_json(entries: Mapping[object, object], *, source: str, sha256: str | None = None) -> LabelSet:
    """A label set from our JSON.

    Args:
        entries: `id → {duration, boundaries, [consistency], [fps]}`.
        source: The file, for messages and reports.
        sha256: Its fingerprint.

    Raises:
        LabelError: Where a key is missing or a value is not what it should be.
    """
    videos = {}
    unread = UnreadKeys({"duration", "boundaries", "consistency", "fps"})
    for key, entry in entries.items():
        video_id, where = str(key), f"{source}: video {str(key)!r}"
        if not isinstance(entry, Mapping):
            raise LabelError(
                f"{where}: an object is wanted, not {kind(entry)}; is this a file of predictions?"
            )
        for name in ("duration", "boundaries"):
            if name not in entry:
                raise LabelError(f"{where}: {name!r} is missing; a video needs duration and boundaries")
        rows = entry["boundaries"]
        if not isinstance(rows, Sequence) or isinstance(rows, str):
            raise LabelError(f"{where}, boundaries: a list is wanted, not {kind(rows)}")
        if not any(isinstance(row, Sequence) and not isinstance(row, str) for row in rows):
            rows = [rows]
        consistency, fps = entry.get("consistency"), entry.get("fps")
        unread.see(entry, where)
        videos[video_id] = video_labels(
            source,
            id=video_id,
            duration=number(entry["duration"], f"{where}, duration"),
            boundaries=tuple(
                number_list(row, f"{where}, annotator {order}") for order, row in enumerate(rows)
            ),
            consistency=None if consistency is None else number(consistency, f"{where}, consistency"),
            fps=None if fps is None else number(fps, f"{where}, fps"),
        )
    return LabelSet(videos, "custom", source, sha256, (*unread.notes(), *order_notes(videos.values())))


def from_simple_csv(data: bytes, path: Path, *, sha256: str | None = None) -> LabelSet:
    """A label set from our CSV.

    Raises:
        LabelError: Where a cell is not what it should be, a video has two durations, or an annotator stands
            twice.
    """
    durations: dict[str, float] = {}
    rows: dict[str, dict[str, FloatArray]] = {}
    unread = UnreadKeys({"id", "duration", "annotator", "boundaries"}, of="line", called="column")
    for line, row in table_rows(data, path, {"id", "duration", "boundaries"}):
        where = f"{path}, line {line}"
        unread.see(row, str(path))
        video_id = _video_id(row, durations, where)
        annotator = row.get("annotator", "")
        annotators = rows.setdefault(video_id, {})
        if annotator in annotators:
            raise LabelError(
                f"{where}: annotator {annotator!r} of video {video_id!r} stands twice; keep one line"
            )
        cells = row["boundaries"].replace(";", " ").split()
        annotators[annotator] = np.array(
            [parse_number(cell, f"{where}, boundaries") for cell in cells], dtype=np.float64
        )
    videos = {
        name: video_labels(str(path), id=name, duration=durations[name], boundaries=tuple(row.values()))
        for name, row in rows.items()
    }
    return LabelSet(videos, "custom", str(path), sha256, (*unread.notes(), *order_notes(videos.values())))


def from_steps_csv(data: bytes, path: Path, *, sha256: str | None = None) -> LabelSet:
    """A label set from an INRIA-style table of steps.

    Raises:
        LabelError: Where a cell is not what it should be, or a step ends before it starts.
    """
    durations: dict[str, float] = {}
    edges: dict[str, dict[str, set[float]]] = {}
    unread = UnreadKeys({"id", "duration", "annotator", "start", "end"}, of="line", called="column")
    for line, row in table_rows(data, path, {"id", "duration", "start", "end"}):
        where = f"{path}, line {line}"
        unread.see(row, str(path))
        video_id = _video_id(row, durations, where)
        start = parse_number(row["start"], f"{where}, start")
        end = parse_number(row["end"], f"{where}, end")
        if end < start:
            raise LabelError(
                f"{where}: the step ends at {end:g} s, before it starts at {start:g} s; swap them"
            )
        edges.setdefault(video_id, {}).setdefault(row.get("annotator", ""), set()).update((start, end))
    videos = {}
    for name, annotators in edges.items():
        duration = durations[name]
        boundaries = tuple(
            np.array(sorted(time for time in times if 0 < time < duration), dtype=np.float64)
            for times in annotators.values()
        )
        videos[name] = video_labels(str(path), id=name, duration=duration, boundaries=boundaries)
    notes = (
        "boundaries are the starts and ends of steps, coinciding ones once",
        *unread.notes(),
        *order_notes(videos.values()),
    )
    return LabelSet(videos, "inria", str(path), sha256, notes)


def _video_id(row: dict[str, str], durations: dict[str, float], where: str) -> str:
    """The row's id, once its duration is known to agree with the rows before."""
    video_id = row["id"]
    if not video_id:
        raise LabelError(f"{where}: the id is empty; name the video")
    duration = parse_number(row["duration"], f"{where}, duration")
    if durations.setdefault(video_id, duration) != duration:
        raise LabelError(
            f"{where}: video {video_id!r} has two durations, {durations[video_id]:g} and {duration:g} s"
        )
    return video_id
