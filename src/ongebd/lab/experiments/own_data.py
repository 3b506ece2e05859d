"""The paper's data sets, as a researcher has them: features and labels in folders of one layout.

    DATA/kinetics-gebd/features/   store of `ongebd extract --fps 24`, training and validation videos
    DATA/kinetics-gebd/train.pkl   labels to train on        (.pkl, .json or .csv)
    DATA/kinetics-gebd/test.pkl    labels to score on: the official validation set
    DATA/tapos/                    likewise, at 6 frames a second
    DATA/inria/                    likewise; no training labels

A folder `videos/` beside `features/` lets methods that need pictures run too. For the tables of TSN's
features there may be two more stores, of the same videos:

    DATA/kinetics-gebd/features-tsn-sthv2/      `ongebd extract --fps 24 --backbone tsn-sthv2 --weights FILE`
    DATA/kinetics-gebd/features-tsn-kinetics/   likewise, --backbone tsn-kinetics
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ongebd.data.id_matching import match_ids
from ongebd.data.label_set import LabelSet
from ongebd.data.labels import Dataset as Rules
from ongebd.data.labels import read_labels
from ongebd.errors import ConfigError
from ongebd.features.store import FeatureStore
from ongebd.lab.composites.scan import ENDINGS
from ongebd.lab.experiments.material import LackingError, Part, VideoSet
from ongebd.lab.experiments.table import PAPERS, TSN, Which


@dataclass(frozen=True, slots=True)
class Place:
    """Where a set lies.

    Attributes:
        rules: The data set's, and the name of its folder.
        name: What readers are told that it is.
        features: Name of the store in that folder.
        command: That makes the store.
    """

    rules: Rules
    name: str
    features: str = "features"
    command: str = "ongebd extract"


def _with_tsn(which: Which) -> Place:
    return Place(
        "kinetics-gebd",
        f"{PAPERS[which]} with features of TSN trained on {TSN[which]}",
        f"features-{which}",
        f"ongebd extract --fps 24 --backbone {which} --weights FILE",
    )


PLACES: Mapping[Which, Place] = {
    "main": Place("kinetics-gebd", PAPERS["main"]),
    "second": Place("tapos", PAPERS["second"]),
    "zero-shot": Place("inria", PAPERS["zero-shot"]),
    **{which: _with_tsn(which) for which in TSN},
}
_LABEL_ENDINGS = (".pkl", ".pickle", ".json", ".csv")


class OwnData:
    """Data sets in a folder.

    Args:
        folder: Of the layout above.

    Raises:
        ConfigError: There is no such folder, or none of the data sets in it.
    """

    are_composites = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        names = list(dict.fromkeys(place.rules for place in PLACES.values()))
        there = [name for name in names if (folder / name).is_dir()]
        if not there:
            raise ConfigError(
                f"{folder}: none of {', '.join(names)} is in it;"
                " `ongebd experiment list --help` shows the layout"
            )
        self._sets: dict[Which, VideoSet] = {}
        self.about = f"The data sets {', '.join(there)}, by their own rules."

    def get(self, which: Which) -> VideoSet:
        """See `Material`."""
        if which not in self._sets:
            self._sets[which] = self._opened(which)
        return self._sets[which]

    def _opened(self, which: Which) -> VideoSet:
        place = PLACES[which]
        folder = self._folder / place.rules
        path = folder / place.features
        if not (path / "store.json").exists():
            raise LackingError(f"{place.name} is not there: make {path} with `{place.command}`")
        store = FeatureStore.open(path)
        if which in TSN and not store.backbone.startswith(which):
            raise ConfigError(
                f"{path}: holds features of {store.backbone}, not of {which}; make it with `{place.command}`"
            )
        test = _part(folder, store, "test", place)
        if which == "zero-shot":
            return VideoSet(place.name, test, test)  # nothing is trained on it
        return VideoSet(place.name, _part(folder, store, "train", place), test)


def _part(folder: Path, store: FeatureStore, part: str, place: Place) -> Part:
    labels = _labels(folder, part, place.rules, place.name)
    return Part(store.path, labels, _videos(folder / "videos", labels))


def _labels(place: Path, part: str, rules: Rules, name: str) -> LabelSet:
    for ending in _LABEL_ENDINGS:
        if (place / f"{part}{ending}").exists():
            return read_labels(place / f"{part}{ending}", rules)
    raise LackingError(
        f"{name} has no labels to {'train on' if part == 'train' else 'score on'}: {place / part}.pkl"
    )


def _videos(folder: Path, labels: LabelSet) -> dict[str, Path]:
    """Files by the labels' ids; those that match none are passed over."""
    if not folder.is_dir():
        return {}
    files = {path.stem: path for path in sorted(folder.iterdir()) if path.suffix.lower() in ENDINGS}
    match = match_ids(list(files), labels.videos, None)
    return {label: files[stem] for stem, label in match.label_of.items()}
