"""Segments as labels: for ELAN, Label Studio and FiftyOne, our own, and those of Kinetics-GEBD."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from datetime import UTC, datetime
from math import floor
from typing import Any
from xml.etree import ElementTree

from ongebd.common.text import printable, public_name, shortened
from ongebd.errors import ConfigError
from ongebd.output.jsonl import Recording
from ongebd.output.runs import address_of, name_of
from ongebd.output.text import ticks
from ongebd.output.writer import Frames, mark

Element = ElementTree.SubElement
_SCHEMA = "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"


def own(runs: Sequence[Recording]) -> str:
    """Our own JSON: durations and boundaries in seconds, a list for each annotator."""
    videos = _videos(runs).items()
    return _json(
        {
            name: {"duration": some[0].duration, "boundaries": list(map(_times, some))} | _made_by(some[0])
            for name, some in videos
        }
    )


def gebd_json(runs: Sequence[Recording]) -> str:
    """The schema of Kinetics-GEBD, as JSON."""
    return _json(_official(runs))


def gebd_pickle(runs: Sequence[Recording]) -> bytes:
    """The schema of Kinetics-GEBD, pickled as the published labels are."""
    return pickle.dumps(_official(runs), protocol=4)


def label_studio(runs: Sequence[Recording]) -> str:
    """Tasks with timeline labels; their frames count from 1. What we found are predictions."""
    tasks = []
    for some in _videos(runs).values():
        header, frames = some[0].header, Frames(some[0].header)
        found = bool(header.version)  # labels of people come without our version
        data = {"video": public_name(header.source), "fps": float(frames.rate), "duration": some[0].duration}
        results = []
        for run in some:
            regions = []
            for number, one in enumerate(run.segments, 1):
                span = {"start": frames(one.start) + 1, "end": max(frames(one.start) + 1, frames(one.end))}
                value = {"ranges": [span], "timelinelabels": ["Event"]}
                where = {"from_name": "events", "to_name": "video", "type": "timelinelabels"}
                regions.append({"id": f"event{number}", **where, "value": value})
            results.append({"result": regions} | ({"model_version": run.header.model} if found else {}))
            run.warnings.extend(frames.note())
        data["made_by"] = mark(header.source)
        tasks.append({"data": data, "predictions" if found else "annotations": results})
    return _json(tasks)


def fiftyone(runs: Sequence[Recording]) -> str:
    """Temporal detections, as FiftyOneTemporalDetectionDataset imports them."""
    labels: dict[str, list[Any]] = {}
    for name, some in _videos(runs).items():
        for run in some:
            more = {"attributes": {"annotator": run.header.model}} if len(some) > 1 else {}
            labels.setdefault(name, []).extend(
                {"label": "Event", "timestamps": [round(one.start, 6), round(one.end, 6)]} | more
                for one in run.segments
            )
    made_by = [mark(run.header.source) for run in runs]
    return _json({"classes": ["Event"], "made_by": made_by, "labels": labels})


def elan(runs: Sequence[Recording]) -> str:
    """An ELAN annotation document, with a tier for each annotator; times in milliseconds."""
    if len(videos := _videos(runs)) > 1:
        names = shortened(", ".join(videos), 80)
        raise ConfigError(f"an ELAN file holds one video, not {len(videos)}; add --video with one of {names}")
    root = ElementTree.Element("ANNOTATION_DOCUMENT", AUTHOR="ongebd", FORMAT="3.0", VERSION="3.0")
    root.set("{http://www.w3.org/2001/XMLSchema-instance}noNamespaceSchemaLocation", _SCHEMA)
    root.set("DATE", datetime.now(UTC).isoformat(timespec="seconds"))
    head = Element(root, "HEADER", MEDIA_FILE="", TIME_UNITS="milliseconds")
    Element(head, "MEDIA_DESCRIPTOR", MEDIA_URL=address_of(runs[0]), MIME_TYPE="video/*")
    Element(head, "PROPERTY", NAME="made by").text = mark(runs[0].header.source)
    order, count = Element(root, "TIME_ORDER"), 0
    for place, run in enumerate(runs, 1):
        name = "events" if len(runs) == 1 else f"annotator {place}"
        tier = Element(root, "TIER", LINGUISTIC_TYPE_REF="event", TIER_ID=name)
        for number, one in enumerate(run.segments, 1):
            count += 1
            cell = Element(Element(tier, "ANNOTATION"), "ALIGNABLE_ANNOTATION", ANNOTATION_ID=f"a{count}")
            for end, time in ((1, one.start), (2, one.end)):
                slot = f"ts{2 * count + end}"
                Element(order, "TIME_SLOT", TIME_SLOT_ID=slot, TIME_VALUE=str(ticks(time)))
                cell.set(f"TIME_SLOT_REF{end}", slot)
            Element(cell, "ANNOTATION_VALUE").text = f"Event {number}"
    Element(root, "LINGUISTIC_TYPE", LINGUISTIC_TYPE_ID="event", TIME_ALIGNABLE="true")
    ElementTree.indent(root)
    return ElementTree.tostring(root, "unicode", xml_declaration=True) + "\n"


def _videos(runs: Sequence[Recording]) -> dict[str, list[Recording]]:
    """The runs of each video by its id."""
    videos: dict[str, list[Recording]] = {}
    for run in runs:
        videos.setdefault(printable(name_of(run)), []).append(run)
    return videos


def _official(runs: Sequence[Recording]) -> dict[str, dict[str, Any]]:
    official = {}
    for name, some in _videos(runs).items():
        header, duration, times = some[0].header, some[0].duration, [_times(run) for run in some]
        entry: dict[str, Any] = {"video_duration": duration, "substages_timestamps": times}
        agree = [run.header.settings.get("consistency") or float(len(some) == 1) for run in some]
        if all(agree):
            entry |= {"f1_consis": agree, "f1_consis_avg": sum(map(float, agree)) / len(agree)}
        if header.rate is not None:
            frames = Frames(header)
            last = max(frames(duration) - 1, 0)
            numbers = [[min(last, floor(time * frames.rate)) for time in row] for row in times]
            entry |= {"fps": float(frames.rate), "num_frames": last + 1, "substages_myframeidx": numbers}
        official[name] = entry | {"path_video": public_name(header.source)} | _made_by(some[0])
    return official


def _made_by(run: Recording) -> dict[str, str]:
    """What says whose result it is; labels of people are nobody's."""
    return {"made_by": mark(run.header.source)} if run.header.version else {}


def _times(run: Recording) -> list[float]:
    return sorted(round(boundary.time, 6) for boundary in run.boundaries)


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
