"""Made features with known changes, to try a training on and to explain what it does.

An event is a direction in feature space about which the features wander slowly, with a little noise. At a
change the direction becomes another one. Features of two events share a common part, as features behind a
ReLU do: the cosine between them is `likeness`.

- An *abrupt* change comes out of nothing: no anticipator can see it coming.
- A *gradual* change fades from one event into the next over `fade` frames, its boundary in the middle. The
  frames before the boundary foreshadow it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ongebd.data.label_set import LabelSet, VideoLabels
from ongebd.data.numbers import FloatArray
from ongebd.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class SyntheticConfig:
    """What is made."""

    videos: int = 80
    """How many."""
    frames: int = 240
    """Frames in each, T."""
    dim: int = 64
    """Numbers in a feature, D."""
    fps: float = 24.0
    """Frames a second."""
    event: tuple[int, int] = (24, 60)
    """Shortest and longest event, frames."""
    gradual: float = 0.3
    """Share of the changes that are gradual, 0 to 1."""
    fade: int = 6
    """Frames that a gradual change takes."""
    likeness: float = 0.6
    """Cosine between two events, 0 to below 1."""
    wander: float = 0.15
    """How far features wander within an event, as a part of its own direction."""
    noise: float = 0.05
    """Noise of each frame, likewise."""
    seed: int = 0
    """Of everything."""

    def __post_init__(self) -> None:
        if not 0 <= self.gradual <= 1 or not 0 <= self.likeness < 1:
            raise ConfigError("gradual must lie between 0 and 1, likeness between 0 and below 1")
        if not self.fade + 2 <= self.event[0] <= self.event[1]:
            raise ConfigError(
                f"event must be (shortest, longest) with at least {self.fade + 2} frames, not {self.event}"
            )


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
    store = MemoryStore(config.dim, config.fps)
    labels = {}
    for number in range(config.videos):
        rng = np.random.default_rng((config.seed, number))
        features, changes = _video(config, rng)
        name, duration = f"video-{number}", config.frames / config.fps
        times = np.arange(config.frames) / config.fps
        epochs = np.zeros(config.frames, np.int32)
        store.videos[name] = MemoryVideo(features, times, epochs, duration)
        labels[name] = VideoLabels(name, duration, (np.array(changes) / config.fps,), fps=config.fps)
    return store, LabelSet(labels, "custom", "synthetic")


def _video(config: SyntheticConfig, rng: np.random.Generator) -> tuple[npt.NDArray[np.float16], list[int]]:
    """Features (T, D), and the frames at which a new event begins."""
    lengths: list[int] = []
    while sum(lengths) < config.frames:
        lengths.append(int(rng.integers(config.event[0], config.event[1] + 1)))
    changes = np.cumsum(lengths)[:-1]
    changes = changes[changes <= config.frames - config.event[0] // 2]

    common = np.ones(config.dim) / np.sqrt(config.dim)
    events = [_direction(config, common, rng) for _ in range(len(changes) + 1)]
    share = np.zeros((config.frames, len(events)))  # of each event in each frame
    edges = [0, *changes.tolist(), config.frames]
    for place in range(len(events)):
        share[edges[place] : edges[place + 1], place] = 1
    for place, change in enumerate(changes.tolist()):
        if rng.random() < config.gradual:
            first = change - config.fade // 2
            rise = (np.arange(config.fade) + 1) / (config.fade + 1)
            share[first : first + config.fade, place + 1] = rise
            share[first : first + config.fade, place] = 1 - rise

    wandering = np.cumsum(rng.standard_normal((config.frames, config.dim)), axis=0)
    wandering -= wandering.mean(axis=0)
    wandering *= config.wander / np.linalg.norm(wandering, axis=1).mean()
    noise = rng.standard_normal((config.frames, config.dim)) * config.noise / np.sqrt(config.dim)
    features = (share @ np.stack(events) + wandering + noise).astype(np.float16)
    return features, changes.tolist()


def _direction(config: SyntheticConfig, common: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A unit vector whose cosine with others of its kind is about `likeness`."""
    own = rng.standard_normal(config.dim)
    own -= (own @ common) * common
    own /= np.linalg.norm(own)
    direction: FloatArray = np.sqrt(config.likeness) * common + np.sqrt(1 - config.likeness) * own
    return direction
