"""The paper's data sets in a folder, and what is said where something of it is missing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ongebd.data.synthetic import SyntheticConfig, make_synthetic
from ongebd.errors import ConfigError
from ongebd.features.store import FeatureStore
from ongebd.lab.experiments.material import LackingError, store_key
from ongebd.lab.experiments.own_data import OwnData


@pytest.fixture
def data(tmp_path: Path) -> Path:
    made, labels = make_synthetic(SyntheticConfig(videos=4, frames=40, dim=8, event=(10, 20)))
    place = tmp_path / "data" / "kinetics-gebd"
    with FeatureStore.create(place / "features", backbone="made", dim=8, fps=24) as store:
        for name in made.ids():
            video = made[name]
            store.add(name, video.features, video.times, video.epochs, video.duration, name)
    for part, names in (("train", made.ids()[:3]), ("test", made.ids()[3:])):
        rows = {
            name: {"duration": labels.videos[name].duration, "boundaries": [row.tolist() for row in each]}
            for name in names
            for each in [labels.videos[name].boundaries]
        }
        (place / f"{part}.json").write_text(json.dumps(rows))
    return tmp_path / "data"


def test_training_and_test_labels_share_a_store(data: Path) -> None:
    found = OwnData(data).get("main")
    assert found.name == "Kinetics-GEBD"
    assert list(found.training.labels.videos) == ["video-0", "video-1", "video-2"]
    assert list(found.test.labels.videos) == ["video-3"]
    assert found.training.labels.dataset == "kinetics-gebd"


def test_what_is_missing_is_told_with_how_to_make_it(data: Path) -> None:
    material = OwnData(data)
    with pytest.raises(LackingError, match=r"TAPOS is not there: make .*/features with `ongebd extract`"):
        material.get("second")
    (data / "kinetics-gebd" / "train.json").unlink()
    with pytest.raises(LackingError, match=r"no labels to train on: .*train\.pkl"):
        material.get("main")
    with pytest.raises(ConfigError, match="none of kinetics-gebd, tapos, inria is in it"):
        OwnData(data / "kinetics-gebd")


def test_files_of_videos_are_found_by_their_ids(data: Path) -> None:
    videos = data / "kinetics-gebd" / "videos"
    videos.mkdir()
    for name in ("video-3.mp4", "video-3.txt", "other.mp4"):
        (videos / name).write_bytes(b"")
    assert OwnData(data).get("main").test.files == {"video-3": videos / "video-3.mp4"}


def test_a_store_is_known_again_wherever_it_lies_and_told_from_a_changed_one(data: Path) -> None:
    store = data / "kinetics-gebd" / "features"
    copy = data / "copy"
    shutil.copytree(store, copy)
    assert store_key(copy) == store_key(store)
    shard = bytearray((copy / "shard-00000.bin").read_bytes())
    shard[-1] ^= 1
    (copy / "shard-00000.bin").write_bytes(bytes(shard))
    assert store_key(copy) != store_key(store)
