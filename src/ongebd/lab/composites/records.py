"""What is written beside the videos, and read again: labels in the official schema, and the whole truth.

`labels.json` is for `ongebd evaluate --labels`: one annotator, because the truth is known. `composites.json`
also holds everything else: kinds and spans of boundaries, distractors, parts, clips, settings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ongebd.common.writing import write_whole
from ongebd.data.files import number, parse_json, read_bytes
from ongebd.data.label_dicts import from_dict
from ongebd.data.label_set import LabelSet
from ongebd.errors import LabelError, OngebdError, os_errors
from ongebd.lab.composites.plan import Join, VideoPlan

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
        start: The first frame that shows something new, or, of a fade, less of the old picture.
        end: The first frame that shows nothing old. Of a sudden boundary, all three are the same.
    """

    time: float
    kind: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class CompositeDistractor:
    """What is not an event: its first frame and the first after it, seconds; one of `DISTRACTOR_KINDS`."""

    start: float
    end: float
    kind: str


@dataclass(frozen=True, slots=True)
class CompositeVideo:
    """One composed video.

    Attributes:
        id: Its name in the labels.
        path: The file.
        part: "train", "val" or "test"; "all" where the clips aren't split.
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
        settings: Of `ComposeConfig`, and the version.
        clips: By name: the part, the group and the sha256 of each clip.
    """

    folder: Path
    videos: dict[str, CompositeVideo]
    settings: dict[str, Any]
    clips: dict[str, dict[str, str]]

    def labels(self) -> LabelSet:
        """The same labels as in `labels.json`."""
        official: dict[object, object] = {name: _official(video) for name, video in self.videos.items()}
        return from_dict(official, dataset="custom")


def composite_of(plan: VideoPlan, folder: Path) -> CompositeVideo:
    """What is known of a planned video."""

    def at(frame: int) -> float:
        return round(float(frame / plan.fps), 6)

    joins = (*plan.joins, *(Join("natural", frame) for frame in plan.naturals))
    boundaries = [
        CompositeBoundary(at(join.frame), join.kind, at(join.first), at(join.first + join.frames))
        for join in joins
    ]
    return CompositeVideo(
        id=plan.id,
        path=folder / f"{plan.id}.mp4",
        part=plan.part,
        duration=at(plan.frames),
        fps=float(plan.fps),
        frames=plan.frames,
        boundaries=tuple(sorted(boundaries, key=lambda each: each.time)),
        distractors=tuple(CompositeDistractor(at(d.first), at(d.stop), d.kind) for d in plan.distractors),
        clips=tuple(plan.clips),
    )


def write_records(
    folder: Path,
    videos: Sequence[CompositeVideo],
    settings: Mapping[str, object],
    clips: Mapping[str, Mapping[str, str]],
) -> None:
    """Write both files."""
    whole = {video.id: _whole(video) for video in videos}
    truth = {"format": FORMAT, "settings": settings, "clips": clips, "videos": whole}
    write_text(folder / LABELS, _json({video.id: _official(video) for video in videos}))
    write_text(folder / TRUTH, _json(truth))


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with (
        os_errors(path, "free some space or write elsewhere (see --out)", OngebdError),
        write_whole(path) as part,
    ):
        part.write_text(text, encoding="utf-8", newline="\n")


def read_composites(folder: Path | str) -> Composites:
    """What `ongebd compose` wrote into a folder.

    Raises:
        LabelError: It has no `composites.json`, or that is damaged.

    >>> for video in read_composites("made").videos.values():  # doctest: +SKIP
    ...     print(video.path, [(each.time, each.kind) for each in video.boundaries])
    """
    folder = Path(folder)
    path = folder / TRUTH
    value = parse_json(read_bytes(path), path)
    if not isinstance(value, Mapping) or value.get("format") != FORMAT:
        raise LabelError(f"{path}: is not {FORMAT!r}; compose the videos again")
    try:
        videos = {name: _read(folder, name, entry) for name, entry in value["videos"].items()}
        clips = {name: dict(facts) for name, facts in value["clips"].items()}
        return Composites(folder, videos, dict(value["settings"]), clips)
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise LabelError(f"{path}: is damaged ({problem}); compose the videos again") from None


def _json(value: Mapping[str, object]) -> str:
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    # A lone surrogate (of a clip's name that isn't UTF-8) becomes \udcXX, just as JSON has it.
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
        "kinds": [[boundary.kind for boundary in video.boundaries]],
    }


def _whole(video: CompositeVideo) -> dict[str, object]:
    facts = asdict(video)
    del facts["id"]
    return {"file": facts.pop("path").name, **facts}


def _read(folder: Path, name: str, entry: Mapping[str, Any]) -> CompositeVideo:
    def fact(key: str, value: object) -> str | float:
        return str(value) if key == "kind" else number(value, name)

    def spans(of: str, kind: Any) -> tuple[Any, ...]:
        return tuple(kind(**{key: fact(key, value) for key, value in row.items()}) for row in entry[of])

    return CompositeVideo(
        id=name,
        path=folder / Path(str(entry["file"])).name,
        part=str(entry["part"]),
        duration=number(entry["duration"], name),
        fps=number(entry["fps"], name),
        frames=int(entry["frames"]),
        boundaries=spans("boundaries", CompositeBoundary),
        distractors=spans("distractors", CompositeDistractor),
        clips=tuple(map(str, entry["clips"])),
    )
