"""Cross-validation by clip: a setting, or a training, is chosen on the clips of the other folds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from footage.films import Film
from footage.listening import Found, Listening
from footage.making import trained
from footage.methods import Method, method_of
from footage.scores import row
from ongebd.data import LabelSet
from ongebd.features import FeatureStore, sampling_identity

FOLDS = 4
BY = 0.5
"""The tolerance at which a setting is chosen, seconds."""


def fold_of(labels: LabelSet, folds: int = FOLDS) -> dict[str, int]:
    """The fold of each clip; by its name alone."""
    names = np.random.default_rng(0).permutation(sorted(labels.videos))
    return {str(name): place % folds for place, name in enumerate(names)}


def part(labels: LabelSet, names: Sequence[str]) -> LabelSet:
    """Some of the clips."""
    wanted = set(names)
    return replace(labels, videos={name: video for name, video in labels.videos.items() if name in wanted})


def cross_validated(
    labels: LabelSet, found: Mapping[float, Mapping[str, Found]], folds: Mapping[str, int]
) -> tuple[dict[str, Found], list[float]]:
    """Each clip with the setting that does best on the clips of the other folds, and that of each fold.

    Args:
        labels: All clips.
        found: What was found, by setting and clip.
        folds: Of each clip.
    """
    taken: dict[str, Found] = {}
    best = []
    for fold in sorted(set(folds.values())):
        others = part(labels, [name for name in labels.videos if folds[name] != fold])
        setting = max(
            found,
            key=lambda each: row("", others, {n: found[each][n] for n in others.videos}).at(BY)[2],
        )
        best.append(setting)
        taken |= {name: found[setting][name] for name in labels.videos if folds[name] == fold}
    return {name: taken[name] for name in labels.videos}, best


def cross_trained(
    name: str, labels: LabelSet, films: Sequence[Film], listening: Listening, work: Path
) -> dict[str, Found]:
    """Each clip by a model that was trained on the clips of the other folds.

    The store that `ongebd train` reads is made of the kept features, up to the end of a clip's rated part.
    """
    seer = method_of("window-mean")
    folder = work / "real" / "training"
    store = _store(folder / "features", seer, labels, films, listening)
    folds = fold_of(labels)
    taken: dict[str, Found] = {}
    for fold in sorted(set(folds.values())):
        others = [clip for clip in labels.videos if folds[clip] != fold]
        path = folder / f"labels-without-{fold}.json"
        path.write_text(json.dumps({clip: _official(labels, clip) for clip in others}), encoding="utf-8")
        model = trained(name, store, path, folder / f"{name}-without-{fold}", "dataset=custom").folder
        method = method_of(f"{name}={name}:{model}" if name != "estimator" else f"{name}={model}")
        rest = [film for film in films if folds[film.id] == fold]
        taken |= listening.all([method], rest)[method.label]
    return {clip: taken[clip] for clip in labels.videos}


def _store(folder: Path, seer: Method, labels: LabelSet, films: Sequence[Film], listening: Listening) -> Path:
    backbone, fps = seer.model.backbone, float(seer.config.rate())
    with FeatureStore.open_or_create(
        folder,
        backbone=backbone.identity,
        dim=backbone.dim,
        fps=fps,
        sampling=sampling_identity(backbone),
    ) as store:
        for film in films:
            if film.id in store:
                continue
            seen = listening.features(seer, film)
            rated = seen.times <= labels.videos[film.id].duration
            store.add(
                film.id,
                seen.rows[rated],
                seen.times[rated],
                seen.epochs[rated],
                labels.videos[film.id].duration,
                film.path.name,
            )
    return folder


def _official(labels: LabelSet, name: str) -> dict[str, object]:
    video = labels.videos[name]
    return {
        "video_duration": video.duration,
        "path_video": name,
        "substages_timestamps": [times.tolist() for times in video.boundaries],
        "f1_consis": list(video.annotator_consistency),
        "f1_consis_avg": video.consistency,
    }
