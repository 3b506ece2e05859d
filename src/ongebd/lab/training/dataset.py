"""The data of a training: the store, its labels and the split; and a fingerprint of them for resuming."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Self

import numpy as np

from ongebd.baselines.methods import make_network, network_shape, shape_of
from ongebd.data.label_set import LabelSet, VideoLabels
from ongebd.data.labelled import FeatureSource, LabelledVideo, label_videos, random_split
from ongebd.data.labels import read_labels
from ongebd.data.windows import WindowTape, build_clips, build_tape, check_learnable
from ongebd.errors import ConfigError, LabelError
from ongebd.features.store import FeatureStore
from ongebd.lab.training.config import ESTIMATOR, RATES, TrainConfig
from ongebd.offline.systems import TRAINED, network_kind
from ongebd.offline.whole_video import stride_of


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """What a model is trained and validated on.

    Attributes:
        backbone: The identity of the features' backbone.
        dim: D.
        fps: Frames per second.
        labels: Of all videos.
        training: Videos.
        validation: Videos.
        tape: The training videos as runs.
        notes: What was left out, one line each.
    """

    backbone: str
    dim: int
    fps: float
    labels: LabelSet
    training: list[LabelledVideo]
    validation: list[LabelledVideo]
    tape: WindowTape
    notes: tuple[str, ...]


def open_dataset(config: TrainConfig) -> Dataset:
    """Open the store and the labels that a configuration names.

    Raises:
        ConfigError: It names none.
        StoreError: The store can't be read.
        LabelError: The labels can't be read, or there is nothing to learn from.
    """
    for name in ("store", "labels"):
        if not getattr(config, name):
            raise ConfigError(f"no {name} given: set --{name}, or {name} in the configuration")
    return make_dataset(FeatureStore.open(config.store), read_labels(config.labels, config.dataset), config)


def make_dataset(store: FeatureSource, labels: LabelSet, config: TrainConfig) -> Dataset:
    """Label a store's videos and split them.

    Raises:
        ConfigError: The features have another rate than the data set or `fps` says.
        LabelError: There is nothing to learn from or to validate on.
    """
    rate = config.fps or RATES.get(labels.dataset, store.fps)
    if store.fps != rate:
        what = "fps" if config.fps else labels.dataset
        raise ConfigError(
            f"the features are at {store.fps:g} frames a second, but {what} is {rate:g}: extract with --fps"
            f" {rate:g}, or train at another rate on purpose with --set fps={store.fps:g}"
        )
    labelled = label_videos(
        store, labels, rule=config.label_rule, near=config.near, id_pattern=config.id_pattern
    )
    training, validation = random_split(labelled.videos, config.validation_share, config.split_seed)
    if not training or not any(len(video) > 1 for video in validation):
        raise LabelError(
            f"the store has {len(labelled.videos)} labelled videos, of which {len(training)} would train:"
            " too few to train and to validate on; add videos, or change validation_share"
        )
    tape = _tape(training, store, config)
    check_learnable(tape, len(training))
    return Dataset(store.backbone, store.dim, store.fps, labels, training, validation, tape, labelled.notes)


def _tape(training: list[LabelledVideo], store: FeatureSource, config: TrainConfig) -> WindowTape:
    """The training videos as runs; as clips for an offline system."""
    if config.method not in TRAINED:
        return build_tape(training, **_sample_layout(config, store.dim))
    kind = network_kind(config.method).Shape
    shape = shape_of(kind, config.method, config.network_settings(), store.dim)
    return build_clips(training, length=shape.length, stride=stride_of(store.fps, shape.fps))


def _sample_layout(config: TrainConfig, dim: int) -> dict[str, int]:
    """The arguments of `build_tape`, as the method's loss needs them."""
    if config.method == ESTIMATOR:
        return {"window": config.window, "region": config.region, "run": config.run}
    import torch

    with torch.device("meta"):  # for the shape; no weights are made
        shape = network_shape(config.method, config.network_settings(), dim=dim)
        return make_network(config.method, shape).layout()._asdict()


@dataclass(frozen=True, slots=True)
class DataIdentity:
    """A fingerprint of features, videos and labels, wherever they are stored.

    Attributes:
        backbone: Name and weights of the features' backbone.
        dim: D.
        fps: Frames per second.
        videos: Of the ids and the frames' times of training and validation videos.
        labels: Of these videos' labels and of the targets made from them.
    """

    backbone: str
    dim: int
    fps: float
    videos: str
    labels: str

    @classmethod
    def of(cls, dataset: Dataset) -> Self:
        """Reads times and labels, no features."""
        videos, labels = hashlib.sha256(), hashlib.sha256()
        for share in (dataset.training, dataset.validation):
            videos.update(f"share of {len(share)}\n".encode())
            for video in share:
                videos.update(f"{video.id!r} {len(video)}\n".encode())
                videos.update(np.asarray(video.times, "<f8").tobytes())
                videos.update(np.asarray(video.epochs, "<i4").tobytes())
                labels.update(_label_line(dataset.labels.videos[video.id]).encode())
                labels.update(np.packbits(video.targets).tobytes())
        digests = (digest.hexdigest()[:12] for digest in (videos, labels))
        return cls(dataset.backbone, int(dataset.dim), float(dataset.fps), *digests)


def _label_line(label: VideoLabels) -> str:
    """All of a video's labels that training or validation uses, exactly."""
    marks = [np.asarray(times, np.float64).tolist() for times in label.boundaries]
    weights = label.consistency, label.annotator_consistency
    return f"{label.id!r} {float(label.duration)!r} {marks} {weights}\n"
