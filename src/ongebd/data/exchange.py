"""Reads segments that people marked in other programs. A boundary is where a segment starts or ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ongebd.common.writing import MUXERS
from ongebd.data.files import number, parse_json, parse_number, read_text, table_rows, videos
from ongebd.errors import LabelError, OngebdError, import_extra

Spans = list[tuple[float, float]]
"""Segments: start and end in seconds."""
Marked = dict[str, tuple[float | None, dict[str, Spans]]]
"""By a video's id its duration (None: unknown) and each annotator's segments."""

_EDGE = 0.1  # seconds; a boundary nearer to the start or the end of a video is none
_SCENE = ("start time (seconds)", "end time (seconds)")


def entries_of(
    path: Path, data: bytes, value: Any, rate: Fraction | None
) -> tuple[dict[object, object], list[str]] | None:
    """The videos in a file of another program, in the schema of our own JSON, and notes; None: it is ours.

    `value` is what its JSON or pickle holds, if it is one; `rate` frames a second, where it doesn't say it.
    """
    suffix = path.suffix.lower()
    reader: Callable[[Path, Any, Fraction | None], Marked] | None = None
    if isinstance(value, list) and all(isinstance(one, Mapping) for one in value):
        reader = _label_studio
    elif isinstance(value, Mapping) and {"labels", "classes"} <= value.keys():
        reader = _fiftyone
    elif value is None and (suffix != ".csv" or b"Scene Number" in data[:1_000_000]):
        value, reader = data, READERS.get(suffix)
    if reader is None:
        return None
    if suffix in (".eaf", ".xml") and b"<!ENTITY" in data:
        raise LabelError(f"{path}: declares entities, which it doesn't need; export it again")
    try:
        return _entries(reader(path, value, rate), path)
    except OngebdError:
        raise
    except Exception as problem:  # noqa: BLE001 - the libraries meet what strangers wrote
        why = f"{type(problem).__name__}: {' '.join(str(problem).split())[:200]}"
        raise LabelError(f"{path}: not what its program writes ({why}); export it again") from None


def _entries(marked: Marked, path: Path) -> tuple[dict[object, object], list[str]]:
    entries: dict[object, object] = {}
    assumed = 0
    for name, (duration, people) in marked.items():
        where = f"{path}: video {name!r}"
        for start, end in (span for spans in people.values() for span in spans):
            if number(end, where) < number(start, where):
                raise LabelError(f"{where}: a segment ends at {end:g} s, before it starts at {start:g} s")
        last = max((end for spans in people.values() for _, end in spans), default=None)
        if (length := duration or last) is None:
            continue
        assumed += duration is None
        times = [
            sorted({round(time, 6) for span in spans for time in span if _EDGE <= time <= length - _EDGE})
            for spans in people.values()
        ]
        entries[name] = {"duration": length, "boundaries": times or [[]]}
    if not entries:
        raise LabelError(f"{path}: no segment in it; is it the right file?")
    notes = ["boundaries are the starts and ends of segments; equal times count once"]
    return entries, notes + ([f"{videos(assumed)} assumed to end with the last segment"] if assumed else [])


def _elan(path: Path, data: bytes, _rate: Fraction | None) -> Marked:
    """An ELAN document, whose tiers are annotators."""
    root = ElementTree.fromstring(read_text(data, path))
    slots = {slot.get("TIME_SLOT_ID"): slot.get("TIME_VALUE") for slot in root.iter("TIME_SLOT")}
    tiers: dict[str, Spans] = {}
    for tier in root.iter("TIER"):
        for cell in tier.iter("ALIGNABLE_ANNOTATION"):
            start, end = (slots.get(cell.get(f"TIME_SLOT_REF{end}")) for end in (1, 2))
            if start is not None and end is not None:  # the others are drawn between their neighbours
                span = tuple(parse_number(one, f"{path}, TIME_SLOT") / 1000 for one in (start, end))
                tiers.setdefault(tier.get("TIER_ID", ""), []).append(span)  # type: ignore[arg-type]
    return _alone(path, tiers)


def _scenes(path: Path, data: bytes, _rate: Fraction | None) -> Marked:
    """A list of PySceneDetect, with or without its first line of time codes."""
    first, _, rest = data.partition(b"\n")
    rows = table_rows(data if b"Scene Number" in first else rest, path, set(_SCENE))
    return _alone(path, [[parse_number(row[name], where) for name in _SCENE] for where, row in rows])


def _chapters(path: Path, _data: bytes, _rate: Fraction | None) -> Marked:
    """Those of a video."""
    from ongebd.video.source import open_container, source_errors  # here, because PyAV is slow to import

    with source_errors(path), open_container(path) as file:
        begin = sum((one.start_time or 0) * (one.time_base or 1) for one in file.streams.video[:1])
        marks = [(one["start"], one["end"], one["time_base"] or 1) for one in file.chapters()]
    return _alone(path, [(float(a * base - begin), float(b * base - begin)) for a, b, base in marks])


def _timeline(path: Path, data: bytes, rate: Fraction | None) -> Marked:
    """The clips on the first video track of an EDL, OTIO or Final Cut Pro 7 file, by the timeline's clock."""
    otio = import_extra("opentimelineio", "editors")
    text, how = read_text(data, path), dict[str, float]()
    adapter = {".edl": "cmx_3600", ".otio": "otio_json", ".xml": "fcp_xml"}[path.suffix.lower()]
    if adapter == "cmx_3600":
        said = re.search(r"^\* ongebd: .*; frame rate ([1-9]\d*(?:/[1-9]\d*)?)$", text, re.MULTILINE)
        how = {"rate": _known(path, Fraction(said[1]) if said else rate)}
    elif adapter == "otio_json":
        parse_json(data, path)  # OpenTimelineIO's reader of JSON trusts its depth
    read = otio.adapters.read_from_string(text, adapter, **how)
    track = (read[0] if isinstance(read, otio.schema.SerializableCollection) else read).video_tracks()[0]
    places = track.range_of_all_children().items()
    spans = [span for child, span in places if isinstance(child, otio.schema.Clip)]
    times = [(one.start_time.to_seconds(), one.end_time_exclusive().to_seconds()) for one in spans]
    return _alone(path, sorted(times))


READERS: dict[str, Callable[[Path, bytes, Fraction | None], Marked]] = {
    **dict.fromkeys(MUXERS, _chapters),
    **dict.fromkeys((".edl", ".otio", ".xml"), _timeline),
    ".eaf": _elan,
    ".csv": _scenes,
}
"""By the ending of a file's name. The content tells what a .json is."""


def _label_studio(path: Path, tasks: Any, rate: Fraction | None) -> Marked:
    """Tasks with timeline labels; what a model predicted counts only where nobody annotated."""
    marked: Marked = {}
    for task in tasks:
        about, people = task["data"], dict[str, Spans]()
        source = about.get("video") or next(one for one in about.values() if isinstance(one, str))
        for order, done in enumerate(task.get("annotations") or task.get("predictions") or (), 1):
            values = (result["value"] for result in done["result"] if not done.get("was_cancelled"))
            ranges = [(one["start"], one["end"]) for value in values for one in value.get("ranges", ())]
            people[f"annotator {order}"] = _seconds(path, ranges, about.get("fps") or rate)
        marked[_video(source)] = about.get("duration"), people
    return marked


def _fiftyone(path: Path, value: Any, rate: Fraction | None) -> Marked:
    """The labels.json of a FiftyOneTemporalDetectionDataset."""
    marked: Marked = {}
    for name, rows in value["labels"].items():
        people: dict[str, Spans] = {}
        for row in rows or ():
            pair = row["timestamps"] if "timestamps" in row else _seconds(path, [row["support"]], rate)[0]
            who = (row.get("attributes") or {}).get("annotator", "")
            people.setdefault(str(who), []).append((pair[0], pair[1]))
        marked[str(name)] = (None, people)
    return marked


def _seconds(path: Path, ranges: Sequence[Sequence[float]], rate: Any) -> Spans:
    """Of ranges of frames that count from 1; the last frame belongs to its range."""
    return [((first - 1) / _known(path, rate), last / _known(path, rate)) for first, last in ranges]


def _known(path: Path, rate: Any) -> float:
    if not rate:
        raise LabelError(f"{path}: counts frames but has no frame rate; use `ongebd convert --fps RATE`")
    return float(rate)


def _alone(path: Path, spans: Any) -> Marked:
    """What a file says of one video, which has its name."""
    return {_video(path.name): (None, spans if isinstance(spans, dict) else {"": spans})}


def _video(name: str) -> str:
    """The id of a video from a file's name or an address: without what Label Studio and we add to it."""
    stem = Path(name.split("?")[0].replace("\\", "/")).stem
    ours = r"[-.](scenes|labelstudio|fiftyone|gebd)$"
    return re.sub(rf"^[0-9a-f]{{8}}-(?=.)|{ours}", "", stem, flags=re.IGNORECASE)
