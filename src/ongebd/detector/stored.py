"""The boundaries of stored features: the same stream as of a video, only without decoding and backbone.

A store holds float16: with window-mean, errors of three clips differ from those of the video by up to 7e-6.
Where a method computes many frames in one call (`anticipate_run`, `probabilities`), its scores differ by
rounding, under 1e-5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ongebd.backbones import Backbone
from ongebd.data.labelled import LabelledVideo
from ongebd.data.windows import stretches
from ongebd.detector.config import StreamConfig
from ongebd.detector.detector import OnlineDetector
from ongebd.detector.model import Model
from ongebd.detector.models import load
from ongebd.errors import ConfigError
from ongebd.features.store import FeatureStore, StoredVideo
from ongebd.types import Boundary, Decision, Feature

_LONGEST = 8192  # frames that a network takes in one call; a longer stretch goes frame by frame


def load_for(store: FeatureStore, name: str, device: str = "cpu") -> Model:
    """Load a model for the features of a store; its backbone isn't loaded.

    Raises:
        ConfigError: The store's features are of another backbone, or as for `load`.
    """
    backbone = Backbone(store.backbone.partition("@")[0], store.backbone, store.dim, 0, 0)
    return load(name, device=device, backbone=backbone)


def check_rate(store: FeatureStore, model: Model, settings: StreamConfig) -> None:
    """Refuse a store that wasn't sampled at the rate of a stream's settings.

    Raises:
        ConfigError: The rates differ.
    """
    if float(settings.rate()) != store.fps:
        another = f"make a store with: ongebd extract … --fps {settings.fps:g}"
        raise ConfigError(
            f"{store.path}: has {store.fps:g} frames a second, but {model.name} looks at {settings.fps:g};"
            f" {another if model.one_rate else f'add --fps {store.fps:g}'}"
        )


def detect_stored(
    video: StoredVideo | LabelledVideo, model: Model, settings: StreamConfig
) -> tuple[list[Boundary], list[Decision]]:
    """The boundaries of one video, in the order in which they are decided, and the decisions on its frames.

    Args:
        video: Its features.
        model: From `load_for`.
        settings: As `model.configured` gives them.

    Raises:
        FeatureError: A feature is NaN, infinite or zero.
    """
    features = video.features.astype(np.float32)
    method: Any = model.method(settings)
    scores = _scores(method, model, features, video.epochs)
    if scores is not None:
        method = _Known(method.name, scores)
    detector = OnlineDetector(model.backbone, method, settings, model.error, levels=model.levels)
    decisions: list[Decision] = []
    for first, end in stretches(video.epochs):
        if first:
            detector.new_epoch()
        for feature, time in zip(features[first:end], video.times[first:end].tolist(), strict=True):
            decisions.append(detector.update_feature(feature, time))
        decisions += detector.drain()
        detector.flush()
    return detector.closed(), [decision for decision in decisions if not decision.pending]


def _scores(
    method: Any, model: Model, features: npt.NDArray[np.float32], epochs: npt.NDArray[np.int32]
) -> Sequence[float | None] | None:
    """The score of each frame, if the method can compute many in one call."""
    parts = [features[first:end] for first, end in stretches(epochs)]
    if hasattr(method, "anticipate_run"):
        return [score for part in parts for score in _errors(method, model, part)]
    if hasattr(method, "probabilities") and max(map(len, parts), default=0) <= _LONGEST:
        return [score for part in parts for score in (None, *method.probabilities(part)[1:].tolist())]
    return None


def _errors(method: Any, model: Model, part: npt.NDArray[np.float32]) -> Iterable[float | None]:
    """ε of each frame of an unbroken stretch; the first feature is repeated, as at the start of a stream."""
    still = np.repeat(part[:1], method.window - 1, axis=0)
    anticipated = method.anticipate_run(np.concatenate([still, part[:-1]])) if len(part) > 1 else ()
    return [None, *map(model.error, part[1:], anticipated)]


class _Known:
    """A scorer (`ongebd.detector.detector.Scorer`) whose scores are known already."""

    latency = state_bytes = 0

    def __init__(self, name: str, scores: Sequence[float | None]) -> None:
        self.name = name
        self._scores = iter(scores)

    def update(self, feature: Feature, time: float) -> float | None:
        """The next one."""
        del feature, time
        return next(self._scores)

    def flush(self) -> list[float | None]:
        """Nothing is held back."""
        return []

    def reset(self) -> None:
        """The scores of a new epoch follow."""
