"""The data of a training: the store, its labels, and the split."""

from __future__ import annotations

from dataclasses import dataclass

from ongebd.data.label_set import LabelSet
from ongebd.data.labelled import FeatureSource, LabelledVideo, label_videos, random_split
from ongebd.data.labels import read_labels
from ongebd.data.windows import WindowTape, build_tape, check_learnable
from ongebd.errors import ConfigError, LabelError
from ongebd.features.store import FeatureStore
from ongebd.lab.training.config import TrainConfig
from ongebd.lab.training.layout import layout_of


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """What a model is trained and validated on.

    Attributes:
        backbone: The identity of the features' backbone.
        dim: D.
        fps: Frames a second.
        labels: Of all videos.
        training: The training videos.
        validation: The validation videos.
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
        StoreError: The store cannot be read.
        LabelError: The labels cannot be read, or there is nothing to learn from.
    """
    for name in ("store", "labels"):
        if not getattr(config, name):
            raise ConfigError(f"no {name} given: say --{name}, or {name} in the configuration")
    return make_dataset(FeatureStore.open(config.store), read_labels(config.labels, config.dataset), config)


def make_dataset(store: FeatureSource, labels: LabelSet, config: TrainConfig) -> Dataset:
    """The same from a store and labels at hand.

    Raises:
        LabelError: There is nothing to learn from or to validate on.
    """
    labelled = label_videos(
        store, labels, rule=config.label_rule, near=config.near, id_pattern=config.id_pattern
    )
    training, validation = random_split(labelled.videos, config.validation_share, config.split_seed)
    if not training or not any(len(video) > 1 for video in validation):
        raise LabelError(
            f"{len(labelled.videos)} labelled videos in the store, and {len(training)} of them would train:"
            " too few to train and to validate on; add videos, or change validation_share"
        )
    window, region, run = layout_of(config, store.dim)
    tape = build_tape(training, window=window, region=region, run=run)
    check_learnable(tape, len(training))
    return Dataset(store.backbone, store.dim, store.fps, labels, training, validation, tape, labelled.notes)
