"""Trains the learned default models and writes their weights: docs/model-card.md in one command.

    python scripts/train_default_model.py --open DIR --other DIR --labels RATINGS.json --work DIR [--out DIR]

DIR holds the clips with their `clips.csv` (columns file, licence). Trees see cues alone: errors of many
horizons and motion. They learn from the ratings of all clips whose licence bears no NC, and from composites
made of the clips of `--open`. Scores are cross-validated by clip: the composites of a fold are made of its
clips alone, so that no clip is on both sides. What takes long, cues and composites, is kept in `--work`.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ongebd import StreamConfig, backbones
from ongebd.data import LabelSet, as_prediction_set, read_labels
from ongebd.data.composites import DISTRACTOR_KINDS, ComposeConfig, compose, read_clips, read_composites
from ongebd.estimator.cues import GROUPS, cue_matrix
from ongebd.estimator.learned import COLD
from ongebd.evaluation.comparison import compare
from ongebd.features.pipeline import frame_features
from ongebd.training.boosted_trees import forest_from_lightgbm, write_weights
from ongebd.training.boundary_trees import RatedClip, TreeConfig, folds_by_clip, grow, out_of_fold
from ongebd.video import VideoReader, prefetch

BACKBONE = "efficientnet_lite0_whole"
FPS = 24.0
TOLERANCES = (0.1, 0.25, 0.5, 1.0)
FOLDS = 6
SETTINGS: dict[str, float] = {"min_gap": 0.6, "max_run": 0.0, "rearm": 0.75}
GRID = np.round(np.arange(0.16, 0.66, 0.02), 3)
DELAYS = {"immediate": (0,), "half-second": (0, 6, 9)}
LATENCY = {"immediate": 0, "half-second": 9}  # frames
COMPOSITE_WEIGHT = 0.3
Scores = dict[str, npt.NDArray[np.float64]]


@dataclass(frozen=True)
class Material:
    """All that is learned from: real clips, their folds, and each fold's composites."""

    clips: list[RatedClip]
    labels: LabelSet
    fold_of: dict[str, int]
    composites: dict[int, list[RatedClip]]
    said: dict[tuple[TreeConfig, int, bool], Scores] = field(default_factory=dict)  # out of fold, by view


def main() -> int:
    """Cues, folds, composites, scores, weights."""
    asker = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asker.add_argument("--open", type=Path, required=True, help="clips that may be learned from as they are")
    asker.add_argument(
        "--other", type=Path, required=True, help="clips of which cues and ratings may be used"
    )
    asker.add_argument("--labels", type=Path, required=True, help="the ratings")
    asker.add_argument("--work", type=Path, required=True, help="where cues and composites are kept")
    asker.add_argument("--out", type=Path, help="where the weights go, src/ongebd/estimator/weights, say")
    asker.add_argument("--open-only", action="store_true", help="learn from the clips of --open alone")
    asker.add_argument("--ablate", action="store_true", help="what each ingredient is worth")
    asked = asker.parse_args()
    material = gather(asked.open, asked.other, asked.labels, asked.work)
    if asked.open_only:
        material = open_only(material, asked.open)
    if asked.ablate:
        ablate(material)
        return 0
    for name, delays in DELAYS.items():
        scores = cross_validate(material, TreeConfig(), delays)
        found, threshold = report(name, material, scores, delays)
        folder = asked.work / "out-of-fold"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.json").write_text(json.dumps(found))
        table = sensitivities(threshold)
        rates(material, scores, delays, table)
        if asked.out:
            write(asked.out, name, material, delays, table)
    return 0


def gather(open_clips: Path, other_clips: Path, ratings: Path, work: Path) -> Material:
    """The cues of all clips and composites."""
    work.mkdir(parents=True, exist_ok=True)
    labels = read_labels(ratings)
    licences = {**licences_in(open_clips), **licences_in(other_clips)}
    files = {path.stem: path for folder in (open_clips, other_clips) for path in sorted(folder.iterdir())}
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
    return Material(clips, labels, fold_of, composites_by_fold(open_clips, fold_of, work))


def open_only(material: Material, folder: Path) -> Material:
    """The same with nothing to be learned from other clips."""
    names = {path.stem for path in folder.iterdir()}
    clips = [replace(clip, trainable=clip.trainable and clip.name in names) for clip in material.clips]
    return replace(material, clips=clips, said={})


def licences_in(folder: Path) -> dict[str, str]:
    """The licence of each file."""
    with (folder / "clips.csv").open(encoding="utf-8") as lines:
        return {row["file"]: row["licence"] for row in csv.DictReader(lines)}


def same_footage(name: str) -> str:
    """One name for clips that share footage."""
    for part in ("running_car", "MovieChat", "bunny", "bikes", "asl_gestures"):
        if part.lower() in name.lower():
            return "big buck bunny" if part in ("bunny", "bikes") else part
    return name


def cues_of(
    path: Path, work: Path, until: float = np.inf
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float32]]:
    """Times and cues of a video's frames, computed once and kept."""
    backbone = backbones.get(BACKBONE)
    key = sha256(f"{path.name} {path.stat().st_size} {until} {backbone.identity} {tuple(GROUPS)}".encode())
    kept = work / "cues" / f"{key.hexdigest()[:24]}.npz"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        features, times = [], []
        with (
            VideoReader(path, FPS, view=backbone.view) as reader,
            closing(prefetch(reader, ahead=4)) as frames,
            closing(frame_features(frames, backbone, 2)) as pairs,
        ):
            for frame, feature in pairs:
                if frame.time > until:
                    break
                times.append(float(frame.time))
                features.append(feature)
        np.savez(kept, times=np.array(times), cues=cue_matrix(features))
        print(f"{path.stem}: {len(times)} frames", file=sys.stderr, flush=True)
    with np.load(kept) as arrays:
        return arrays["times"], arrays["cues"]


def composites_by_fold(folder: Path, fold_of: Mapping[str, int], work: Path) -> dict[int, list[RatedClip]]:
    """Composites of each fold's open clips: some with boundaries, and some with distractors alone."""
    groups: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix != ".csv":
            groups.setdefault(same_footage(path.stem), []).append(path)
    parts: dict[int, list[Path]] = {fold: [] for fold in range(FOLDS)}
    for place, (_, paths) in enumerate(sorted(groups.items())):
        rated = [fold_of[path.stem] for path in paths if path.stem in fold_of]
        parts[rated[0] if rated else place % FOLDS].extend(paths)
    made: dict[int, list[RatedClip]] = {}
    for fold, paths in parts.items():
        made[fold] = []
        for kind, config in composite_configs(fold).items():
            out = work / "composites" / f"fold{fold}-{kind}"
            if paths and not (out / "composites.json").exists():
                try:
                    for _ in compose(read_clips(paths), config, out):
                        pass
                except ValueError as problem:  # too little to show, say
                    print(f"fold {fold}, {kind}: {problem}", file=sys.stderr)
                    continue
            if (out / "composites.json").exists():
                made[fold] += list(composite_clips(out, work))
    return made


def composite_configs(fold: int) -> dict[str, ComposeConfig]:
    """What is made of each fold's clips."""
    usual = ComposeConfig(seed=100 + fold, split="all")
    still = ",".join(kind for kind in DISTRACTOR_KINDS if kind != "freeze")  # which a standing picture hides
    return {
        "events": replace(usual, videos=7, seconds=(8, 24)),
        "distractors": replace(
            usual, minutes=1.2, boundaries="none", distractors=still, seconds=(8, 20), motion="still"
        ),
    }


def composite_clips(folder: Path, work: Path) -> Iterable[RatedClip]:
    """Composites as clips of one rater, who knows."""
    for video in read_composites(folder).videos.values():
        times, cues = cues_of(Path(video.path), work)
        boundaries = np.array([each.time for each in video.boundaries])
        yield RatedClip(f"{folder.name}/{video.id}", times, cues, (boundaries,), weight=COMPOSITE_WEIGHT)


def cross_validate(
    material: Material, config: TreeConfig, delays: Sequence[int], *, composites: bool = True
) -> Scores:
    """Each frame's score by trees that saw neither its clip nor anything made of its fold's clips."""

    def made_of_others(fold: int) -> list[RatedClip]:
        parts = material.composites.items() if composites else ()
        return [clip for other, made in parts if other != fold for clip in made]

    said = []
    for delay in delays:
        key = (config, delay, composites)
        if key not in material.said:
            material.said[key] = out_of_fold(
                material.clips, material.fold_of, config, delay=delay / FPS, extra=made_of_others, threads=2
            )
        said.append(material.said[key])
    return {name: at_each_frame([each[name] for each in said], delays) for name in said[0]}


def at_each_frame(views: Sequence[npt.NDArray[np.float64]], delays: Sequence[int]) -> npt.NDArray[np.float64]:
    """The mean of what the views say of each frame, those that have spoken before the end."""
    total, count = np.zeros(len(views[0])), np.zeros(len(views[0]))
    for said, delay in zip(views, delays, strict=True):
        reach = max(len(said) - delay, 0)
        total[:reach] += said[delay:]
        count[:reach] += 1
    return total / np.maximum(count, 1)


def boundaries(
    times: npt.NDArray[np.float64], scores: npt.NDArray[np.float64], threshold: float
) -> list[float]:
    """What a stream with these settings would report, by its own head and runs."""
    config = StreamConfig(head="hysteresis", threshold=threshold).changed(SETTINGS)
    head, runs = config.new_head(), config.runs()
    found = []
    for place, (time, score) in enumerate(zip(times.tolist(), scores.tolist(), strict=True)):
        if place < COLD:
            continue
        head.update(score)
        step = runs.update(time, head.is_boundary, head.z)
        if step.boundary is not None:
            found.append(step.boundary.time)
    return found


def score(labels: LabelSet, found: Mapping[str, list[float]]) -> npt.NDArray[np.float64]:
    """F1 at the tolerances."""
    comparison = compare(labels, as_prediction_set(found), min_consistency=None)
    return np.asarray(comparison.count(comparison.absolute_tolerances(TOLERANCES)).totals().f1)


def detections(material: Material, scores: Scores, threshold: float) -> dict[str, list[float]]:
    """Of every clip."""
    return {clip.name: boundaries(clip.times, scores[clip.name], threshold) for clip in material.clips}


def report(
    name: str, material: Material, scores: Scores, delays: Sequence[int]
) -> tuple[dict[str, list[float]], float]:
    """Cross-validated figures: each clip judged at the threshold that is best on the clips of other folds."""
    every = {float(threshold): detections(material, scores, float(threshold)) for threshold in GRID}
    taken: dict[str, list[float]] = {}
    for fold in range(FOLDS):
        others = {n: v for n, v in material.labels.videos.items() if material.fold_of[n] != fold}
        part = LabelSet(others, dataset=material.labels.dataset)
        best = max(every, key=lambda th: worth(part, {n: every[th][n] for n in others}))
        taken |= {n: every[best][n] for n in material.labels.videos if n not in others}
    best = max(every, key=lambda th: worth(material.labels, every[th]))
    print(f"{name}, delays {tuple(delays)}: {line(score(material.labels, taken))}", end="")
    print(f" (threshold {best}, the best on all: {line(score(material.labels, every[best]))})", flush=True)
    return taken, best


def worth(labels: LabelSet, found: Mapping[str, list[float]]) -> float:
    """What a threshold is chosen by: F1 at 0.25 s and at 0.5 s, added up."""
    return float(score(labels, found)[1:3].sum())


def line(f1: Iterable[float]) -> str:
    """F1 at the tolerances, in short."""
    return " / ".join(f"{value:.3f}" for value in f1)


def sensitivities(threshold: float) -> list[tuple[float, float]]:
    """Thresholds for nine sensitivities, evenly spaced in log odds about that of 0.5."""
    odds = np.log(threshold / (1 - threshold))
    return [
        (round(s, 1), round(float(1 / (1 + np.exp(-(odds + 3.0 * (0.5 - s))))), 4))
        for s in np.arange(1, 10) / 10
    ]


def rates(
    material: Material, scores: Scores, delays: Sequence[int], table: Sequence[tuple[float, float]]
) -> None:
    """Boundaries a minute at each sensitivity, and their F1."""
    minutes = sum(float(clip.times[-1]) for clip in material.clips) / 60
    for sensitivity, threshold in table:
        found = detections(material, scores, threshold)
        rate = sum(map(len, found.values())) / minutes
        f1 = line(score(material.labels, found))
        print(f"  sensitivity {sensitivity}: threshold {threshold}, {rate:.1f} a minute, {f1}")


def write(
    folder: Path, name: str, material: Material, delays: Sequence[int], table: Sequence[tuple[float, float]]
) -> None:
    """Grow the trees on everything, and write them."""
    made = [clip for part in material.composites.values() for clip in part]
    config = TreeConfig()
    members = [grow([*material.clips, *made], config, delay=delay / FPS, threads=2) for delay in delays]
    write_weights(
        folder,
        name,
        forest_from_lightgbm([[member.dump_model() for member in view] for view in members]),
        what="boosted trees on errors of many horizons and on motion; see docs/model-card.md",
        trained_on=(
            f"boundaries of {sum(clip.trainable for clip in material.clips)} real clips rated by a"
            f" vision-language model, and {len(made)} composites; see docs/model-card.md"
        ),
        groups=tuple(GROUPS),
        delays=delays,
        latency=LATENCY[name],
        settings=SETTINGS,
        sensitivities=table,
    )


def ablate(material: Material) -> None:
    """One ingredient left out, or changed, at a time; real clips, cross-validated."""
    usual = TreeConfig()
    cases = {
        "all": (material, usual, True),
        "without composites": (material, usual, False),
        "one member": (material, replace(usual, members=1), True),
        "no lateness": (material, replace(usual, lateness=0.0), True),
    }
    for group in GROUPS:
        others = [other for other in GROUPS if other != group]
        cases[f"without {group}"] = (without(material, group), usual, True)
        cases[f"{group} alone"] = (without(material, *others), usual, True)
    for name, (part, config, composites) in cases.items():
        scores = cross_validate(part, config, (0,), composites=composites)
        report(name, part, scores, (0,))


def without(material: Material, *groups: str) -> Material:
    """The same with the columns of some groups of cues left out."""
    kept: list[int] = []
    start = 0
    for group, names in GROUPS.items():
        if group not in groups:
            kept += range(start, start + len(names))
        start += len(names)

    def cut(clip: RatedClip) -> RatedClip:
        return RatedClip(
            clip.name,
            clip.times,
            np.ascontiguousarray(clip.cues[:, np.array(kept)]),
            clip.ratings,
            clip.weight,
            clip.group,
            clip.trainable,
        )

    return replace(
        material,
        clips=[cut(clip) for clip in material.clips],
        composites={fold: [cut(clip) for clip in made] for fold, made in material.composites.items()},
        said={},
    )


if __name__ == "__main__":
    sys.exit(main())
