"""The paper's data sets, as a researcher has them: features and labels in folders of one layout.

    DATA/kinetics-gebd/features/   store of `ongebd extract --fps 24`, training and validation videos
    DATA/kinetics-gebd/train.pkl   labels to train on        (.pkl, .json or .csv)
    DATA/kinetics-gebd/test.pkl    labels to score on: the official validation set
    DATA/tapos/                    likewise, at 6 frames a second
    DATA/inria/                    likewise; no training labels

A folder `videos/` beside `features/` lets methods that need pictures run too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ongebd.data.composites.scan import ENDINGS
from ongebd.data.id_matching import match_ids
from ongebd.data.label_set import LabelSet
from ongebd.data.labels import Dataset as Rules
from ongebd.data.labels import read_labels
from ongebd.errors import ConfigError
from ongebd.experiments.material import LackingError, Part, VideoSet
from ongebd.experiments.table import PAPERS, Which
from ongebd.features.store import FeatureStore

FOLDERS: Mapping[Which, tuple[str, Rules, str]] = {
    "main": ("kinetics-gebd", "kinetics-gebd", PAPERS["main"]),
    "second": ("tapos", "tapos", PAPERS["second"]),
    "zero-shot": ("inria", "inria", PAPERS["zero-shot"]),
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
        there = [name for name, _, _ in FOLDERS.values() if (folder / name).is_dir()]
        if not there:
            names = ", ".join(name for name, _, _ in FOLDERS.values())
            raise ConfigError(
                f"{folder}: none of {names} is in it; `ongebd experiment list` shows the layout"
            )
        self._sets: dict[Which, VideoSet] = {}
        self.about = f"The data sets {', '.join(there)}, by their own rules."

    def get(self, which: Which) -> VideoSet:
        """See `Material`."""
        if which not in self._sets:
            self._sets[which] = self._opened(which)
        return self._sets[which]

    def _opened(self, which: Which) -> VideoSet:
        folder, rules, name = FOLDERS[which]
        place = self._folder / folder
        if not (place / "features" / "store.json").exists():
            raise LackingError(f"{name} is not there: make {place / 'features'} with `ongebd extract`")
        store = FeatureStore.open(place / "features")
        test = self._part(place, store, "test", rules, name)
        if which == "zero-shot":
            return VideoSet(name, test, test)  # nothing is trained on it
        return VideoSet(name, self._part(place, store, "train", rules, name), test)

    @staticmethod
    def _part(place: Path, store: FeatureStore, part: str, rules: Rules, name: str) -> Part:
        labels = _labels(place, part, rules, name)
        return Part(store.path, labels, _videos(place / "videos", labels))


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
