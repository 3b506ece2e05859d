"""From a row to what was counted: training, errors, the threshold, decisions. Needs the extra `train`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ongebd.data.label_set import LabelSet
from ongebd.data.labelled import LabelledVideo, label_videos
from ongebd.data.numbers import FloatArray
from ongebd.data.prediction_set import PredictionSet
from ongebd.detector.config import StreamConfig
from ongebd.features.store import FeatureStore
from ongebd.lab.evaluation.comparison import Comparison
from ongebd.lab.experiments.columns import Counted, comparison_of, counted
from ongebd.lab.experiments.material import Part, VideoSet
from ongebd.lab.experiments.scales import Scale
from ongebd.lab.experiments.shelf import Shelf
from ongebd.lab.experiments.table import LITERAL, Row
from ongebd.lab.training.batches import place_features
from ongebd.lab.training.config import ESTIMATOR, TrainConfig
from ongebd.lab.training.dataset import make_dataset
from ongebd.lab.training.loop import MODEL, Quiet, Watcher, train
from ongebd.lab.training.processes import checked_device
from ongebd.lab.training.scores import Naive, errors_of_naive
from ongebd.lab.training.task import Task, task_of
from ongebd.lab.training.validation import judge, predictions_at, validate

VERSION = 1
"""Of what errors mean; another one trains everything anew."""

SELECT_BY = "average"
"""What the threshold is chosen by, on the validation videos: the paper's figure."""

# What changes neither the weights nor the errors, so that rows which differ in it share a training.
_DECIDES = ("tau", "delta", "warmup", "min_std", "min_error", "min_gap", "max_run", "select_by", "obd")
_WHERE = ("store", "labels", "out", "device", "compile", "features_in", "tensorboard", "validate_every")


@dataclass(frozen=True, eq=False)
class Scored:
    """Errors, or probabilities, of the frames of two groups of videos.

    Attributes:
        validation: Videos on which a threshold is chosen, and a score for each of their frames.
        test: Videos that are scored.
        fps: Frames a second.
        facts: Seconds, memory and parameters of the training, where there was one.
    """

    validation: tuple[list[LabelledVideo], list[FloatArray]]
    test: tuple[list[LabelledVideo], list[FloatArray]]
    fps: float
    facts: Mapping[str, Any]


class Scoring:
    """Trains what rows need, once, and counts what they find.

    Args:
        scale: How large.
        shelf: Where errors are kept.
        device: auto, cpu, cuda or cuda:N.
        watcher: Follows each training.

    Raises:
        ConfigError: There is no such device.

    Attributes:
        device: The one that is used.
    """

    def __init__(
        self, scale: Scale, shelf: Shelf, device: str = "auto", watcher: Watcher | None = None
    ) -> None:
        self._scale, self._shelf = scale, shelf
        self._watcher = watcher or Quiet()
        self.device = str(checked_device(device))
        self._labelled: dict[tuple[int, str, float], list[LabelledVideo]] = {}

    def config(self, row: Row, seed: int) -> TrainConfig:
        """How a row is trained."""
        settings: dict[str, Any] = {**self._scale.training, "method": row.method, "seed": seed}
        if row.method != ESTIMATOR:
            for name in ("width", "ffn", "heads", "layers"):
                settings.pop(name, None)
            network = self._scale.networks.get(row.method, "")
            settings |= {"network": network, "obd": False, "own_recipe": not network}
        settings |= {**self._scale.special.get(row.method, {}), **row.training}
        if not (settings.get("est", True) or settings.get("rest", True)):
            settings["obd"] = False
        epochs = settings.get("epochs", TrainConfig().epochs)
        return TrainConfig(
            **{**settings, "validate_every": epochs, "tensorboard": False, "device": self.device}
        )

    def key(self, row: Row, seed: int, trained_on: VideoSet, data: VideoSet) -> dict[str, Any]:
        """All that a row's errors depend on."""
        if row.kind == "untrained":
            how: dict[str, Any] = {"untrained": row.method}
        else:
            how = {k: v for k, v in asdict(self.config(row, seed)).items() if k not in (*_DECIDES, *_WHERE)}
        sets = [*trained_on.training.key, *data.test.key]
        return {"version": VERSION, "how": how, "sets": sets, "device": self.device.partition(":")[0]}

    def is_there(self, row: Row, seed: int, trained_on: VideoSet, data: VideoSet) -> bool:
        """Whether its errors are kept already."""
        return self._shelf.has("errors", self.key(row, seed, trained_on, data))

    def scored(self, row: Row, seed: int, trained_on: VideoSet, data: VideoSet) -> Scored:
        """The errors of a row, trained if they are not kept."""
        key = self.key(row, seed, trained_on, data)
        config = self.config(row, seed) if row.kind == "trained" else TrainConfig(**self._scale.training)
        dataset = make_dataset(
            FeatureStore.open(trained_on.training.store), trained_on.training.labels, config
        )
        test = self._videos(data.test, config)

        def make(folder: Path) -> dict[str, Any]:
            facts: dict[str, Any] = {}
            scores: dict[str, list[FloatArray]] = {}
            device = torch.device(self.device)
            if row.kind == "untrained":
                for name, videos in (("validation", dataset.validation), ("test", test)):
                    scores[name] = _untrained(row.method, videos, device)
            else:
                task, network, facts = self._trained(config, folder, dataset)
                for name, videos in (("validation", dataset.validation), ("test", test)):
                    features = place_features(videos, device, "auto")
                    scores[name] = task.scores(network, videos, features, device)
                if seed == 0 and not row.training:  # for pictures of videos
                    (folder / "training" / MODEL).rename(folder / "model")
                shutil.rmtree(folder / "training")
            validation, on_test = (np.concatenate(scores[name]) for name in ("validation", "test"))
            np.savez(folder / "errors.npz", validation=validation, test=on_test)
            return facts

        folder = self._shelf.kept("errors", key, make)
        with np.load(folder / "errors.npz") as kept:
            both = [
                _parted(kept[name], videos)
                for name, videos in (("validation", dataset.validation), ("test", test))
            ]
        facts = self._shelf.facts("errors", key)
        return Scored((dataset.validation, both[0]), (test, both[1]), dataset.fps, facts)

    def _trained(self, config: TrainConfig, folder: Path, dataset: Any) -> tuple[Task, Any, dict[str, Any]]:
        device = torch.device(self.device)
        on_gpu = device.type == "cuda"
        if on_gpu:
            torch.cuda.reset_peak_memory_stats(device)
        out = replace(config, out=str(folder / "training"))
        trained = train(out, dataset=dataset, watcher=self._watcher, report=False)
        memory = torch.cuda.max_memory_allocated(device) if on_gpu else None
        task = task_of(config)
        facts = {
            "method": config.method,
            "frames": sum(map(len, dataset.training)) * config.epochs,
            "memory": memory,
            "parameters": sum(weight.numel() for weight in trained.model.parameters()),
        }
        return task, trained.model, facts

    def _videos(self, part: Part, config: TrainConfig) -> list[LabelledVideo]:
        key = (id(part), config.label_rule, config.near)
        if key not in self._labelled:
            store = FeatureStore.open(part.store)
            found = label_videos(store, part.labels, rule=config.label_rule, near=config.near)
            self._labelled[key] = found.videos
        return self._labelled[key]


def decided(
    row: Row, scored: Scored, training: LabelSet, cache: dict[Any, Any]
) -> tuple[PredictionSet, float]:
    """The boundaries of the test videos, and the threshold that made them.

    Args:
        row: How it is decided.
        scored: Its errors.
        training: Labels of the training set, of which the validation videos are a part.
        cache: What rows of the same errors share: z does not depend on τ.
    """
    settings = StreamConfig(
        **{"fps": scored.fps, "window": 8, "delta": 21, "tau": 1.5, **LITERAL, **row.deciding}
    )
    shared = (id(scored), row.obd, tuple(sorted(row.deciding.items())))
    if row.tau is not None and row.obd:
        threshold = row.tau
    else:
        name = ("threshold", *shared)
        if name not in cache:
            chosen = validate(
                row.name, *scored.validation, training, settings, select_by=SELECT_BY, obd=row.obd
            )
            cache[name] = chosen.threshold
        threshold = cache[name]
    name = ("judged", *shared)
    if name not in cache:
        cache[name] = judge(*scored.test, settings, obd=row.obd)
    return predictions_at(cache[name], threshold, settings), threshold


def count(labels: LabelSet, predictions: PredictionSet) -> tuple[Counted, Comparison]:
    """What is right of them."""
    comparison = comparison_of(labels, predictions)
    return counted(comparison), comparison


def seeds_of(row: Row, scale: Scale) -> Sequence[int]:
    """The seeds with which a row is trained; what is not trained has one."""
    return range(scale.seeds) if row.kind == "trained" else (0,)


def _untrained(name: str, videos: list[LabelledVideo], device: torch.device) -> list[FloatArray]:
    naive: Naive = "persistence" if name == "persistence" else "window-mean"
    return errors_of_naive(naive, videos, place_features(videos, device, "auto"), device, window=8)


def _parted(scores: FloatArray, videos: Sequence[LabelledVideo]) -> list[FloatArray]:
    return np.split(scores, np.cumsum([len(video) for video in videos])[:-1])
