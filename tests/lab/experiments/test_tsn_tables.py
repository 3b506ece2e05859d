"""The tables of TSN's features: run where DATA has the stores, left out with the command where it has not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ongebd.data.synthetic import SyntheticConfig, make_synthetic
from ongebd.errors import ConfigError
from ongebd.features.store import FeatureStore
from ongebd.lab.experiments.material import LackingError
from ongebd.lab.experiments.own_data import OwnData

VIDEOS, TRAINING = 12, 8


@pytest.fixture
def add(tmp_path: Path) -> Callable[..., Path]:
    """Puts a store of a backbone into the folder of the data set, whose labels are there."""
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


def test_each_table_takes_the_store_of_its_backbone(add: Callable[..., Path]) -> None:
    add("features", "resnet50@1")
    add("features-tsn-kinetics", "tsn-kinetics@1")
    material = OwnData(add("features-tsn-sthv2", "tsn-sthv2@1"))
    for which in ("tsn-sthv2", "tsn-kinetics"):
        found = material.get(which)
        assert found.training.store.name == found.test.store.name == f"features-{which}"
        assert (len(found.training.labels.videos), len(found.test.labels.videos)) == (8, 4)
    assert material.get("tsn-sthv2").name == (
        "Kinetics-GEBD with features of TSN trained on Something-Something V2"
    )
    assert material.about == "The data sets kinetics-gebd, by their own rules."


def test_without_a_store_the_command_that_makes_it_is_told(add: Callable[..., Path]) -> None:
    material = OwnData(add("features-tsn-sthv2", "tsn-sthv2@1"))
    material.get("tsn-sthv2")  # needs no other store
    with pytest.raises(
        LackingError,
        match=r"make .*features-tsn-kinetics with"
        r" `ongebd extract --fps 24 --backbone tsn-kinetics --weights FILE`",
    ):
        material.get("tsn-kinetics")


@pytest.mark.parametrize("backbone", ["resnet50@1", "tsn-kinetics@1", "another tsn-sthv2"])
def test_a_store_of_another_backbone_is_refused(backbone: str, add: Callable[..., Path]) -> None:
    material = OwnData(add("features-tsn-sthv2", backbone))
    with pytest.raises(ConfigError, match=f"holds features of {backbone}, not of tsn-sthv2"):
        material.get("tsn-sthv2")


def test_composites_have_no_such_features(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    from ongebd.lab.experiments.composed_material import ComposedMaterial
    from ongebd.lab.experiments.scales import scale_of
    from ongebd.lab.experiments.shelf import Shelf

    (tmp_path / "clip.mp4").write_bytes(b"")
    work = tmp_path / "work"
    material = ComposedMaterial([tmp_path], scale_of("tiny"), Shelf(work))
    with pytest.raises(LackingError, match="it needs features of TSN trained on Kinetics, whose weights"):
        material.get("tsn-kinetics")
    assert not work.exists()


def test_both_tables_run_each_on_the_videos_that_its_store_has(
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
    assert "1 half-made piece of work removed, of a run that was killed" in capsys.readouterr().err
    assert not left.exists()
    tables = json.loads((out / "results.json").read_text())["tables"]
    assert [table["missing"] is None for table in tables] == [True, True, False]
    sthv2, kinetics = tables[:2]
    assert (sthv2["videos"], kinetics["videos"]) == (4, 3)
    for table, printed in ((sthv2, 0.741), (kinetics, 0.744)):
        assert len(table["rows"]) == 5
        assert all(0 <= row["cells"]["average"]["value"] <= 1 for row in table["rows"])
        assert table["rows"][-1]["printed"] == {"average": printed}
        assert len(table["limits"]) == 2
    assert sthv2["rows"] != kinetics["rows"]
    report = (out / "report.md").read_text()
    assert "| *ESTimator, printed* | *.741* | – | – |" in report
    assert "*Not run: Kinetics-GEBD is not there: make" in report
