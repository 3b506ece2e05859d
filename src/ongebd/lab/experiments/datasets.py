"""Data sets as stored features with labels; and the paper's, as a researcher has them, in one folder.

`ongebd experiment list --help` shows the layout of that folder. Each test set may have videos/ beside its
features, for methods that need pictures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from ongebd.data.id_matching import instances_in, match_ids
from ongebd.data.label_set import LabelSet
from ongebd.data.labels import Dataset as Rules
from ongebd.data.labels import read_labels
from ongebd.errors import ConfigError, MissingDataError
from ongebd.features.store import FeatureStore
from ongebd.lab.experiments.definition import PAPER_SETS, TSN, SetName
from ongebd.lab.training.config import RATES
from ongebd.video.stills import ENDINGS

_SAMPLE = 1 << 16  # bytes of a shard that its fingerprint reads, at each of four places
_RULES: Mapping[SetName, Rules] = {
    "kinetics": "kinetics-gebd",
    "tapos": "tapos",
    "inria": "inria",
    "tsn-sthv2": "kinetics-gebd",
    "tsn-kinetics": "kinetics-gebd",
}
"""The rules of each set, which are also the name of its folder."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some labelled videos.

    Attributes:
        store: Folder of their features; it may hold others too.
        labels: Theirs.
        files: Their files, as far as they are there, by id; that of a TAPOS instance may be its shot.
    """

    store: Path
    labels: LabelSet
    files: Mapping[str, Path] = field(default_factory=dict)

    @property
    def about(self) -> str:
        """The features, and which labels these are."""
        store, labels = FeatureStore.open(self.store), self.labels
        name = Path(labels.source).name if labels.source else "made with the videos"
        return (
            f"features of {store.backbone} at {store.fps:g} frames a second; labels {name},"
            f" sha256 {(labels.sha256 or self.key[1])[:12]}"
        )

    @cached_property
    def key(self) -> list[str]:
        """Fingerprints of the features and the labels, for the cache."""
        return [store_key(self.store), labels_key(self.labels)]


@dataclass(frozen=True, eq=False)
class DataSet:
    """A data set, or composites in its place.

    Attributes:
        name: For readers.
        training: To train and to choose thresholds on.
        test: To score on. Nothing is chosen on it, and it shares no clip with `training`.
        unlike: What makes it unlike the paper's, in a few words each.
    """

    name: str
    training: Part
    test: Part
    unlike: tuple[str, ...] = ()


class DataSource(Protocol):
    """Where data sets come from.

    Attributes:
        about: One sentence for the report.
    """

    about: str

    def get(self, name: SetName) -> DataSet:
        """Make or open a set.

        Raises:
            MissingDataError: It isn't there.
            OngebdError: It can't be read.
        """


class DataFolder:
    """The paper's data sets in a folder.

    Raises:
        ConfigError: None of them is in it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        known = list(dict.fromkeys(_RULES.values()))
        there = [name for name in known if (folder / name).is_dir()]
        if not there:
            raise ConfigError(
                f"{folder}: none of {', '.join(known)} is in it;"
                " `ongebd experiment list --help` shows the layout"
            )
        self.about = f"The data sets {', '.join(there)}, by their own rules."

    def get(self, name: SetName) -> DataSet:
        """See `DataSource`."""
        shown, store, command = PAPER_SETS[name], "features", "ongebd extract"
        if name in TSN:
            shown += f" with features of TSN trained on {TSN[name]}"
            store += f"-{name}"
            command += f" --backbone {name} --weights FILE"
        path = self._folder / _RULES[name] / store
        if not (path / "store.json").exists():
            raise MissingDataError(f"{shown} is not there: make {path} with `{command}`")
        opened = FeatureStore.open(path)
        backbone, rate = opened.backbone, RATES[_RULES[name]]
        if opened.fps != rate:
            raise ConfigError(
                f"{path}: has features at {opened.fps:g} frames a second, but {shown} takes {rate:g};"
                f" make it with `{command} --fps {rate:g}`"
            )
        if name in TSN and not backbone.startswith(name):
            raise ConfigError(f"{path}: has features of {backbone}, not of {name}; make it with `{command}`")
        test = _part(path, "test", _RULES[name], shown)
        unlike: tuple[str, ...] = ()
        if name not in TSN and not backbone.startswith("resnet50@"):
            unlike = (f"features of {backbone.split('@')[0]}, not of ResNet-50",)
            shown += f" with {unlike[0]}"
        training = test if name == "inria" else _part(path, "train", _RULES[name], shown)
        return DataSet(shown, training, test, unlike)


def _part(store: Path, part: str, rules: Rules, shown: str) -> Part:
    folder = store.parent
    found = [path for end in ("pkl", "pickle", "json", "csv") if (path := folder / f"{part}.{end}").exists()]
    if not found:
        purpose = "train on" if part == "train" else "score on"
        raise MissingDataError(f"{shown} has no labels to {purpose}: {folder / part}.pkl")
    labels = read_labels(found[0], rules)
    videos = folder / "videos"
    found = sorted(videos.iterdir()) if videos.is_dir() else []
    files = {path.stem: path for path in found if path.suffix.lower() in ENDINGS}
    match = match_ids(files, labels.videos)
    cut, _ = instances_in(match.unknown, labels, match.label_of.values())
    shots = {instance.shot: instance.shot for instance in cut.values()}
    there = {name: files[stem] for stem, name in (match.label_of | shots).items()}
    return Part(store, labels, there)


def store_key(folder: Path) -> str:
    """A fingerprint of a store: its index, and samples of its shards (reading all of 18 GB takes a while)."""
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
