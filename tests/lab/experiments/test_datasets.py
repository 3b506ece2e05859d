"""The paper's data sets in a folder, and what is said if something of them is missing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ongebd.data.prediction_set import PredictionSet, VideoPrediction
from ongebd.errors import ConfigError, MissingDataError
from ongebd.features.store import FeatureStore
from ongebd.lab.evaluation.evaluation import evaluate
from ongebd.lab.experiments.datasets import DataFolder, store_key
from ongebd.lab.experiments.session import Chosen
from synthetic import SyntheticConfig, make_synthetic

VIDEOS, TRAINING = 12, 8


@pytest.fixture
def add(tmp_path: Path) -> Callable[..., Path]:
    """Adds a store of a backbone to the folder of the data set, whose labels are there."""
    made, labels = make_synthetic(SyntheticConfig(videos=VIDEOS, frames=72, dim=8, event=(12, 24)))
    place = tmp_path / "data" / "kinetics-gebd"
    place.mkdir(parents=True)
    for part, names in (("train", made.ids()[:TRAINING]), ("test", made.ids()[TRAINING:])):
        rows = {
            name: {
                "duration": labels.videos[name].duration,
                "boundaries": [row.tolist() for row in labels.videos[name].boundaries],
            }
            for name in names
        }
        (place / f"{part}.json").write_text(json.dumps(rows))

    def add(folder: str, backbone: str, videos: int = VIDEOS) -> Path:
        rng = np.random.default_rng(len(folder))
        with FeatureStore.create(place / folder, backbone=backbone, dim=8, fps=24) as store:
            for name in made.ids()[:videos]:
                video = made[name]
                features = video.features + rng.normal(0, 0.01, video.features.shape)
                store.add(name, features, video.times, video.epochs, video.duration, name)
        return tmp_path / "data"

    return add


def test_each_set_takes_the_store_of_its_backbone_with_the_labels_of_both_parts(
    add: Callable[..., Path],
) -> None:
    add("features", "resnet50@1")
    add("features-tsn-kinetics", "tsn-kinetics@1")
    source = DataFolder(add("features-tsn-sthv2", "tsn-sthv2@1"))
    for name, store in (
        ("kinetics", "features"),
        ("tsn-sthv2", "features-tsn-sthv2"),
        ("tsn-kinetics", "features-tsn-kinetics"),
    ):
        found = source.get(name)  # type: ignore[arg-type]
        assert found.training.store.name == found.test.store.name == store
        assert (len(found.training.labels), len(found.test.labels)) == (8, 4)
        assert found.training.labels.dataset == "kinetics-gebd"
    assert source.get("kinetics").name == "Kinetics-GEBD"
    assert source.get("tsn-sthv2").name == (
        "Kinetics-GEBD with features of TSN trained on Something-Something V2"
    )
    assert source.about == "The data sets kinetics-gebd, by their own rules."


def test_what_is_missing_is_told_with_how_to_make_it(add: Callable[..., Path]) -> None:
    data = add("features-tsn-sthv2", "tsn-sthv2@1")
    source = DataFolder(data)
    source.get("tsn-sthv2")  # needs no other store
    with pytest.raises(MissingDataError, match=r"TAPOS is not there: make .*/features with `ongebd extract`"):
        source.get("tapos")
    command = r"make .*-tsn-kinetics with `ongebd extract --backbone tsn-kinetics --weights FILE`"
    with pytest.raises(MissingDataError, match=command):
        source.get("tsn-kinetics")
    (data / "kinetics-gebd" / "train.json").unlink()
    with pytest.raises(MissingDataError, match=r"no labels to train on: .*train\.pkl"):
        DataFolder(data).get("tsn-sthv2")
    with pytest.raises(ConfigError, match="none of kinetics-gebd, tapos, inria is in it"):
        DataFolder(data / "kinetics-gebd")


@pytest.mark.parametrize("backbone", ["resnet50@1", "tsn-kinetics@1", "another tsn-sthv2"])
def test_a_store_of_another_backbone_is_refused(backbone: str, add: Callable[..., Path]) -> None:
    source = DataFolder(add("features-tsn-sthv2", backbone))
    with pytest.raises(ConfigError, match=f"has features of {backbone}, not of tsn-sthv2"):
        source.get("tsn-sthv2")


def test_files_of_videos_are_found_by_their_ids(add: Callable[..., Path]) -> None:
    data = add("features", "resnet50@1")
    videos = data / "kinetics-gebd" / "videos"
    videos.mkdir()
    for name in ("video-8.mp4", "video-8.txt", "other.mp4"):
        (videos / name).write_bytes(b"")
    assert DataFolder(data).get("kinetics").test.files == {"video-8": videos / "video-8.mp4"}


def test_a_store_is_recognised_wherever_it_lies_and_told_from_a_changed_one(add: Callable[..., Path]) -> None:
    data = add("features", "resnet50@1")
    store, copy = data / "kinetics-gebd" / "features", data / "copy"
    shutil.copytree(store, copy)
    assert store_key(copy) == store_key(store)
    shard = bytearray((copy / "shard-00000.bin").read_bytes())
    shard[-1] ^= 1
    (copy / "shard-00000.bin").write_bytes(bytes(shard))
    assert store_key(copy) != store_key(store)


def test_composites_have_no_features_of_tsn(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    from ongebd.lab.experiments.cache import Cache
    from ongebd.lab.experiments.composed_datasets import ComposedDataSets
    from ongebd.lab.experiments.scales import scale_of

    (tmp_path / "clip.mp4").write_bytes(b"")
    work = tmp_path / "work"
    source = ComposedDataSets([tmp_path], scale_of("tiny"), Cache(work))
    with pytest.raises(MissingDataError, match="it needs features of TSN trained on Kinetics, whose weights"):
        source.get("tsn-kinetics")
    assert not work.exists()


def test_each_table_runs_on_its_own_store_and_counts_what_that_lacks_as_missed(
    add: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
    torch.set_num_threads(1)
    from ongebd.cli import main

    add("features-tsn-sthv2", "tsn-sthv2@1")
    data, out = add("features-tsn-kinetics", "tsn-kinetics@1", VIDEOS - 1), tmp_path / "out"
    command = ["experiment", "run", "features-sthv2", "features-kinetics", "online-kinetics"]
    command += ["--data", str(data), "--out", str(out), "--scale", "tiny", "--device", "cpu"]
    left = out / "work" / "errors" / f"{'a' * 20}.new"  # by a run that was killed
    left.mkdir(parents=True)
    assert main(command) == 0
    assert "removed 1 unfinished piece of work from a killed run" in capsys.readouterr().err
    assert not left.exists()
    tables = json.loads((out / "results.json").read_text())["tables"]
    assert [table["missing"] is None for table in tables] == [True, True, False]
    sthv2, kinetics = tables[:2]
    assert (sthv2["videos"], kinetics["videos"]) == (4, 4)
    assert not any("missing" in reason for reason in sthv2["unlike"])
    assert "1 video missing" in kinetics["unlike"]
    for table, printed in ((sthv2, 0.741), (kinetics, 0.744)):
        assert len(table["rows"]) == 6
        assert all(0 <= row["cells"]["average"]["value"] <= 1 for row in table["rows"])
        assert table["rows"][-2]["printed"] == {"average": printed}
        assert len(table["limits"]) == 2
    assert sthv2["rows"] != kinetics["rows"]
    report = (out / "report.md").read_text()
    assert "| ESTimator | *.741* |" in report
    assert "*Not run: Kinetics-GEBD is not there: make" in report


def test_a_list_of_ids_chooses_the_test_videos(add: Callable[..., Path], tmp_path: Path) -> None:
    source = DataFolder(add("features", "resnet50@1"))
    whole = source.get("kinetics")
    some = list(whole.test.labels.videos)[1:3]
    (tmp_path / "ids.csv").write_text("\n".join(["id", *some, "elsewhere"]))
    chosen = Chosen(source, tmp_path / "ids.csv")
    found = chosen.get("kinetics")
    assert list(found.test.labels.videos) == some
    assert len(found.training.labels) == TRAINING
    assert found.test.key != whole.test.key
    assert "only those in ids.csv" in chosen.about
    assert (found.name, found.unlike) == ("Kinetics-GEBD, 2 videos of ids.csv", ("2 videos of ids.csv",))
    (tmp_path / "ids.csv").write_text("id\nelsewhere\n")
    with pytest.raises(MissingDataError, match="none of its 1 ids is in the labels"):
        Chosen(source, tmp_path / "ids.csv").get("kinetics")


def test_features_of_another_backbone_or_rate_never_stand_beside_printed_values_unsaid(
    add: Callable[..., Path],
) -> None:
    data = add("features", "efficientnet_lite0@7")
    found = DataFolder(data).get("kinetics")
    assert found.unlike == ("features of efficientnet_lite0, not of ResNet-50",)
    assert found.name == "Kinetics-GEBD with features of efficientnet_lite0, not of ResNet-50"
    about = "features of efficientnet_lite0@7 at 24 frames a second; labels test.json, sha256 "
    assert about in found.test.about
    store = data / "kinetics-gebd" / "features" / "store.json"
    store.write_text(store.read_text().replace("24.0", "6.0"))
    with pytest.raises(ConfigError, match=r"at 6 frames a second, but Kinetics-GEBD takes 24; .*--fps 24"):
        DataFolder(data).get("kinetics")


def test_tapos_shots_hold_their_instances(tmp_path: Path) -> None:
    place = tmp_path / "tapos"
    place.mkdir()
    rows = {
        name: {"video_duration": 2.0, "substages_timestamps": [[1.0]], "fps": 6.0, "num_frames": 12}
        for name in ("abcde_s0_4_0_6_0", "abcde_s0_8_500_10_500", "other_s0_0_0_2_0")
    }
    for part in ("train", "test"):
        (place / f"{part}.json").write_text(json.dumps(rows))
    with FeatureStore.create(place / "features", backbone="resnet50@1", dim=2, fps=6) as store:
        store.add("abcde_s0", np.ones((66, 2)), np.arange(66) / 6, np.zeros(66, np.int32), 11.0, "abcde_s0")
    (place / "videos").mkdir()
    (place / "videos" / "abcde_s0.mp4").write_bytes(b"")
    part = DataFolder(tmp_path).get("tapos").test
    assert list(part.files) == ["abcde_s0"]
    whole = PredictionSet({"abcde_s0": VideoPrediction(np.array([1.0, 5.0, 9.0]), np.array([1.0, 5.5, 9.0]))})
    cut = whole.of_instances(part.labels).videos
    assert {name: video.times.tolist() for name, video in cut.items()} == {
        "abcde_s0_4_0_6_0": [1.0],
        "abcde_s0_8_500_10_500": [0.5],
    }
    decided = cut["abcde_s0_4_0_6_0"].decided
    assert decided is not None
    assert decided.tolist() == [1.5]
    report = evaluate(part.labels, whole)  # as `ongebd evaluate` does
    assert (report["videos"]["scored"], report["videos"]["missing"]) == (3, 1)
