"""Labels as dicts: the official schema, `id → {video_duration, substages_timestamps, …}`, and our own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ongebd.data.files import FloatArray, UnreadKeys, is_list, kind, number, number_list
from ongebd.data.files import videos as count_of
from ongebd.data.label_set import LabelSet, VideoLabels
from ongebd.errors import LabelError

# 1y60SfvKbxY_s00002_79_481_81_895: the video, its shot, and from 79.481 s to 81.895 s of the shot.
TAPOS_INSTANCE = re.compile(r"(?P<shot>.+_s\d+)_(?P<from>\d+_\d{1,3})_(?P<to>\d+_\d{1,3})")


@dataclass(frozen=True)
class Schema:
    """What a schema calls the parts of an entry. A misspelt key is refused where `strict`."""

    duration: str
    times: str
    consistency: str
    others: tuple[str, ...]
    strict: bool


TIMES, FRAMES, KINDS = "substages_timestamps", "substages_myframeidx", "kinds"
OFFICIAL = Schema(
    "video_duration",
    TIMES,
    "f1_consis_avg",
    ("fps", FRAMES, "num_frames", "f1_consis", "path_video", "path_frame", KINDS, "made_by"),
    strict=False,
)
OWN = Schema("duration", "boundaries", "consistency", ("fps", KINDS, "made_by"), strict=True)


def from_dict(
    entries: Mapping[object, object],
    schema: Schema = OFFICIAL,
    dataset: str = "auto",
    source: str | None = None,
    sha256: str | None = None,
    notes: Sequence[str] = (),
) -> LabelSet:
    """A label set from a dict.

    Official files made before May 2022 have frame numbers only (`substages_myframeidx`). Their times are
    frame number / fps, and a note counts them.

    Args:
        entries: The dict.
        schema: Its schema.
        dataset: "auto" calls `recognised_dataset`. "tapos" reads `num_frames` as the last frame number (there
            it is end − start of the instance, one less than the official length); all others as a count.
        source: The file, for messages and reports.
        sha256: The file's fingerprint.
        notes: Lines to pass on.

    Raises:
        LabelError: A key is missing or a value isn't what it should be; names the video and the key.

    >>> entry = {"video_duration": 10.0, "substages_timestamps": [[2.0, 5.0], [2.1]]}
    >>> len(from_dict({"a": entry}).videos["a"].boundaries)
    2
    """
    lines = list(notes)
    if dataset == "auto":
        dataset, doubts = recognised_dataset(entries)
        lines += doubts
    videos: dict[str, VideoLabels] = {}
    unread = UnreadKeys(schema.duration, schema.times, schema.consistency, *schema.others)
    unsorted = outside = empty = frames_only = 0
    for key, entry in entries.items():
        video_id = _text(key)
        where = f"{source or 'labels'}: video {video_id!r}"
        if video_id in videos:
            raise LabelError(f"{where}: occurs twice; keep one of them")
        if not isinstance(entry, Mapping):
            raise LabelError(f"{where}: must be a dict, not {kind(entry)}; is this a file of predictions?")
        unread.see(entry, where if schema.strict else None)
        frames_only += FRAMES in entry and schema.times not in entry
        video = videos[video_id] = _video(video_id, entry, where, schema, source, dataset)
        unsorted += any((np.diff(times) < 0).any() for times in video.boundaries)
        outside += any(((times < 0) | (times > video.duration)).any() for times in video.boundaries)
        empty += any(not len(times) for times in video.boundaries)
    counts = {
        "frame numbers only (a file from before May 2022): time = frame / fps": frames_only,
        "boundaries out of order (kept so, as the official rule does)": unsorted,
        "boundaries before 0 or after the end (kept, as the official rule does)": outside,
        "an annotator who saw no boundary": empty,
    }
    lines += unread.notes() + [f"{count_of(count)} with {what}" for what, count in counts.items() if count]
    return LabelSet(videos, dataset, source, sha256, tuple(lines))


def recognised_dataset(entries: Mapping[object, object]) -> tuple[str, list[str]]:
    """Which set a dict in the official schema is, and a note where that isn't certain.

    TAPOS and Kinetics-GEBD have the same keys. In TAPOS every id names an instance, a stretch of a video,
    and every entry has one annotator; in Kinetics-GEBD the ids are those of videos.

    >>> recognised_dataset({"1y60SfvKbxY_s00002_79_481_81_895": {"substages_timestamps": [[1.7]]}})
    ('tapos', [])
    """
    instances = sum(TAPOS_INSTANCE.fullmatch(_text(key)) is not None for key in entries)
    single = sum(_annotator_count(entry) == 1 for entry in entries.values())
    if single == instances == len(entries):
        return "tapos", []
    if not instances and single < len(entries):
        return "kinetics-gebd", []
    doubt = f"{instances} of {len(entries)} ids are those of TAPOS instances, {single} have one annotator"
    return "kinetics-gebd", [f"{doubt}: scored as kinetics-gebd; choose with --dataset"]


def _annotator_count(entry: object) -> int | None:
    rows = entry.get(TIMES, entry.get(FRAMES)) if isinstance(entry, Mapping) else None
    return len(rows) if is_list(rows) else None


def _text(key: object) -> str:
    return key.decode("latin1") if isinstance(key, bytes) else str(key)


def _video(
    video_id: str,
    entry: Mapping[object, object],
    where: str,
    schema: Schema,
    source: str | None,
    dataset: str,
) -> VideoLabels:
    def optional(key: str) -> float | None:
        value = entry.get(key)
        return None if value is None else number(value, f"{where}, {key}")

    fps, frames, duration = optional("fps"), optional("num_frames"), optional(schema.duration)
    if duration is None:
        raise LabelError(f"{where}: {schema.duration!r} is missing")
    boundaries = _annotators(entry, schema.times, where)
    frame_boundaries = _annotators(entry, FRAMES, where)
    if boundaries is None:
        if frame_boundaries is None or not fps:
            raise LabelError(f"{where}: {schema.times!r} is missing")
        boundaries = tuple(times / fps for times in frame_boundaries)
    if not frame_boundaries and fps and schema is OFFICIAL:
        frame_boundaries = tuple(np.floor(times * fps) for times in boundaries)
    return VideoLabels(
        id=video_id,
        duration=duration,
        boundaries=boundaries,
        consistency=optional(schema.consistency),
        annotator_consistency=tuple(
            number_list(entry.get("f1_consis") or [], f"{where}, f1_consis").tolist()
        ),
        fps=fps,
        last_frame=None if frames is None else int(frames) - (dataset != "tapos"),
        frame_boundaries=frame_boundaries or (),
        kinds=_kinds(entry.get(KINDS), f"{where}, {KINDS}"),
        source=source or "labels",
    )


def _kinds(rows: object, where: str) -> tuple[tuple[str, ...], ...]:
    """A list of words per annotator, or, of the only one, its words."""
    if rows is None:
        return ()
    found = []
    for row in rows if is_list(rows) and any(map(is_list, rows)) else [rows]:
        if not is_list(row) or not all(isinstance(word, str) for word in row):
            raise LabelError(f'{where}: must hold words, such as ["cut", "event"], one for each boundary')
        found.append(tuple(map(str, row)))
    return tuple(found)


def _annotators(entry: Mapping[object, object], key: str, where: str) -> tuple[FloatArray, ...] | None:
    """One array per annotator; None where the key is missing."""
    rows = entry.get(key)
    if rows is None:
        return None
    if not is_list(rows):
        raise LabelError(f"{where}, {key}: must hold one list per annotator, not {kind(rows)}")
    if key == OWN.times and not any(map(is_list, rows)):  # the only annotator's
        rows = [rows]
    return tuple(number_list(row, f"{where}, {key}, annotator {order}") for order, row in enumerate(rows))
