"""Sets of composites, and models that are trained or settings that are chosen on other clips."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from footage.methods import Film, Found, features_of, found_in, methods_of
from footage.scores import row
from ongebd.baselines.methods import METHODS
from ongebd.data import LabelSet, VideoPrediction
from ongebd.errors import ConfigError, OngebdError
from ongebd.features.extract import sampling_identity
from ongebd.features.store import FeatureStore
from ongebd.lab.composites import Composites, read_composites
from ongebd.lab.experiments.scales import SCALES
from ongebd.offline.systems import SYSTEMS, TRAINED

FOLDS = 4
BY = 0.5
"""The tolerance at which a setting is chosen, seconds."""

# Some minutes on one core. ESTimator is ours at half of its width for features of 1280 numbers.
_DECIDING = ("label_rule=near", "tau=none", "min_std=0.004", "min_error=0.02", "min_gap=0.5", "max_run=1")
TRAININGS: dict[str, tuple[str, ...]] = {
    "miniroad": (
        *("method=miniroad", "network=embedding=256,hidden=256,window=64,stride=1", "weight_decay=0.01"),
        *("lr=0.001", "epochs=4", "batch=128", *_DECIDING),
    ),
    "estimator": (
        *("method=estimator", "width=256", "ffn=256", "epochs=4", "batch=256", "run=64", "lr=0.0003"),
        *_DECIDING,
    ),
}
"""Settings that differ from those of `ongebd train`."""
# The published networks have up to 114 M parameters and learn nothing from minutes of video: tiny ones do.
_SMALL = ("optimizer=adamw", "lr=0.001", "weight_decay=0.01")
_RUNS = (*_SMALL, "schedule=constant", "clip=none", "epochs=4", "batch=512", *_DECIDING)
_CLIPS = (*_SMALL, "label_rule=near", "batch=400", "epochs=30", "validate_every=5", "compile=off")
for _name in ("testra", "simon", "oadtr", *TRAINED):
    _shape = f"network={SCALES['small'].networks[_name]}"
    TRAININGS[_name] = (f"method={_name}", _shape, *(_CLIPS if _name in TRAINED else _RUNS))
NAMES = {"estimator": "ESTimator"} | {
    name: method.title.replace(" - ", "-") for name, method in METHODS.items()
}
NAMES |= {name: SYSTEMS[name].title for name in TRAINED}
_NOTE = "made-by.json"


@dataclass(frozen=True)
class Trained:
    """A trained model: its folder, the settings, and how long it took, seconds."""

    folder: Path
    settings: tuple[str, ...]
    seconds: float

    def method(self, name: str) -> str:
        """The method as a command line names it."""
        return f"{NAMES[name]}={self.folder}"


def run(*arguments: str | Path) -> float:
    """Run `ongebd` with one thread; how many seconds it took."""
    began = time.monotonic()
    command = [sys.executable, "-m", "ongebd", *map(str, arguments)]
    print("ongebd", *arguments[:1], *map(str, arguments[-1:]), "…", file=sys.stderr, flush=True)
    if subprocess.run(command, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}).returncode:
        raise ConfigError(f"ongebd {arguments[0]} failed; see its message above")
    return time.monotonic() - began


def composed(out: Path, clips: Sequence[Path], *settings: str) -> Composites:
    """The set of composites in a folder, made if it doesn't exist."""
    note = json.dumps({"clips": sorted(path.name for path in clips), "settings": settings})
    if not (out / _NOTE).exists():
        run("compose", *clips, *settings, "--split", "all", "--quiet", "--out", out)
        (out / _NOTE).write_text(note, encoding="utf-8")
    if (out / _NOTE).read_text(encoding="utf-8") != note:
        raise ConfigError(f"{out}: made of other clips or with other settings; remove it")
    return read_composites(out)


def joined(folders: Sequence[Path]) -> Composites:
    """Several sets as one; a video is then called FOLDER/ID."""
    sets = [read_composites(folder) for folder in folders]
    videos, clips = {}, {}
    for some in sets:
        clips.update(some.clips)
        for name, video in some.videos.items():
            videos[f"{some.folder.name}/{name}"] = replace(video, id=f"{some.folder.name}/{name}")
    first, *others = (some.settings for some in sets)
    same = {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}
    return Composites(sets[0].folder.parent, videos, same, clips)


def clips_in(folders: Sequence[Path], without: Path | None) -> list[Path]:
    """Folders of clips; or, if a file lists names to leave out, all other files in them."""
    if without is None:
        return list(folders)
    names = set(filter(None, map(str.strip, without.read_text(encoding="utf-8").splitlines())))
    other = {".csv", ".json", ".md", ".txt"}
    files = sorted(
        p for folder in folders for p in folder.rglob("*") if p.is_file() and p.suffix not in other
    )
    left = [path for path in files if path.stem not in names and path.name not in names]
    unknown = names - {path.stem for path in files} - {path.name for path in files}
    if unknown or not left:
        raise ConfigError(f"{without}: {', '.join(sorted(unknown)[:3]) or 'nothing is left'}; no such clips")
    return left


def trained(name: str, store: Path, labels: Path, out: Path, device: str = "cpu") -> Trained:
    """A model of `TRAININGS`, trained by `ongebd train` if it doesn't exist."""
    chosen = (*TRAININGS[name], "dataset=custom")
    if not (out / _NOTE).exists():
        given = [part for setting in chosen for part in ("-s", setting)]
        paths = ("--store", store, "--labels", labels)
        shutil.rmtree(out, ignore_errors=True)  # what an interrupted run left
        took = run("train", *paths, "--device", device, *given, "--quiet", "--out", out)
        (out / _NOTE).write_text(json.dumps({"settings": chosen, "seconds": took}), encoding="utf-8")
    kept = json.loads((out / _NOTE).read_text(encoding="utf-8"))
    if kept["settings"] != list(chosen):
        raise ConfigError(f"{out}: trained with other settings; remove it")
    return Trained(out / "model", chosen, float(kept["seconds"]))


def fold_of(labels: LabelSet) -> dict[str, int]:
    """The fold of each clip; by its name alone."""
    names = np.random.default_rng(0).permutation(sorted(labels.videos))
    return {str(name): place % FOLDS for place, name in enumerate(names)}


def cross_validated(
    labels: LabelSet, found: Mapping[float, Found], folds: Mapping[str, int]
) -> tuple[dict[str, VideoPrediction], list[float]]:
    """Each clip with the setting that does best on the clips of the other folds, and that of each fold."""
    taken: dict[str, VideoPrediction] = {}
    best = []
    for fold in sorted(set(folds.values())):
        others = labels.restrict([name for name in labels.videos if folds[name] != fold], "the other folds")
        scores = {
            setting: row("", others, {n: of[n] for n in others.videos}).at(BY)[2]
            for setting, of in found.items()
        }
        setting = max(scores, key=lambda each: scores[each])
        best.append(setting)
        taken |= {name: found[setting][name] for name in labels.videos if folds[name] == fold}
    return {name: taken[name] for name in labels.videos}, best


def cross_trained(
    names: Sequence[str], labels: LabelSet, films: Sequence[Film], work: Path, device: str, jobs: int
) -> dict[str, dict[str, VideoPrediction]]:
    """By name of a training, each clip by a model that was trained on the clips of the other folds."""
    folder, folds = work / "real" / "training", fold_of(labels)
    _store(folder / "features", labels, films, work)
    official = {
        clip: {
            "video_duration": v.duration,
            "substages_timestamps": [times.tolist() for times in v.boundaries],
        }
        | {"f1_consis_avg": v.consistency, "f1_consis": v.annotator_consistency or [1.0] * len(v.boundaries)}
        for clip, v in labels.videos.items()
    }
    for fold in range(FOLDS):
        others = {clip: official[clip] for clip in labels.videos if folds[clip] != fold}
        (folder / f"labels-without-{fold}.json").write_text(json.dumps(others), encoding="utf-8")
    taken: dict[str, dict[str, VideoPrediction]] = {name: {} for name in names}
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        running = {
            (name, fold): pool.submit(
                _of_fold, name, fold, [film for film in films if folds[film.id] == fold], work, device
            )
            for name, fold in product(names, range(FOLDS))
        }
        for (name, fold), found in running.items():
            try:
                taken[name] |= found.result()
            except (OngebdError, RuntimeError) as problem:  # the others get their rows
                print(f"{name} without fold {fold}: {problem}", file=sys.stderr)
    whole = {name: found for name, found in taken.items() if len(found) == len(labels)}
    return {name: {clip: found[clip] for clip in labels.videos} for name, found in whole.items()}


def _of_fold(
    name: str, fold: int, films: Sequence[Film], work: Path, device: str
) -> dict[str, VideoPrediction]:
    folder = work / "real" / "training"
    store, labels = folder / "features", folder / f"labels-without-{fold}.json"
    model = trained(name, store, labels, folder / f"{name}-without-{fold}", device)
    (method,) = methods_of([model.method(name)], store if films[0].path.is_dir() else None)
    return found_in([method], films, work)[method.label]


def _store(folder: Path, labels: LabelSet, films: Sequence[Film], work: Path) -> None:
    """A store for `ongebd train` of the features that are there, up to the end of each clip's rated part."""
    (method,) = methods_of(["window-mean"], films[0].path if films[0].path.is_dir() else None)
    backbone, fps = method.model.backbone, float(method.config.rate())
    with FeatureStore.open_or_create(
        folder, backbone=backbone.identity, dim=backbone.dim, fps=fps, sampling=sampling_identity(backbone)
    ) as store:
        for film in films:
            if film.id not in store:
                seen, duration = features_of(method, film, work), labels.videos[film.id].duration
                rated = seen["times"] <= duration
                rows, times, epochs = (seen[part][rated] for part in ("rows", "times", "epochs"))
                store.add(film.id, rows, times, epochs, duration, film.path.name)
