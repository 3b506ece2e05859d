"""Synthetic features with known changes, to try out a training.

An event is a direction in feature space around which the features wander slowly, with a little noise. At a
change the direction becomes another one. Features of two events share a common part, as features after a ReLU
do: the cosine between them is `likeness`.

- Nothing announces an *abrupt* change: no anticipator can see it coming.
- A *gradual* change fades from one event into the next over `FADE` frames, with its boundary in the middle.
  The frames before the boundary announce it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ongebd.data.files import FloatArray
from ongebd.data.label_set import LabelSet, VideoLabels

FPS = 24.0
FADE = 6  # frames
_WANDER, _NOISE = 0.15, 0.05  # relative to an event's direction


@dataclass(frozen=True, kw_only=True)
class SyntheticConfig:
    """How many videos of T frames with D numbers each; events in frames, at least FADE + 2 of them."""

    videos: int = 80
    frames: int = 240
    dim: int = 64
    event: tuple[int, int] = (24, 60)
    gradual: float = 0.3  # share of the changes
    likeness: float = 0.6
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class MemoryVideo:
    """One video of a `MemoryStore`; see `ongebd.features.store.StoredVideo`."""

    features: npt.NDArray[np.float16]
    times: FloatArray
    epochs: npt.NDArray[np.int32]
    duration: float


@dataclass(frozen=True, slots=True, eq=False)
class MemoryStore:
    """A feature store without a disk."""

    dim: int
    fps: float
    backbone: str = "synthetic"
    videos: dict[str, MemoryVideo] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.videos)

    def ids(self) -> list[str]:
        """The ids of all videos."""
        return list(self.videos)

    def __getitem__(self, video_id: str, /) -> MemoryVideo:
        return self.videos[video_id]


def make_synthetic(config: SyntheticConfig | None = None) -> tuple[MemoryStore, LabelSet]:
    """Make features, and labels that say where they change.

    >>> store, labels = make_synthetic(SyntheticConfig(videos=2))
    >>> store["video-0"].features.shape, len(labels.videos["video-0"].boundaries[0])
    ((240, 64), 5)
    """
    config = config or SyntheticConfig()
    store = MemoryStore(config.dim, FPS)
    labels = {}
    for number in range(config.videos):
        features, changes = _video(config, np.random.default_rng((config.seed, number)))
        name, duration = f"video-{number}", config.frames / FPS
        times, epochs = np.arange(config.frames) / FPS, np.zeros(config.frames, np.int32)
        store.videos[name] = MemoryVideo(features, times, epochs, duration)
        labels[name] = VideoLabels(name, duration, (np.array(changes) / FPS,), fps=FPS)
    return store, LabelSet(labels, "custom", "synthetic")


def _video(config: SyntheticConfig, rng: np.random.Generator) -> tuple[npt.NDArray[np.float16], list[int]]:
    """Features (T, D), and the frames at which a new event begins."""
    lengths: list[int] = []
    while sum(lengths) < config.frames:
        lengths.append(int(rng.integers(config.event[0], config.event[1] + 1)))
    changes = np.cumsum(lengths)[:-1]
    changes = changes[changes <= config.frames - config.event[0] // 2]

    common = np.ones(config.dim) / np.sqrt(config.dim)
    events = [_direction(config.likeness, common, rng) for _ in range(len(changes) + 1)]
    share = np.zeros((config.frames, len(events)))  # of each event in each frame
    edges = [0, *changes.tolist(), config.frames]
    for place in range(len(events)):
        share[edges[place] : edges[place + 1], place] = 1
    rise = (np.arange(FADE) + 1) / (FADE + 1)
    for place, change in enumerate(changes.tolist()):
        if rng.random() < config.gradual:
            first = change - FADE // 2
            share[first : first + FADE, place + 1] = rise
            share[first : first + FADE, place] = 1 - rise

    wandering = np.cumsum(rng.standard_normal((config.frames, config.dim)), axis=0)
    wandering -= wandering.mean(axis=0)
    wandering *= _WANDER / np.linalg.norm(wandering, axis=1).mean()
    noise = rng.standard_normal((config.frames, config.dim)) * _NOISE / np.sqrt(config.dim)
    features = (share @ np.stack(events) + wandering + noise).astype(np.float16)
    return features, changes.tolist()


def _direction(likeness: float, common: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A unit vector whose cosine with others of its kind is about `likeness`."""
    own = rng.standard_normal(len(common))
    own -= (own @ common) * common
    own /= np.linalg.norm(own)
    direction: FloatArray = np.sqrt(likeness) * common + np.sqrt(1 - likeness) * own
    return direction
