"""Labels in the official schema, `id → {video_duration, substages_timestamps, …}`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from ongebd.data.keys import UnreadKeys
from ongebd.data.label_set import LabelSet, VideoLabels, order_notes, video_labels
from ongebd.data.numbers import FloatArray, kind, number, number_list
from ongebd.data.numbers import videos as count_of
from ongebd.errors import LabelError

# 1y60SfvKbxY_s00002_79_481_81_895: the video, the shot, and from 79.481 s to 81.895 s of it.
TAPOS_INSTANCE = re.compile(r"(?P<video>.+)_s\d+_(?P<from>\d+_\d{1,3})_(?P<to>\d+_\d{1,3})")

_KEYS = {
    *("video_duration", "substages_timestamps", "substages_myframeidx", "fps", "num_frames"),
    *("f1_consis", "f1_consis_avg", "path_video", "path_frame"),
}


def from_official_schema(
    entries: Mapping[object, object],
    *,
    dataset: str = "auto",
    source: str | None = None,
    sha256: str | None = None,
    notes: Sequence[str] = (),
) -> LabelSet:
    """A label set from a dict in the official schema.

    Keys read: `video_duration` (seconds), `substages_timestamps` (a list an annotator, seconds), and where
    they are there `fps`, `num_frames`, `substages_myframeidx`, `f1_consis`, `f1_consis_avg`. Files made
    before May 2022 have frame numbers only; their times are frame number / fps, and a note counts them.

    Args:
        entries: The dict.
        dataset: "auto" goes by `recognised_dataset`. "tapos" reads `num_frames` as the last frame number
            (there it is end − start of the instance, one less than the official length); all others read it
            as a count.
        source: The file, for messages and reports.
        sha256: The file's fingerprint.
        notes: Lines to hand on.

    Raises:
        LabelError: Where a key is missing or a value is not what it should be; it names the video and the
            key.

    Examples:
        >>> entry = {"video_duration": 10.0, "substages_timestamps": [[2.0, 5.0], [2.1]]}
        >>> labels = from_official_schema({"a": entry})
        >>> len(labels.videos["a"].boundaries)
        2
    """
    name = source or "labels"
    lines = list(notes)
    if dataset == "auto":
        dataset, doubts = recognised_dataset(entries)
        lines += doubts
    videos: dict[str, VideoLabels] = {}
    unread = UnreadKeys(_KEYS)
    rebuilt = 0
    for key, entry in entries.items():
        video_id = _text(key)
        where = f"{name}: video {video_id!r}"
        if not isinstance(entry, Mapping):
            raise LabelError(f"{where}: a dict is wanted, not {kind(entry)}; is this a file of predictions?")
        rebuilt += "substages_timestamps" not in entry and "substages_myframeidx" in entry
        if video_id in videos:
            raise LabelError(f"{where}: stands twice; keep one of them")
        unread.see(entry)
        videos[video_id] = _video(video_id, entry, where, dataset)
    lines += unread.notes()
    if rebuilt:
        lines.append(
            f"{count_of(rebuilt)} with frame numbers only (a file from before May 2022): time = frame / fps"
        )
    return LabelSet(videos, dataset, source, sha256, (*lines, *order_notes(videos.values())))


def recognised_dataset(entries: Mapping[object, object]) -> tuple[str, list[str]]:
    """Which set a dict in the official schema is, and a line where that cannot be told for certain.

    TAPOS and Kinetics-GEBD have the same keys. In TAPOS every id names an instance, a stretch of a video,
    and every entry has one annotator; in Kinetics-GEBD the ids are those of videos.

    Examples:
        >>> recognised_dataset({"1y60SfvKbxY_s00002_79_481_81_895": {"substages_timestamps": [[1.7]]}})
        ('tapos', [])
    """
    instances = sum(TAPOS_INSTANCE.fullmatch(_text(key)) is not None for key in entries)
    single = all(_annotator_count(entry) == 1 for entry in entries.values())
    if single and instances == len(entries):
        return "tapos", []
    doubt = ""
    if instances:
        which = "" if single else ", but not every entry has one annotator"
        doubt = f"{instances} of {len(entries)} ids are those of TAPOS instances{which}"
    elif single and entries:
        doubt = "each video has one annotator, as in TAPOS, but the ids are not those of TAPOS instances"
    return "kinetics-gebd", [f"{doubt}: scored as kinetics-gebd; say which it is with --dataset"] * bool(
        doubt
    )


def _annotator_count(entry: object) -> int | None:
    if not isinstance(entry, Mapping):
        return None
    rows = entry.get("substages_timestamps", entry.get("substages_myframeidx"))
    return len(rows) if isinstance(rows, Sequence) else None


def _text(key: object) -> str:
    return key.decode("latin1") if isinstance(key, bytes) else str(key)


def _video(video_id: str, entry: Mapping[object, object], where: str, dataset: str) -> VideoLabels:
    duration = number(_required(entry, "video_duration", where), f"{where}, video_duration")
    if duration <= 0:
        raise LabelError(f"{where}: video_duration is {duration}; it must be above 0")
    fps = _optional_number(entry, "fps", where)
    if fps is not None and fps <= 0:
        raise LabelError(f"{where}: fps is {fps}; it must be above 0")
    frames = _optional_number(entry, "num_frames", where)
    frame_boundaries = _annotators(entry, "substages_myframeidx", where)
    boundaries = _annotators(entry, "substages_timestamps", where)
    if boundaries is None:
        if frame_boundaries is None or fps is None:
            raise LabelError(
                f"{where}: 'substages_timestamps' is missing; the official schema needs it "
                "(or 'substages_myframeidx' with 'fps')"
            )
        boundaries = tuple(times / fps for times in frame_boundaries)
    if not boundaries:
        raise LabelError(
            f"{where}: 'substages_timestamps' has no annotator; give at least one list (it may be empty)"
        )
    consistency = entry.get("f1_consis")
    return video_labels(
        where.removesuffix(f": video {video_id!r}"),
        id=video_id,
        duration=duration,
        boundaries=boundaries,
        consistency=_optional_number(entry, "f1_consis_avg", where),
        annotator_consistency=()
        if consistency is None
        else tuple(number_list(consistency, f"{where}, f1_consis").tolist()),
        fps=fps,
        last_frame=None if frames is None else int(frames) - (dataset != "tapos"),
        frame_boundaries=frame_boundaries or _to_frames(boundaries, fps),
    )


def _required(entry: Mapping[object, object], key: str, where: str) -> object:
    if key not in entry:
        raise LabelError(f"{where}: {key!r} is missing; the official schema needs it")
    return entry[key]


def _optional_number(entry: Mapping[object, object], key: str, where: str) -> float | None:
    value = entry.get(key)
    return None if value is None else number(value, f"{where}, {key}")


def _annotators(entry: Mapping[object, object], key: str, where: str) -> tuple[FloatArray, ...] | None:
    """One array an annotator, or None where the key is missing."""
    value = entry.get(key)
    if value is None:
        return None
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        raise LabelError(
            f"{where}, {key}: a list with a list for each annotator is wanted, not {kind(value)}"
        )
    return tuple(
        number_list(times, f"{where}, {key}, annotator {order}") for order, times in enumerate(value)
    )


def _to_frames(boundaries: tuple[FloatArray, ...], fps: float | None) -> tuple[FloatArray, ...]:
    return () if fps is None else tuple(np.floor(times * fps) for times in boundaries)
