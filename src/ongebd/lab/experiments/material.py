"""What is trained and tested on: sets of videos as stored features with labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from ongebd.data.label_set import LabelSet
from ongebd.errors import OngebdError
from ongebd.features.store import FeatureStore
from ongebd.lab.experiments.table import Which

_SAMPLE = 1 << 16  # bytes of a shard that its fingerprint looks at, at each of four places


@dataclass(frozen=True, eq=False)
class Part:
    """Some labelled videos.

    Attributes:
        store: Folder of their features; it may hold others too.
        labels: Theirs.
        files: Their files, by id, where they are at hand.
    """

    store: Path
    labels: LabelSet
    files: Mapping[str, Path] = field(default_factory=dict)

    @cached_property
    def key(self) -> list[str]:
        """What the features and labels are, for `ongebd.lab.experiments.shelf`."""
        return [store_key(self.store), labels_key(self.labels)]


@dataclass(frozen=True, eq=False)
class VideoSet:
    """A data set, or what stands in its place.

    Attributes:
        name: What readers are told that it is.
        training: To train and to choose thresholds on.
        test: To score on; nothing is chosen on it. No clip of it is in `training`.
    """

    name: str
    training: Part
    test: Part


class Material(Protocol):
    """Where sets come from."""

    about: str
    """One sentence for the report."""

    are_composites: bool

    def get(self, which: Which) -> VideoSet:
        """A set; it is made, or opened, at the first call.

        Raises:
            LackingError: It is not there.
            OngebdError: It cannot be read.
        """


class LackingError(OngebdError):
    """A set, or a part of one, that is not at hand; tables that need it say so and are left out."""


def store_key(folder: Path) -> str:
    """A fingerprint of a store: its index, and samples of its shards (all of 18 GB would take a while)."""
    store = FeatureStore.open(folder)
    digest = sha256(repr((store.header, sorted(store.ids()))).encode())
    digest.update((folder / "index.jsonl").read_bytes())
    for shard in sorted(folder.glob("shard-*.bin")):
        size = shard.stat().st_size
        digest.update(f"{shard.name} {size}".encode())
        with shard.open("rb") as file:
            for place in (0, size // 3, 2 * size // 3, max(0, size - _SAMPLE)):
                file.seek(place)
                digest.update(file.read(_SAMPLE))
    return digest.hexdigest()


def labels_key(labels: LabelSet) -> str:
    """A fingerprint of labels."""
    digest = sha256(labels.dataset.encode())
    for name, video in sorted(labels.videos.items()):
        rows = [row.tolist() for row in video.boundaries]
        digest.update(repr((name, video.duration, video.consistency, rows)).encode())
    return digest.hexdigest()
