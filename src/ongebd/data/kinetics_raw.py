"""The raw Kinetics-GEBD annotation, and its conversion to the official labels.

The raw files (`k400_*_raw_annotation.pkl`) hold what each annotator marked: a moment or a range with a label
of the form "EventChange …", "ShotChangeGradualRange: …" or "ShotChangeImmediateTimestamp: …". The conversion
follows the published recipe, its oddities included, because every published score rests on them:

1. A mark counts as its midpoint. One nearer than 0.3 s to the start or the end of the video is left out.
2. Gradual shot changes that overlap their successor (in the annotator's order) are merged.
3. Moments within 0.3 s of a gradual shot change are left out. (The recipe deletes from the list that it is
   walking, so the neighbour of a deleted moment is passed over.)
4. Among events, and among immediate shot changes, the second of two within 0.6 s is left out.
5. Events within 0.6 s of an immediate shot change are left out. (The recipe stops before the last shot
   change.)
6. What is left, with the midpoints of the gradual changes, is sorted.

Two generations of converted files exist. The recipe of 2021 kept frame numbers only, floor(t · fps) and at
most the last frame, so that a time read from its files lies up to one frame early; since May 2022 it keeps
the exact midpoints beside them. Figures from the two are not comparable to the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from ongebd.data.numbers import kind, number, videos
from ongebd.errors import LabelError

Generation = Literal["2021", "2022"]

MIN_ANNOTATORS = 3
"""Videos with fewer annotators are not part of the official labels ("mr345")."""


def is_raw_annotation(entries: Mapping[object, object]) -> bool:
    """Whether a dict is the raw annotation: its marks are dicts with a start, an end and a label."""
    for entry in entries.values():
        if not isinstance(entry, Mapping):
            return False
        annotators = entry.get("substages_timestamps")
        if not isinstance(annotators, Sequence) or isinstance(annotators, str):
            return False
        for marks in annotators:
            if isinstance(marks, Sequence) and not isinstance(marks, str) and len(marks):
                return isinstance(marks[0], Mapping)
    return False


def convert_raw_annotation(
    entries: Mapping[object, object],
    *,
    generation: Generation = "2022",
    min_change: float = 0.3,
    source: str = "labels",
) -> tuple[dict[object, object], list[str]]:
    """The official schema from the raw annotation.

    Args:
        entries: `id → {fps, num_frames, video_duration, f1_consis, f1_consis_avg, path_video,
            substages_timestamps}`.
        generation: "2022" for exact midpoints, "2021" for the times of whole frames.
        min_change: Seconds, the 0.3 of the rules above.
        source: The file, for messages.

    Returns:
        The dict, and lines that count what the official recipe leaves out.

    Raises:
        LabelError: Where a mark is not what it should be; it names the video and the annotator.
    """
    converted: dict[object, object] = {}
    few = incomplete = 0
    for key, entry in entries.items():
        where = f"{source}: video {str(key)[:80]!r}"
        if not isinstance(entry, Mapping):
            raise LabelError(f"{where}: a dict is wanted, not {kind(entry)}")
        annotators = entry.get("substages_timestamps")
        if not isinstance(annotators, Sequence) or isinstance(annotators, str):
            raise LabelError(f"{where}: 'substages_timestamps' is missing or no list")
        if len(annotators) < MIN_ANNOTATORS:
            few += 1
        elif any(
            entry.get(name) is None for name in ("fps", "num_frames", "video_duration", "f1_consis_avg")
        ):
            incomplete += 1
        else:
            converted[key] = _convert_video(entry, annotators, where, generation, min_change)
    notes = [f"converted from the raw annotation, generation {generation}, rules of {min_change:g} s"]
    if few:
        notes.append(
            f"{videos(few)} with fewer than {MIN_ANNOTATORS} annotators left out, as in the official recipe"
        )
    if incomplete:
        notes.append(
            f"{videos(incomplete)} without fps, num_frames, duration or f1_consis_avg left out, likewise"
        )
    return converted, notes


def _convert_video(
    entry: Mapping[object, object],
    annotators: Sequence[object],
    where: str,
    generation: Generation,
    min_change: float,
) -> dict[object, object]:
    duration = number(entry["video_duration"], f"{where}, video_duration")
    fps = number(entry["fps"], f"{where}, fps")
    frames = int(number(entry["num_frames"], f"{where}, num_frames"))
    if fps <= 0:
        raise LabelError(f"{where}: fps is {fps}; it must be above 0")
    times = [
        annotator_boundaries(marks, duration, min_change, f"{where}, annotator {order}")
        for order, marks in enumerate(annotators)
    ]
    indices = [[float(min(frames - 1, math.floor(time * fps))) for time in row] for row in times]
    if generation == "2021":
        times = [[index / fps for index in row] for row in indices]
    return {**entry, "substages_timestamps": times, "substages_myframeidx": indices}


def annotator_boundaries(marks: object, duration: float, min_change: float, where: str) -> list[float]:
    """One annotator's marks as sorted boundaries, seconds: rules 1 to 6 of this module.

    Args:
        marks: Dicts with `start_time`, `end_time` (seconds) and `label`.
        duration: The video's, seconds.
        min_change: Seconds.
        where: For messages.

    Examples:
        >>> mark = lambda start, end, label: {"start_time": start, "end_time": end, "label": label}
        >>> marks = [mark(2.0, 2.4, "EventChange (Range): x"), mark(2.5, 2.5, "EventChange (Range): x")]
        >>> annotator_boundaries(marks, 10.0, 0.3, "clip")
        [2.2]
    """
    events: list[float] = []
    shots: list[float] = []
    starts: list[float] = []
    ends: list[float] = []
    for start, end, label in _read_marks(marks, where):
        middle = (start + end) / 2
        if middle < min_change or middle > duration - min_change:
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
    _drop_near_ranges(events, ranges, min_change)
    _drop_near_ranges(shots, ranges, min_change)
    events.sort()
    shots.sort()
    _drop_close_successors(events, 2 * min_change)
    _drop_close_successors(shots, 2 * min_change)
    for shot in shots[:-1]:  # the recipe never looks at the last shot change
        events = [event for event in events if not abs(shot - event) <= 2 * min_change]
    return sorted(events + shots + [(start + end) / 2 for start, end in ranges])


def _read_marks(marks: object, where: str) -> list[tuple[float, float, str]]:
    """(start, end, first word of the label) of each mark."""
    if not isinstance(marks, Sequence) or isinstance(marks, str):
        raise LabelError(f"{where}: a list of marks is wanted, not {kind(marks)}")
    result = []
    for position, mark in enumerate(marks, start=1):
        spot = f"{where}, mark {position}"
        if not isinstance(mark, Mapping) or not {"start_time", "end_time", "label"} <= mark.keys():
            raise LabelError(f"{spot}: a dict with start_time, end_time and label is wanted")
        label = mark["label"]
        if not isinstance(label, str):
            raise LabelError(f"{spot}: the label must be text, not {kind(label)}")
        start = number(mark["start_time"], f"{spot}, start_time")
        result.append((start, number(mark["end_time"], f"{spot}, end_time"), label.split(" ")[0]))
    return result


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


def _drop_near_ranges(moments: list[float], ranges: list[tuple[float, float]], margin: float) -> None:
    """Drop, in place, moments within `margin` of a range, passing over those after a dropped one."""
    index = 0
    while index < len(moments):
        moment = moments[index]
        if any(start - margin <= moment <= end + margin for start, end in ranges):
            moments.remove(moment)  # the list shortens, so that the next index skips one: as in the recipe
        index += 1


def _drop_close_successors(moments: list[float], gap: float) -> None:
    """Drop, in place, each moment that follows the last kept one within `gap`."""
    index = 0
    while index < len(moments) - 1:
        if moments[index + 1] - moments[index] <= gap:
            moments.remove(moments[index + 1])
        else:
            index += 1
