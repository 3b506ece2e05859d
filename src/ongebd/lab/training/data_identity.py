"""What a training's data are, in a few values: a training goes on with the very same or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np

from ongebd.data.label_set import VideoLabels
from ongebd.errors import ConfigError
from ongebd.lab.training.dataset import Dataset

_DIGITS = 12


@dataclass(frozen=True, slots=True)
class DataIdentity:
    """Features, videos and labels of a training. Where they lie makes no difference.

    Attributes:
        backbone: Name and weights of the features' backbone.
        dim: D.
        fps: Frames a second.
        videos: Fingerprint of the ids and the frames' times of training and validation videos.
        labels: Fingerprint of these videos' labels and of the targets that were made of them.
    """

    backbone: str
    dim: int
    fps: float
    videos: str
    labels: str

    @classmethod
    def of(cls, dataset: Dataset) -> Self:
        """The identity of the data at hand; reads times and labels, no features."""
        videos, labels = hashlib.sha256(), hashlib.sha256()
        for share in (dataset.training, dataset.validation):
            videos.update(f"share of {len(share)}\n".encode())
            for video in share:
                videos.update(f"{video.id!r} {len(video)}\n".encode())
                videos.update(np.asarray(video.times, "<f8").tobytes())
                videos.update(np.asarray(video.epochs, "<i4").tobytes())
                labels.update(_label_line(dataset.labels.videos[video.id]).encode())
                labels.update(np.packbits(video.targets).tobytes())
        marks = (digest.hexdigest()[:_DIGITS] for digest in (videos, labels))
        return cls(dataset.backbone, int(dataset.dim), float(dataset.fps), *marks)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """What `to_dict` gave.

        Raises:
            KeyError: A value is missing.
        """
        return cls(**{field.name: values[field.name] for field in fields(cls)})

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    def require_same(self, now: DataIdentity, where: str) -> None:
        """Make sure that a training on these data may go on with others.

        Args:
            now: Of the data that it would go on with.
            where: Whose data these are, for the message.

        Raises:
            ConfigError: They are others.
        """
        plain = [
            f"{what} {then!r}, not {other!r}"
            for what, then, other in (
                ("features of", self.backbone, now.backbone),
                ("numbers in a feature", self.dim, now.dim),
                ("frames a second", self.fps, now.fps),
            )
            if then != other
        ]
        if plain:
            raise ConfigError(
                f"{where}: was trained on other data: {'; '.join(plain)}; give the store of then, or name"
                " another --out"
            )
        changed = [name for name in ("videos", "labels") if getattr(self, name) != getattr(now, name)]
        if changed:
            raise ConfigError(
                f"{where}: was trained on other data, the {' and the '.join(changed)} have changed since;"
                " give the store and the labels of then, or name another --out"
            )


def _label_line(label: VideoLabels) -> str:
    """All of a video's labels that training or validation looks at, exactly."""
    marks = [np.asarray(times, np.float64).tolist() for times in label.boundaries]
    weights = label.consistency, label.annotator_consistency
    return f"{label.id!r} {float(label.duration)!r} {marks} {weights}\n"
