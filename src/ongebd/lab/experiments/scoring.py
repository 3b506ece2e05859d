"""From a row to the boundaries that it finds in the test videos. Needs the extra `train`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch

import ongebd
from ongebd.backbones.torch_backbone import computing_threads
from ongebd.data.files import FloatArray
from ongebd.data.id_matching import match_ids
from ongebd.data.label_set import LabelSet
from ongebd.data.labelled import LabelledVideo, label_videos
from ongebd.data.prediction_set import PredictionSet, VideoPrediction
from ongebd.data.predictions import read_predictions
from ongebd.errors import ConfigError, MissingDataError, OngebdError
from ongebd.features.store import FeatureStore
from ongebd.lab.experiments.cache import Cache
from ongebd.lab.experiments.datasets import DataSet, Part
from ongebd.lab.experiments.definition import Row
from ongebd.lab.experiments.scales import Scale
from ongebd.lab.training.batches import place_features
from ongebd.lab.training.config import ESTIMATOR, TrainConfig
from ongebd.lab.training.dataset import Dataset, make_dataset
from ongebd.lab.training.loop import MODEL, train
from ongebd.lab.training.processes import checked_device
from ongebd.lab.training.scores import Naive, errors_of_naive, scores_of_videos
from ongebd.lab.training.task import task_of
from ongebd.lab.training.validation import PAPER_TAU, judge, predictions_at, validate
from ongebd.offline.predictability import score_video, swapped
from ongebd.offline.systems import SYSTEMS

VERSION = 1
"""Of what errors mean; another one trains everything again."""

# Settings that change neither the weights nor the errors: rows that differ only in these share a training.
_DECIDES = ("tau", "delta", "warmup", "min_std", "min_error", "min_gap", "max_run", "select_by", "obd")
_SHAPE = ("width", "ffn", "heads", "layers")
_WHERE = ("store", "labels", "out", "device", "compile", "features_in", "validate_every")

Shared = dict[Any, Any]
"""What rows with the same errors share: chosen thresholds, and z, which doesn't depend on τ."""


@dataclass(frozen=True, eq=False)
class FrameScores:
    """Errors or probabilities: for the validation and the test videos, a score for each of their frames.

    `memory` is what the training took on the GPU, bytes, if there was one. `lacking` counts the labelled
    videos of the training set that have no features.
    """

    validation: tuple[list[LabelledVideo], list[FloatArray]]
    test: tuple[list[LabelledVideo], list[FloatArray]]
    fps: float
    memory: int | None
    lacking: int


class Scoring:
    """Trains what rows need, once, and scores the frames of their videos.

    Raises:
        ConfigError: The device does not exist.

    Attributes:
        device: `cpu`, `cuda` or `cuda:N`.
    """

    def __init__(self, scale: Scale, cache: Cache, device: str = "auto") -> None:
        self._scale, self._cache = scale, cache
        self.device = str(checked_device(device))
        self._labelled: dict[tuple[int, str, float], list[LabelledVideo]] = {}

    def config(self, row: Row, seed: int) -> TrainConfig:
        """The training settings of a row."""
        config, settings = TrainConfig(), dict(self._scale.training)
        if network := self._scale.networks.get(row.method):  # a small one is trained as ours is
            config = replace(config, method=row.method, obd=False, network=network)
            settings = {name: value for name, value in settings.items() if name not in _SHAPE}
        elif row.method != ESTIMATOR:
            config = config.changed({"method": row.method})
            settings = {name: settings[name] for name in ("epochs", "compile") if name in settings}
        settings |= {**self._scale.special.get(row.method, {}), **row.training}
        if not (settings.get("est", True) or settings.get("rest", True)):
            settings["obd"] = False
        config = replace(config, **settings)
        return replace(config, seed=seed, validate_every=config.epochs, device=self.device)

    def deviations(self, method: str) -> str:
        """What in a method's training isn't the paper's or its authors', in words."""
        return ", ".join(self.config(Row(name=method, method=method), 0).deviations())

    def key(self, row: Row, seed: int, trained_on: DataSet, data: DataSet) -> dict[str, Any]:
        """All that the scores of a row's frames depend on."""
        how: dict[str, Any] = {"untrained": row.method}
        if row.kind == "trained":
            how = {k: v for k, v in asdict(self.config(row, seed)).items() if k not in (*_DECIDES, *_WHERE)}
        sets = [*trained_on.training.key, *data.test.key]
        return {"version": VERSION, "how": how, "sets": sets, "device": self.device.partition(":")[0]}

    def frame_scores(self, row: Row, seed: int, trained_on: DataSet, data: DataSet) -> FrameScores:
        """The scores of a row's frames; it is trained unless they are in the cache."""
        config = self.config(row, seed) if row.kind == "trained" else TrainConfig(**self._scale.training)
        store, tested = (FeatureStore.open(part.store) for part in (trained_on.training, data.test))
        if (store.backbone, store.fps) != (tested.backbone, tested.fps):
            raise ConfigError(
                f"{tested.path}: features of {tested.backbone} at {tested.fps:g} frames a second, but the"
                f" training has {store.backbone} at {store.fps:g}; extract both the same way"
            )
        dataset = make_dataset(store, trained_on.training.labels, config)
        parts = {"validation": dataset.validation, "test": self._videos(data.test, config)}

        key, own = self.key(row, seed, trained_on, data), self.key(row, seed, trained_on, trained_on)
        plain = self.key(replace(row, training={}), seed, trained_on, data) == key

        def make(folder: Path) -> dict[str, Any]:
            memory, model = None, self._cache.path("errors", own) / MODEL
            if row.kind == "untrained":
                scores = {part: _untrained(row.method, videos, self.device) for part, videos in parts.items()}
            else:
                if plain and key != own:  # only the videos to score are another set's
                    self.frame_scores(row, seed, trained_on, trained_on)
                if not model.exists():
                    memory, model = self._train(config, folder / "training", dataset), folder / MODEL
                    (folder / "training" / MODEL).rename(model)
                    shutil.rmtree(folder / "training")
                task, device = task_of(config), torch.device(self.device)
                network = task.load(model).to(device)
                scores = {
                    part: task.scores(network, videos, place_features(videos, device, "auto"))
                    for part, videos in parts.items()
                }
                if model.parent == folder and (not plain or row.method in SYSTEMS):
                    shutil.rmtree(model)  # it serves neither another set nor pictures
            arrays = {part: np.concatenate(each) for part, each in scores.items()}
            np.savez(folder / "errors.npz", validation=arrays["validation"], test=arrays["test"])
            return {"memory": memory}

        entry = self._cache.get("errors", key, make)
        with np.load(entry / "errors.npz") as kept:
            validation, test = ((videos, _split(kept[part], videos)) for part, videos in parts.items())
        lacking = len(dataset.labels) - len(dataset.training) - len(dataset.validation)
        return FrameScores(validation, test, dataset.fps, self._cache.facts(entry).get("memory"), lacking)

    def _train(self, config: TrainConfig, out: Path, dataset: Dataset) -> int | None:
        """Write a model into `out`; how much of the GPU's memory that took, bytes."""
        device = torch.device(self.device)
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        train(replace(config, out=str(out)), dataset=dataset, report=False)
        return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None

    def _videos(self, part: Part, config: TrainConfig) -> list[LabelledVideo]:
        key = (id(part), config.label_rule, config.near)
        if key not in self._labelled:
            store = FeatureStore.open(part.store)
            found = label_videos(store, part.labels, rule=config.label_rule, near=config.near)
            self._labelled[key] = found.videos
        return self._labelled[key]


def failure_of(
    scale: Scale, work: Path, device: str, task: tuple[Row, int, DataSet, DataSet]
) -> list[OngebdError]:
    """Put the scores of a row's frames into the cache, in one CPU thread; why not, where it fails."""
    with computing_threads(1, torch.device(device)):
        try:
            Scoring(scale, Cache(work), device).frame_scores(*task)
        except OngebdError as problem:
            return [problem]
    return []


def _untrained(name: str, videos: list[LabelledVideo], where: str) -> list[FloatArray]:
    if name in SYSTEMS:
        scores = scores_of_videos(score_video, videos)
        return swapped(scores) if name == "pa-random" else scores
    naive: Naive = "persistence" if name == "persistence" else "window-mean"
    device = torch.device(where)
    return errors_of_naive(naive, videos, place_features(videos, device, "auto"), window=8)


def _split(scores: FloatArray, videos: Sequence[LabelledVideo]) -> list[FloatArray]:
    return np.split(scores, np.cumsum([len(video) for video in videos])[:-1])


def decide(row: Row, scores: FrameScores, labels: LabelSet, shared: Shared) -> tuple[PredictionSet, float]:
    """The boundaries of the test videos, and the threshold that made them.

    The labels are those of the training set, which the validation videos are part of.
    """
    settings = replace(TrainConfig().stream(scores.fps, PAPER_TAU), **row.deciding)
    same = (id(scores), row.obd, tuple(sorted(row.deciding.items())))
    threshold = row.tau
    if threshold is None or not row.obd:
        key = ("threshold", *same)
        if key not in shared:
            chosen = validate(
                row.name, *scores.validation, labels, settings, select_by="average", obd=row.obd
            )
            shared[key] = chosen.threshold
        threshold = shared[key]
    key = ("judged", *same)
    if key not in shared:
        shared[key] = judge(*scores.test, settings, obd=row.obd)
    return predictions_at(shared[key], threshold, settings), threshold


def given(row: Row, labels: LabelSet) -> PredictionSet:
    """The predictions in a row's file, by the labels' ids.

    Raises:
        MissingDataError: None of them is of a labelled video.
        LabelError: The file can't be read.
    """
    found = read_predictions(row.method)
    known = match_ids(found.videos, labels.videos).label_of
    if not known:
        raise MissingDataError(
            f"none of the {len(found.videos)} videos of {row.method} is among those to score"
        )
    return replace(found, videos={label: found.videos[name] for name, label in known.items()})


def watch(row: Row, part: Part, cache: Cache) -> PredictionSet:
    """The boundaries that a method finds in the videos themselves, with its default settings.

    A video that isn't there or can't be read has no prediction; a note counts those that can't be read.

    Raises:
        MissingDataError: None of the videos is there.
        OngebdError: The method can't be loaded.
    """
    files = part.files
    if not files:
        first = next(iter(part.labels.videos))
        raise MissingDataError(f"{row.method} needs the videos, but finds none, such as {first!r}")
    content = sha256("".join(f"{name} {path.stat().st_size}" for name, path in files.items()).encode())
    key = {"version": 2, "method": row.method, "ongebd": ongebd.__version__}
    key |= {"videos": content.hexdigest(), "labels": part.key[1]}

    def make(folder: Path) -> dict[str, Any]:
        model = ongebd.load(row.method)
        found, unread = {}, []
        for name, path in files.items():
            try:
                boundaries = ongebd.detect(path, model).boundaries
            except OngebdError as problem:
                unread.append(str(problem))
            else:
                found[name] = [(b.time, b.decided, b.onset) for b in boundaries]
        (folder / "boundaries.json").write_text(json.dumps(found), encoding="utf-8")
        return {"settings": str(model.defaults), "unread": unread}

    entry = cache.get("watched", key, make)
    kept, unread = (entry / "boundaries.json").read_text(encoding="utf-8"), cache.facts(entry)["unread"]
    notes = (f"{row.name} can't read {len(unread)} of {len(files)} files: {unread[0]}",) if unread else ()
    videos = {
        name: VideoPrediction(*np.array(rows, dtype=np.float64).reshape(-1, 3).T)
        for name, rows in json.loads(kept).items()
    }
    return PredictionSet(videos, source=row.method, notes=notes).of_instances(part.labels)
