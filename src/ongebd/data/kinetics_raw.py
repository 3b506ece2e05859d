"""Converts the raw Kinetics-GEBD annotation to the official labels.

The raw files (`k400_*_raw_annotation.pkl`) hold what each annotator marked: a moment or a range with a label
of the form "EventChange …", "ShotChangeGradualRange: …" or "ShotChangeImmediateTimestamp: …". The conversion
follows the published recipe, including its oddities, because every published score rests on them:

1. A mark counts as its midpoint. One nearer than 0.3 s to the start or the end of the video is left out.
2. Gradual shot changes that overlap their successor (in the annotator's order) are merged.
3. Moments within 0.3 s of a gradual shot change are left out. (The recipe deletes from the list that it loops
   over, so it skips the neighbour of a deleted moment.)
4. Among events, and among immediate shot changes, the second of two within 0.6 s is left out.
5. Events within 0.6 s of an immediate shot change are left out. (The recipe stops before the last shot
   change.)
6. What is left, with the midpoints of the gradual changes, is sorted.

Files that were converted before May 2022 hold frame numbers only, floor(t · fps) and at most the last frame,
so their times are up to one frame early and their figures differ in the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ongebd.data.files import is_list, kind, number, videos
from ongebd.errors import LabelError

MIN_ANNOTATORS = 3
"""Videos with fewer annotators are not part of the official labels ("mr345")."""

_MIN_CHANGE = 0.3  # seconds
_TIMES = "substages_timestamps"


def is_raw_annotation(entries: Mapping[object, object]) -> bool:
    """Whether a dict is the raw annotation: its marks are dicts with a start, an end and a label."""
    for entry in entries.values():
        annotators = entry.get(_TIMES) if isinstance(entry, Mapping) else None
        if not is_list(annotators):
            return False
        for marks in annotators:
            if is_list(marks) and marks:
                return isinstance(marks[0], Mapping)
    return False


def convert_raw_annotation(
    entries: Mapping[object, object], source: str = "labels"
) -> tuple[dict[object, object], list[str]]:
    """The official schema from the raw annotation.

    Args:
        entries: `id → {fps, num_frames, video_duration, f1_consis, f1_consis_avg, path_video,
            substages_timestamps}`.
        source: The file, for messages.

    Returns:
        The dict, and notes that count what the official recipe leaves out.

    Raises:
        LabelError: A mark isn't what it should be; names the video and the annotator.
    """
    converted: dict[object, object] = {}
    needed = ("fps", "num_frames", "video_duration", "f1_consis_avg")
    left_out = 0
    for key, entry in entries.items():
        where = f"{source}: video {str(key)[:80]!r}"
        annotators = entry.get(_TIMES) if isinstance(entry, Mapping) else None
        if not isinstance(entry, Mapping) or not is_list(annotators):
            raise LabelError(f"{where}: must be a dict with a list {_TIMES!r}")
        if len(annotators) < MIN_ANNOTATORS or any(entry.get(name) is None for name in needed):
            left_out += 1
        else:
            duration, fps, frames = (
                number(entry[name], f"{where}, {name}") for name in ("video_duration", "fps", "num_frames")
            )
            times = [
                annotator_boundaries(marks, duration, f"{where}, annotator {order}")
                for order, marks in enumerate(annotators)
            ]
            indices = [[float(min(int(frames) - 1, math.floor(time * fps))) for time in row] for row in times]
            converted[key] = {**entry, _TIMES: times, "substages_myframeidx": indices}
    notes = [f"converted from the raw annotation, rules of {_MIN_CHANGE:g} s"]
    if left_out:
        why = f"fewer than {MIN_ANNOTATORS} annotators, or no {', '.join(needed)}"
        notes.append(f"{videos(left_out)} left out by the official recipe ({why})")
    return converted, notes


def annotator_boundaries(marks: object, duration: float, where: str) -> list[float]:
    """One annotator's marks as sorted boundaries, seconds: rules 1 to 6 of this module.

    Args:
        marks: Dicts with `start_time`, `end_time` (seconds) and `label`.
        duration: The video's, seconds.
        where: For messages.

    >>> mark = lambda start, end, label: {"start_time": start, "end_time": end, "label": label}
    >>> marks = [mark(2.0, 2.4, "EventChange (Range): x"), mark(2.5, 2.5, "EventChange (Range): x")]
    >>> annotator_boundaries(marks, 10.0, "clip")
    [2.2]
    """
    events: list[float] = []
    shots: list[float] = []
    starts: list[float] = []
    ends: list[float] = []
    if not is_list(marks):
        raise LabelError(f"{where}: must be a list of marks, not {kind(marks)}")
    for position, mark in enumerate(marks, start=1):
        start, end, label = _read_mark(mark, f"{where}, mark {position}")
        middle = (start + end) / 2
        if middle < _MIN_CHANGE or middle > duration - _MIN_CHANGE:
            continue
        if label == "EventChange":
            events.append(middle)
        elif label == "ShotChangeGradualRange:":
            starts.append(start)
            ends.append(end)
        else:
            shots.append(middle)
    _merge_overlapping(starts, ends)
    ranges = list(zip(starts, ends, strict=True))
    for moments in (events, shots):
        _drop_near_ranges(moments, ranges)
        moments.sort()
        _drop_close_successors(moments)
    for shot in shots[:-1]:  # the recipe never looks at the last shot change
        events = [event for event in events if not abs(shot - event) <= 2 * _MIN_CHANGE]
    return sorted(events + shots + [(start + end) / 2 for start, end in ranges])


def _read_mark(mark: object, where: str) -> tuple[float, float, str]:
    """Start, end and the first word of the label."""
    if not isinstance(mark, Mapping) or not {"start_time", "end_time", "label"} <= mark.keys():
        raise LabelError(f"{where}: must be a dict with start_time, end_time and label")
    label = mark["label"]
    if not isinstance(label, str):
        raise LabelError(f"{where}: the label must be text, not {kind(label)}")
    start, end = (number(mark[name], f"{where}, {name}") for name in ("start_time", "end_time"))
    return start, end, label.split(" ")[0]


def _merge_overlapping(starts: list[float], ends: list[float]) -> None:
    """Merge, in place, each range with those after it that begin before it is over."""
    index = 0
    while index < len(starts) - 1:
        while ends[index] >= starts[index + 1]:
            starts.remove(starts[index + 1])
            ends.remove(ends[index] if ends[index] <= ends[index + 1] else ends[index + 1])
            if index >= len(starts) - 1:
                break
        index += 1


def _drop_near_ranges(moments: list[float], ranges: list[tuple[float, float]]) -> None:
    """Drop, in place, moments near a range. A dropped moment's successor is skipped, as in the recipe."""
    index = 0
    while index < len(moments):
        moment = moments[index]
        if any(start - _MIN_CHANGE <= moment <= end + _MIN_CHANGE for start, end in ranges):
            moments.remove(moment)
        index += 1


def _drop_close_successors(moments: list[float]) -> None:
    """Drop, in place, each moment that follows the last kept one within 0.6 s."""
    index = 0
    while index < len(moments) - 1:
        if moments[index + 1] - moments[index] <= 2 * _MIN_CHANGE:
            moments.remove(moments[index + 1])
        else:
            index += 1
