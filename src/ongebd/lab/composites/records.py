"""What is written beside the videos, and read again: labels in the official schema, and the whole truth.

`labels.json` holds what `ongebd evaluate --labels` reads: one annotator, for the truth is known.
`composites.json` holds that and all else: kinds and spans of boundaries, distractors, parts, clips, settings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ongebd.data.files import parse_json, read_bytes
from ongebd.data.label_dicts import from_official_schema
from ongebd.data.label_set import LabelSet
from ongebd.data.numbers import kind as kind_of
from ongebd.data.numbers import number
from ongebd.errors import LabelError, OngebdError
from ongebd.lab.composites.plan import VideoPlan

LABELS = "labels.json"
TRUTH = "composites.json"
FORMAT = "ongebd composites 1"


@dataclass(frozen=True, slots=True)
class CompositeBoundary:
    """A boundary, known to the frame. Times are those of output frames, seconds.

    Attributes:
        time: Of a sudden one, the first frame that shows what is new; of a dissolve or fade, its centre: the
            frame in which both pictures have the same share, or which is black or white.
        kind: One of `BOUNDARY_KINDS`.
        start: The first frame that shows something of what is new, or, of a fade, less of what was.
        end: The first frame that shows nothing of what was. Of a sudden boundary, all three are the same.
    """

    time: float
    kind: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class CompositeDistractor:
    """What is no event, seconds.

    Attributes:
        start: Its first frame.
        end: The first frame after it.
        kind: One of `DISTRACTOR_KINDS`.
    """

    start: float
    end: float
    kind: str


@dataclass(frozen=True, slots=True)
class CompositeVideo:
    """One composed video.

    Attributes:
        id: Its name in the labels.
        path: The file.
        part: "train", "val" or "test"; "all" where the clips are not parted.
        duration: Seconds.
        fps: Frames a second.
        frames: How many.
        boundaries: In order.
        distractors: In order.
        clips: Names of the clips in it.
    """

    id: str
    path: Path
    part: str
    duration: float
    fps: float
    frames: int
    boundaries: tuple[CompositeBoundary, ...]
    distractors: tuple[CompositeDistractor, ...]
    clips: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Composites:
    """A folder of composed videos.

    Attributes:
        folder: Where they are.
        videos: By id, in the order of the ids.
        settings: With which they were made; `ComposeConfig`'s, and the version.
        clips: By name: the part, the group and the sha256 of each clip that was there.
    """

    folder: Path
    videos: dict[str, CompositeVideo]
    settings: dict[str, Any]
    clips: dict[str, dict[str, str]]

    def labels(self) -> LabelSet:
        """The same labels as in `labels.json`."""
        return from_official_schema(
            {video.id: _official(video) for video in self.videos.values()}, dataset="custom"
        )


def composite_of(plan: VideoPlan, folder: Path) -> CompositeVideo:
    """What is known of a planned video."""

    def at(frame: int) -> float:
        return round(float(frame / plan.fps), 6)

    boundaries = [
        CompositeBoundary(at(join.frame), join.kind, at(join.first), at(join.first + join.frames))
        for join in plan.joins
    ]
    boundaries += [CompositeBoundary(at(each), "natural", at(each), at(each)) for each in plan.naturals]
    return CompositeVideo(
        id=plan.id,
        path=folder / f"{plan.id}.mp4",
        part=plan.part,
        duration=at(plan.frames),
        fps=float(plan.fps),
        frames=plan.frames,
        boundaries=tuple(sorted(boundaries, key=lambda each: each.time)),
        distractors=tuple(
            CompositeDistractor(at(each.first), at(each.stop), each.kind) for each in plan.distractors
        ),
        clips=tuple(plan.clips),
    )


def write_records(
    folder: Path,
    videos: Iterable[CompositeVideo],
    settings: Mapping[str, object],
    clips: Mapping[str, Mapping[str, str]],
) -> None:
    """Write both files, each at once or not at all.

    Raises:
        OngebdError: They cannot be written.
    """
    videos = list(videos)
    truth = {
        "format": FORMAT,
        "settings": dict(settings),
        "clips": {name: dict(facts) for name, facts in clips.items()},
        "videos": {video.id: _whole(video) for video in videos},
    }
    write_at_once(folder / LABELS, _json({video.id: _official(video) for video in videos}))
    write_at_once(folder / TRUTH, _json(truth))


def write_at_once(path: Path, text: str) -> None:
    """Write a text file under another name first, so that a reader never sees half of it.

    Raises:
        OngebdError: It cannot be written.
    """
    aside = path.with_name(f".{path.name}.part")
    try:
        aside.write_text(text, encoding="utf-8", newline="\n")
        aside.replace(path)
    except OSError as problem:
        with suppress(OSError):
            aside.unlink()
        raise OngebdError(
            f"cannot write {path}: {problem.strerror}; free some space or write elsewhere (see --out)"
        ) from None


def read_composites(folder: Path | str) -> Composites:
    """What `ongebd compose` wrote into a folder.

    Args:
        folder: That folder.

    Raises:
        LabelError: It has no `composites.json`, or that is not what it should be.

    >>> for video in read_composites("made").videos.values():  # doctest: +SKIP
    ...     print(video.path, [(each.time, each.kind) for each in video.boundaries])
    """
    folder = Path(folder)
    path = folder / TRUTH
    value = parse_json(read_bytes(path), path)
    if not isinstance(value, Mapping) or value.get("format") != FORMAT:
        raise LabelError(f"{path}: is not {FORMAT!r}; compose the videos anew")
    try:
        videos = {str(name): _read(folder, str(name), entry, path) for name, entry in value["videos"].items()}
        clips = {str(name): dict(facts) for name, facts in value["clips"].items()}
        return Composites(folder, videos, dict(value["settings"]), clips)
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        if isinstance(problem, LabelError):
            raise
        raise LabelError(
            f"{path}: is damaged ({kind_of(problem)}: {problem}); compose the videos anew"
        ) from None


def _json(value: Mapping[str, object]) -> str:
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    # A lone surrogate (of a clip's name that is not UTF-8) becomes \udcXX, just as JSON has it.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _official(video: CompositeVideo) -> dict[str, object]:
    times = [boundary.time for boundary in video.boundaries]
    return {
        "path_video": video.path.name,
        "video_duration": video.duration,
        "fps": video.fps,
        "num_frames": video.frames,
        "f1_consis": [1.0],
        "f1_consis_avg": 1.0,
        "substages_timestamps": [times],
        "substages_myframeidx": [[round(time * video.fps) for time in times]],
    }


def _whole(video: CompositeVideo) -> dict[str, object]:
    return {
        "file": video.path.name,
        "part": video.part,
        "duration": video.duration,
        "fps": video.fps,
        "frames": video.frames,
        "clips": list(video.clips),
        "boundaries": [
            {"time": each.time, "kind": each.kind, "start": each.start, "end": each.end}
            for each in video.boundaries
        ],
        "distractors": [
            {"start": each.start, "end": each.end, "kind": each.kind} for each in video.distractors
        ],
    }


def _read(folder: Path, name: str, entry: Mapping[str, Any], path: Path) -> CompositeVideo:
    def seconds(value: object) -> float:
        return number(value, f"{path}: video {name!r}")

    return CompositeVideo(
        id=name,
        path=folder / Path(str(entry["file"])).name,
        part=str(entry["part"]),
        duration=seconds(entry["duration"]),
        fps=seconds(entry["fps"]),
        frames=int(entry["frames"]),
        boundaries=tuple(
            CompositeBoundary(
                seconds(each["time"]), str(each["kind"]), seconds(each["start"]), seconds(each["end"])
            )
            for each in entry["boundaries"]
        ),
        distractors=tuple(
            CompositeDistractor(seconds(each["start"]), seconds(each["end"]), str(each["kind"]))
            for each in entry["distractors"]
        ),
        clips=tuple(str(clip) for clip in entry["clips"]),
    )
