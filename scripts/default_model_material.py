"""What the learned default models are trained on: cues of rated clips and of composites, by folds."""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
from boundary_trees import RatedClip, TreeConfig, folds_by_clip

from ongebd import backbones
from ongebd.backbones.pipeline import AGAIN, ANOTHER, FLASH_FRAMES, MOVES, Glance, frame_features
from ongebd.data import LabelSet, read_labels
from ongebd.errors import OngebdError
from ongebd.estimator.appearance import HORIZON_NAMES, MEMORY_NAMES, WINDOW_NAMES
from ongebd.estimator.cues import CueStream
from ongebd.estimator.motion import MotionCues
from ongebd.lab.composites import (
    BOUNDARY_KINDS,
    DISTRACTOR_KINDS,
    ComposeConfig,
    compose,
    read_clips,
    read_composites,
)
from ongebd.video import VideoReader

BACKBONE = "efficientnet_lite0_whole"
FPS = 24.0
FOLDS = 6
CYCLE_FRAMES, CYCLES = 360, 3
"""Of a made repetition, and how many of them are made of one clip."""
DISTRACTOR_MINUTES = 8.0
GROUPS = {
    "horizons": HORIZON_NAMES,
    "windows": WINDOW_NAMES,
    "memory": MEMORY_NAMES,
    "motion": MotionCues.names,
}
"""The names of the cues in each group, in the order of the columns."""
LOOKS = AGAIN, MOVES, ANOTHER, FLASH_FRAMES
"""What decides when the network looks: cues are computed again if it changes."""
TESTED = ("changes", "unrated")
"""Sets of composites to score: only made changes are labelled in them."""
Scores = dict[str, npt.NDArray[np.float64]]


@dataclass(frozen=True)
class Made:
    """A composite: its cues, its set (see `composite_configs`, `cycle_of`), its clips, the set's folder."""

    clip: RatedClip
    kind: str
    clips: Sequence[str]
    folder: Path


@dataclass(frozen=True, eq=False)
class Judge:
    """What one half of the trees learns.

    Attributes:
        config: How its trees are grown.
        ratings: Whether it learns from rated clips.
        composites: The weight of the frames of each set of composites that it learns from.
        handicap: Subtracted from its log odds.
    """

    config: TreeConfig
    ratings: bool
    composites: Mapping[str, float]
    handicap: float = 0.0

    def clips(self, material: Material) -> list[RatedClip]:
        """The real clips, only to be scored if it doesn't learn from them."""
        if self.ratings:
            return material.clips
        return [clip.counting(trainable=False) for clip in material.clips]

    def made(self, material: Material, without: int | None = None) -> list[RatedClip]:
        """Its composites, without those of one fold."""
        return [
            each.clip.counting(weight=self.composites[each.kind])
            for fold, some in material.made.items()
            if fold != without
            for each in some
            if each.kind in self.composites
        ]

    def handicapped(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Scores with the handicap subtracted."""
        odds = scores / (1 - scores) * np.exp(-self.handicap)
        return np.asarray(odds / (1 + odds))


@dataclass(frozen=True)
class Material:
    """Real clips, their folds, the composites of each fold's clips, and scores out of fold, once computed."""

    clips: list[RatedClip]
    labels: LabelSet
    fold_of: dict[str, int]
    made: dict[int, list[Made]]
    scores: dict[Judge, Scores] = field(default_factory=dict)

    def tested(self, fold: int) -> list[RatedClip]:
        """The composites to score with a fold."""
        return [each.clip for each in self.made[fold] if each.kind in TESTED]

    def quiet(self, fold: int) -> list[Made]:
        """The composites of a fold in which nothing should fire."""
        return [each for each in self.made[fold] if each.kind == "distractors"]

    def all_quiet(self) -> list[RatedClip]:
        """Those of all folds."""
        return [each.clip for fold in self.made for each in self.quiet(fold)]

    def cycles(self, fold: int) -> list[RatedClip]:
        """The made repetitions of a fold."""
        return [each.clip for each in self.made[fold] if each.kind == "cycles"]

    def scored_with(self, fold: int) -> list[RatedClip]:
        """Everything to score with the clips of a fold."""
        return [*self.tested(fold), *(each.clip for each in self.quiet(fold)), *self.cycles(fold)]

    def tested_labels(self) -> LabelSet:
        """Of all composites to score."""
        tested = [each for some in self.made.values() for each in some if each.kind in TESTED]
        names = {each.clip.name for each in tested}
        videos = {}
        for folder in sorted({each.folder for each in tested}):
            for video in read_composites(folder).labels().videos.values():
                name = f"{folder.name}/{video.id}"
                if name in names:
                    videos[name] = replace(video, id=name)
        return LabelSet(videos, dataset="custom")

    def test_part(self) -> list[RatedClip]:
        """The clips of some repositories, in the order of their hashes, of those rated twice only."""
        old = {clip.group for clip in self.clips if len(clip.ratings) > 2}
        frames: Counter[str] = Counter()
        for clip in self.clips:
            frames[clip.group] += len(clip.times) * (len(clip.ratings) == 2)
        taken, left = set(), TEST_SHARE * frames.total()
        for group in sorted(set(frames) - old, key=lambda group: sha256(group.encode()).hexdigest()):
            if left > 0:
                taken.add(group)
                left -= frames[group]
        return [clip for clip in self.clips if clip.group in taken]

    def rest(self) -> Material:
        """The same without the test part and what was made of it."""
        out = {clip.name for clip in self.test_part()}
        clips = [clip for clip in self.clips if clip.name not in out]
        videos = {name: video for name, video in self.labels.videos.items() if name not in out}
        made = {
            fold: [each for each in some if not out & {Path(clip).stem for clip in each.clips}]
            for fold, some in self.made.items()
        }
        return replace(self, clips=clips, labels=LabelSet(videos, dataset="custom"), made=made, scores={})

    def changed(self, change: Callable[[RatedClip], RatedClip]) -> Material:
        """The same with every clip and composite changed."""
        made = {
            fold: [replace(each, clip=change(each.clip)) for each in some] for fold, some in self.made.items()
        }
        return replace(self, clips=[change(clip) for clip in self.clips], made=made, scores={})


def gather(open_clips: Path, other_clips: Sequence[Path], ratings: Sequence[Path], work: Path) -> Material:
    """The cues of all clips and composites."""
    work.mkdir(parents=True, exist_ok=True)
    rated = {name: video for path in ratings for name, video in read_labels(path).videos.items()}
    labels = LabelSet(rated, dataset="custom")
    folders = (open_clips, *other_clips)
    licences = {name: licence for folder in folders for name, licence in licences_in(folder).items()}
    files = {path.stem: path for folder in folders for path in sorted(folder.iterdir())}
    clips = []
    for video in labels.videos.values():
        path = files[video.id]
        times, cues = cues_of(path, work, until=video.duration)
        clips.append(
            RatedClip(
                name=video.id,
                times=times,
                cues=cues,
                ratings=tuple(np.asarray(each) for each in video.boundaries),
                group=same_footage(video.id),
                trainable="NC" not in licences[path.name],
            )
        )
    fold_of = folds_by_clip(clips, FOLDS, seed=0)
    shown: dict[int, list[Path]] = {fold: [] for fold in range(FOLDS)}
    for clip in clips:
        if clip.trainable:
            shown[fold_of[clip.name]].append(files[clip.name])
    unrated = unrated_by_fold(open_clips, fold_of)
    made = {
        fold: list(composites_of(fold, shown[fold], unrated[fold], labels, work)) for fold in range(FOLDS)
    }
    for clip in clips:
        for number in range(CYCLES if clip.trainable else 0):
            if cycle := cycle_of(files[clip.name], clip, number, work):
                made[fold_of[clip.name]].append(Made(cycle, "cycles", [files[clip.name].name], work))
    return Material(clips, labels, fold_of, made)


TEST_SHARE = 0.25
"""Of the frames of repositories that have no clips in the first set of ratings."""


def licences_in(folder: Path) -> dict[str, str]:
    """The licence of each file."""
    with (folder / "clips.csv").open(encoding="utf-8") as lines:
        return {row["file"]: row["licence"] for row in csv.DictReader(lines)}


def same_footage(name: str) -> str:
    """One name for clips that share footage or come from one repository."""
    for part in ("running_car", "MovieChat", "bunny", "bikes", "asl_gestures"):
        if part.lower() in name.lower():
            return "big buck bunny" if part in ("bunny", "bikes") else part
    return name.split("__")[0]


def cues_of(
    path: Path, work: Path, until: float = np.inf
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float32]]:
    """Times and cues of a video's frames, computed once and kept."""
    backbone = backbones.get(BACKBONE)
    about = path.name, path.stat().st_size, until, backbone.identity, *GROUPS, *LOOKS
    key = sha256(repr(about).encode())
    kept = work / "cues" / f"{key.hexdigest()[:24]}.npz"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        cues, glance, rows, times = CueStream(backbone.dim), Glance(), [], []
        with (
            VideoReader(path, FPS, view=backbone.view) as reader,
            closing(frame_features(reader, backbone, 2, glance=Glance())) as pairs,
        ):
            for frame, feature in pairs:
                if frame.time > until:
                    break
                times.append(float(frame.time))
                rows.append(cues.update(glance.counted(feature, times[-1])))
        np.savez(kept, times=np.array(times), cues=np.stack(rows))
        print(f"{path.stem}: {len(times)} frames", file=sys.stderr, flush=True)
    with np.load(kept) as arrays:
        return arrays["times"], arrays["cues"]


def cycle_of(path: Path, clip: RatedClip, number: int, work: Path) -> RatedClip | None:
    """A piece of a clip forwards and backwards for 15 s, each time at another speed.

    It has 0.8 to 2.5 s, from within the clip's first 4.5 s, in which nobody saw a boundary, else there is
    none. After the first time nothing is new.
    """
    name = f"cycles/{clip.name}/{number}"
    dice = np.random.default_rng(int(sha256(name.encode()).hexdigest()[:8], 16))
    length = int(dice.integers(20, 61))
    start = int(dice.integers(0, 49))
    if start + length > len(clip.times):
        return None
    began, ended = clip.times[start] - 0.2, clip.times[start + length - 1] + 0.2
    if any(((times > began) & (times < ended)).any() for times in clip.ratings):
        return None
    way, rounds = [], []
    while len(way) < CYCLE_FRAMES:
        place = np.arange(0, 2 * (length - 1), dice.uniform(0.8, 1.3))
        way += (length - 1 - np.abs(place - (length - 1))).tolist()
        rounds.append(len(way))
    backbone = backbones.get(BACKBONE)
    key = sha256(repr((name, backbone.identity, *LOOKS)).encode())
    kept = work / "cues" / f"cycle-{key.hexdigest()[:24]}.npz"
    if not kept.exists():
        with (
            VideoReader(path, FPS, view=backbone.view) as reader,
            closing(frame_features(reader, backbone, 2)) as pairs,
        ):
            piece = np.stack([feature for _, feature in islice(pairs, start + length)])[start:]
        cues, glance, rows = CueStream(backbone.dim), Glance(), []
        for place, at in enumerate(way[:CYCLE_FRAMES]):
            whole = min(int(at), length - 2)
            step = piece[whole + 1] - piece[whole]
            feature = piece[whole] + np.float32(at - whole) * step
            rows.append(cues.update(glance.counted(feature, place / FPS)))
        np.savez(kept, cues=np.stack(rows))
    with np.load(kept) as arrays:
        return RatedClip(
            name=name,
            times=np.arange(CYCLE_FRAMES) / FPS,
            cues=arrays["cues"],
            ratings=(np.zeros(0),),
            begin=rounds[0] + 12,
        )


def unrated_by_fold(folder: Path, fold_of: Mapping[str, int]) -> dict[int, list[Path]]:
    """The open clips without ratings. Clips that share footage are in one fold, rated ones too."""
    groups: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix != ".csv":
            groups.setdefault(same_footage(path.stem), []).append(path)
    parts: dict[int, list[Path]] = {fold: [] for fold in range(FOLDS)}
    for place, (_, paths) in enumerate(sorted(groups.items())):
        rated = [fold_of[path.stem] for path in paths if path.stem in fold_of]
        parts[rated[0] if rated else place % FOLDS] += [path for path in paths if path.stem not in fold_of]
    return parts


def composite_configs(fold: int) -> dict[str, ComposeConfig]:
    """The sets of composites for each fold.

    *changes*: rated boundaries are cut out, so all changes are made. *events*: boundaries that half of the
    raters saw are kept. *unrated*: clips without ratings (ten of them show one setting, with different
    actions). *distractors*: changes that must not fire, over still pictures.
    """
    usual = ComposeConfig(split="all", seconds="8,24")
    made = ",".join(kind for kind in BOUNDARY_KINDS if kind != "natural")
    still = ",".join(kind for kind in DISTRACTOR_KINDS if kind != "freeze")  # which a still picture hides
    return {
        "changes": replace(usual, seed=300 + fold, videos=16, boundaries=made),
        "events": replace(usual, seed=350 + fold, videos=16),
        "unrated": replace(usual, seed=400 + fold, videos=10, boundaries=made),
        "distractors": replace(
            usual,
            seed=100 + fold,
            minutes=DISTRACTOR_MINUTES,
            boundaries="none",
            distractors=still,
            seconds="8,20",
            motion="still",
        ),
    }


def composites_of(
    fold: int, rated: Sequence[Path], unrated: Sequence[Path], labels: LabelSet, work: Path
) -> Iterable[Made]:
    """All composites of a fold; missing ones are made."""
    of = {"changes": rated, "events": rated, "unrated": unrated, "distractors": [*rated, *unrated]}
    for kind, config in composite_configs(fold).items():
        out = work / "composites" / f"fold{fold}-{kind}"
        if of[kind] and not (out / "composites.json").exists():
            try:
                library = read_clips(of[kind], labels=labels, keep_labelled=kind == "events")
                for _ in compose(library, config, out):
                    pass
            except OngebdError as problem:  # too few clips, say
                print(f"fold {fold}, {kind}: {problem}", file=sys.stderr)
                continue
        if (out / "composites.json").exists():
            yield from composite_clips(out, kind, work)


def composite_clips(folder: Path, kind: str, work: Path) -> Iterable[Made]:
    """Composites as clips with one rater that is always right."""
    for video in read_composites(folder).videos.values():
        times, cues = cues_of(Path(video.path), work)
        boundaries = np.array([each.time for each in video.boundaries])
        clip = RatedClip(f"{folder.name}/{video.id}", times, cues, (boundaries,))
        yield Made(clip, kind, list(video.clips), folder)


def alarms(quiet: Mapping[int, Sequence[Made]], found: Mapping[str, Sequence[float]]) -> str:
    """False alarms by kind of distractor, in it or within half a second after it: "flash 2 of 29", say."""
    fired: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for each in (each for some in quiet.values() for each in some):
        video = read_composites(each.folder).videos[each.clip.name.rpartition("/")[2]]
        count.update(distractor.kind for distractor in video.distractors)
        for time in found[each.clip.name]:
            near = [d.kind for d in video.distractors if d.start <= time <= d.end + 0.5]
            fired[near[0] if near else "nothing"] += 1
    return ", ".join(f"{kind} {fired[kind]} of {count[kind]}" for kind in sorted({*fired, *count}))


def without(material: Material, *groups: str) -> Material:
    """The same with the cues of some groups set to 0, so that no tree looks at them."""
    kept = np.concatenate([np.full(len(names), group not in groups) for group, names in GROUPS.items()])

    def cut(clip: RatedClip) -> RatedClip:
        return replace(clip, cues=np.where(kept, clip.cues, np.float32(0)))

    return material.changed(cut)
