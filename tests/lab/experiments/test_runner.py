"""Experiments on made features: trained once, kept, shared between tables, and honest where one fails."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from ongebd.data.label_set import LabelSet  # noqa: E402
from ongebd.data.labelled import label_videos  # noqa: E402
from ongebd.errors import ConfigError, FeatureError, MissingDataError  # noqa: E402
from ongebd.features.store import FeatureStore  # noqa: E402
from ongebd.lab.experiments import scoring  # noqa: E402
from ongebd.lab.experiments.cache import Cache  # noqa: E402
from ongebd.lab.experiments.catalogue import EXPERIMENTS  # noqa: E402
from ongebd.lab.experiments.datasets import DataSet, Part  # noqa: E402
from ongebd.lab.experiments.report import Report  # noqa: E402
from ongebd.lab.experiments.runner import Runner, Step, slower  # noqa: E402
from ongebd.lab.experiments.scales import scale_of  # noqa: E402
from ongebd.lab.experiments.session import with_given  # noqa: E402
from ongebd.lab.experiments.tables import notes_of, tables_of  # noqa: E402
from ongebd.types import Boundary  # noqa: E402
from synthetic import SyntheticConfig, make_synthetic  # noqa: E402

TINY = scale_of("tiny")
SCALE = replace(TINY, training={**TINY.training, "width": 16, "ffn": 16, "heads": 2, "lr": 3e-3})


@pytest.fixture(autouse=True)
def _one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.setattr("os.cpu_count", lambda: 1)


class Made:
    """A source of one set of made features."""

    about = "Made features."

    def __init__(self, folder: Path) -> None:
        made, labels = make_synthetic(SyntheticConfig(videos=12, frames=80, dim=12, event=(20, 30)))
        with FeatureStore.create(folder, backbone="made", dim=12, fps=24) as store:
            for name in made.ids():
                video = made[name]
                store.add(name, video.features, video.times, video.epochs, video.duration, name)
        parts = [
            Part(folder, LabelSet({n: labels.videos[n] for n in made.ids()[cut]}, "custom", "made"))
            for cut in (slice(0, 8), slice(8, None))
        ]
        self.set = DataSet("made features", *parts)

    def get(self, name: str) -> DataSet:
        if name != "kinetics":
            raise MissingDataError(f"no {name} set here")
        return self.set


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("made") / "features")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture
def runner(material: Made, work: Path) -> Runner:
    return Runner(material, SCALE, Cache(work), "cpu")  # type: ignore[arg-type]


def test_tables_share_trainings_and_a_second_run_trains_nothing(
    runner: Runner, material: Made, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = [EXPERIMENTS[name] for name in ("components", "tau-delta", "outliers", "cold-start")]
    steps = runner.plan(some)
    # Classifier, EST, REST, EST+REST and two untrained anticipators: the discriminator takes no training.
    assert len(steps) == 6
    assert list(runner.train(steps)) == steps
    assert runner.plan(some) == []
    tables = [runner.table(experiment) for experiment in some]
    assert not any(table.failures or table.missing for table in tables)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(scoring, "train", refuse)
    again = Runner(material, SCALE, Cache(work), "cpu")  # type: ignore[arg-type]
    assert again.plan(some) == []
    assert [again.table(experiment) for experiment in some] == tables


def test_the_grid_at_the_printed_point_is_the_row_of_the_printed_threshold(runner: Runner) -> None:
    grid = runner.table(EXPERIMENTS["tau-delta"])
    outliers = runner.table(EXPERIMENTS["outliers"])
    cell = next(row for row in grid.rows if row.row.at == ("1.5", "21"))
    full = next(row for row in outliers.rows if row.row.name == "all errors")
    assert cell.cells == full.cells


def test_thresholds_are_chosen_without_the_test_videos(runner: Runner, material: Made, work: Path) -> None:
    components = EXPERIMENTS["components"]
    before = runner.table(components)
    other = Made.__new__(Made)
    shifted = {
        name: replace(video, boundaries=tuple(row * 0 + 0.1 for row in video.boundaries))
        for name, video in material.set.test.labels.videos.items()
    }
    test = replace(material.set.test, labels=LabelSet(shifted, "custom", "made"))
    other.set = replace(material.set, test=test)
    after = Runner(other, SCALE, Cache(work), "cpu").table(components)  # type: ignore[arg-type]
    assert [row.thresholds for row in after.rows] == [row.thresholds for row in before.rows]
    assert [row.cells for row in after.rows] != [row.cells for row in before.rows]


def test_the_model_for_pictures_is_kept_whichever_row_trained_it(material: Made, tmp_path: Path) -> None:
    runner = Runner(material, SCALE, Cache(tmp_path), "cpu")  # type: ignore[arg-type]
    components, online = EXPERIMENTS["components"], EXPERIMENTS["online-kinetics"]
    both = next(row for row in components.rows if row.name == "EST+REST+OBD")
    ours = next(row for row in online.rows if row.name == "ESTimator")
    assert runner.model(online, ours) is None
    list(runner.train([Step(both, 0, components)]))
    folder = runner.model(online, ours)
    assert folder is not None
    assert (folder / "model.safetensors").exists()
    one = next(row for row in components.rows if row.name == "EST")
    list(runner.train([Step(one, 0, components)]))
    assert runner.model(components, one) is None, "only what is needed again is kept"


def test_a_model_that_was_trained_for_its_own_set_scores_another_one_too(
    runner: Runner, material: Made, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zero_shot = EXPERIMENTS["zero-shot"]
    ours = next(row for row in zero_shot.rows if row.name == "ESTimator")
    list(runner.train([Step(ours, 0, EXPERIMENTS["online-kinetics"])]))
    trained = runner.frame_scores(EXPERIMENTS["online-kinetics"], ours).test[1]

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(scoring, "train", refuse)
    labels = material.set.test.labels
    fewer = LabelSet(dict(list(labels.videos.items())[:2]), "custom", "made")
    other = replace(material.set, test=replace(material.set.test, labels=fewer))
    both = SimpleNamespace(about="", get=lambda name: other if name == "inria" else material.set)
    again = Runner(both, SCALE, Cache(work), "cpu")  # type: ignore[arg-type]
    scores = again.frame_scores(zero_shot, ours).test[1]
    np.testing.assert_allclose(np.concatenate(scores), np.concatenate(trained[:2]), atol=1e-6)


@pytest.mark.slow
def test_trainings_side_by_side_give_what_one_by_one_gives(
    runner: Runner, material: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    components = EXPERIMENTS["components"]
    rows = tuple(row for row in components.rows if row.name in ("EST", "REST"))
    experiment = replace(components, rows=rows)
    list(runner.train(runner.plan([experiment])))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    beside = Runner(material, SCALE, Cache(tmp_path), "cpu")  # type: ignore[arg-type]
    assert len(list(beside.train(beside.plan([experiment])))) == 2
    assert beside.table(experiment) == runner.table(experiment)


def test_every_table_has_its_floors_and_says_what_it_was_scored_on(runner: Runner) -> None:
    table = runner.table(EXPERIMENTS["components"])
    assert [limit.name.split(",")[0] for limit in table.limits] == [
        "a blind clock",
        "as many as are labelled",
    ]
    assert table.videos == 4
    text = " ".join(notes_of(table))
    assert "made features: 4 videos" in text
    assert "none of them was measured here" in text


def test_a_set_that_is_not_there_leaves_its_tables_out_with_the_reason(runner: Runner) -> None:
    assert runner.table(EXPERIMENTS["online-tapos"]).missing == "no tapos set here"
    assert runner.plan([EXPERIMENTS["online-tapos"]]) == []
    assert runner.table(EXPERIMENTS["features-sthv2"]).missing == "no tsn-sthv2 set here"


def test_a_method_that_needs_videos_is_left_out_where_there_are_none(runner: Runner) -> None:
    offline = EXPERIMENTS["offline-kinetics"]
    rows = tuple(row for row in offline.rows if row.kind == "watched")
    table = runner.table(replace(offline, rows=rows))
    assert table.failures == []
    assert all("needs the videos, but finds none" in str(row.missing) for row in table.rows)
    assert "SceneDetect was left out: " in " ".join(notes_of(table))


def test_predictions_of_another_system_are_a_row_where_their_videos_are_scored(
    runner: Runner, material: Made, tmp_path: Path
) -> None:
    labels = material.set.test.labels
    right, other = tmp_path / "right.json", tmp_path / "other.json"
    right.write_text(json.dumps({n: v.boundaries[0].tolist() for n, v in labels.videos.items()}))
    other.write_text(json.dumps({"elsewhere": [1.0]}))
    offline = EXPERIMENTS["offline-kinetics"]
    printed = replace(offline, rows=tuple(row for row in offline.rows if row.kind == "printed"))
    table = runner.table(with_given(printed, {"DyBDet": right, "Mine": right, "Other": other}))
    rows = {row.row.name: row for row in table.rows}
    assert len(rows) == len(printed.rows) + 2
    for name in ("DyBDet", "Mine"):
        assert rows[name].cells["absolute 0.25"].value == 1
    assert rows["DyBDet"].printed["average"] == 0.89
    assert "none of the 1 videos of" in str(rows["Other"].missing)
    for name, added in {"delay": ["Mine"], "region": []}.items():
        found = with_given(EXPERIMENTS[name], {"DyBDet": right, "Mine": right})
        assert [row.name for row in found.rows if row.kind == "given"] == added
    with pytest.raises(ConfigError, match="--row PA: offline-kinetics has such a row"):
        with_given(offline, {"PA": right})


def test_a_row_that_fails_says_why_and_the_others_stand(
    material: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = scoring.train

    def fails(config: scoring.TrainConfig, **given: object) -> object:
        if not config.rest:
            raise FeatureError("video 'x': a feature has norm zero")
        return real(config, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(scoring, "train", fails)
    runner = Runner(material, SCALE, Cache(tmp_path), "cpu")  # type: ignore[arg-type]
    rows = tuple(r for r in EXPERIMENTS["components"].rows if r.name in ("EST", "REST"))
    experiment = replace(EXPERIMENTS["components"], rows=rows)
    steps = runner.plan([experiment])
    assert len(steps) == 2
    assert list(runner.train(steps)) == steps
    monkeypatch.setattr(scoring, "train", real)  # what failed isn't trained a second time
    table = runner.table(experiment)
    assert table.failures == ["components, EST: video 'x': a feature has norm zero"]
    failed, stands = table.rows
    assert not failed.cells
    assert stands.cells["average"].value > 0
    assert tables_of(table)[0].texts[0] == ["EST", "failed", "failed", "failed", "failed"]


def test_the_report_tells_printed_from_measured(runner: Runner, tmp_path: Path) -> None:
    tables = [runner.table(EXPERIMENTS[name]) for name in ("components", "tau-delta", "features-sthv2")]
    report = Report(tables, SCALE, "Made features.", "cpu", "ongebd experiment run", {})
    files = report.write(tmp_path)
    assert {path.name for path in files} == {
        *("report.md", "report.html", "results.json"),
        *("components.tex", "tau-delta.tex"),
    }
    text = (tmp_path / "report.md").read_text()
    assert "| printed in the paper's Table 3 | Avg F1 | Rel.Dis 0.05 |" in text
    assert "| EST+REST+OBD | *.748* | *.620* |" in text
    assert "*Not run: no tsn-sthv2 set here.*" in text
    page = (tmp_path / "report.html").read_text()
    assert page.count("<table>") == sum(len(tables_of(table)) for table in tables)


def test_test_videos_that_are_missing_count_as_missed_and_are_named(
    runner: Runner, material: Made, work: Path
) -> None:
    components = EXPERIMENTS["components"]
    rows = tuple(row for row in components.rows if row.name == "EST+REST+OBD")
    experiment = replace(components, rows=rows)
    whole = runner.table(experiment)
    lacking = Made.__new__(Made)
    test = material.set.test
    absent = {f"absent-{n}": replace(v, id=f"absent-{n}") for n, v in enumerate(test.labels.videos.values())}
    labels = replace(test.labels, videos={**test.labels.videos, **absent})
    lacking.set = replace(material.set, test=replace(test, labels=labels))
    table = Runner(lacking, SCALE, Cache(work), "cpu").table(experiment)  # type: ignore[arg-type]
    assert (whole.videos, table.videos) == (4, 8)
    (before,), (after,) = whole.rows, table.rows
    assert after.cells["recall 0.05"].value == pytest.approx(before.cells["recall 0.05"].value / 2)
    assert after.cells["precision 0.05"].value == before.cells["precision 0.05"].value
    text = " ".join(notes_of(table))
    assert "4 videos of 8 missing from EST+REST+OBD: all boundaries in them count as missed" in text
    assert "**Not comparable with the printed values:** 4 videos missing; trained at scale tiny." in text

    training = material.set.training
    more = {**training.labels.videos, **absent}
    lacking.set = replace(material.set, training=replace(training, labels=replace(labels, videos=more)))
    table = Runner(lacking, SCALE, Cache(work), "cpu").table(experiment)  # type: ignore[arg-type]
    assert table.unlike == ("4 videos of the training set missing", "trained at scale tiny")


def test_one_file_that_is_missing_or_broken_is_a_miss_and_its_row_stands(
    material: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = list(material.set.test.labels.videos)
    files = {name: tmp_path / f"{name}.mp4" for name in names[:-1]}
    for path in files.values():
        path.write_bytes(b"x")
    monkeypatch.setattr("ongebd.load", lambda name: SimpleNamespace(defaults=name))

    def detect(path: Path, _model: object) -> SimpleNamespace:
        if path.stem == names[0]:
            raise FeatureError(f"{path.name}: damaged")
        return SimpleNamespace(boundaries=[Boundary(1.0, 1.0, 1.0, 1.0)])

    monkeypatch.setattr("ongebd.detect", detect)
    source = Made.__new__(Made)
    source.set = replace(material.set, test=replace(material.set.test, files=files))
    offline = EXPERIMENTS["offline-kinetics"]
    rows = tuple(row for row in offline.rows if row.name.startswith("SceneDetect"))
    runner = Runner(source, SCALE, Cache(tmp_path / "work"), "cpu")  # type: ignore[arg-type]
    table = runner.table(replace(offline, rows=rows))
    assert table.failures == []
    assert table.rows[0].missing is None
    assert table.videos == 4
    text = " ".join(notes_of(table))
    assert f"can't read 1 of 3 files: {names[0]}.mp4: damaged" in text
    assert "2 videos of 4 missing from SceneDetect" in text


def test_every_row_of_the_discriminator_is_at_the_paper_s_tau_unless_it_says_so() -> None:
    for experiment in EXPERIMENTS.values():
        ours = [row for row in experiment.rows if row.kind == "trained" and row.method == "estimator"]
        assert any(row.obd and row.tau == 1.5 for row in ours)
        for row in ours:
            assert row.tau == 1.5 or row.at or not row.obd or "τ chosen" in row.name or row.deciding


def test_speed_and_cost_stand_beside_the_f1_of_the_same_methods(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"machine": {"processor": "a processor", "date": "today"}, "methods": []}
    monkeypatch.setattr("ongebd.lab.experiments.runner.bench", lambda *_: found)
    monkeypatch.setattr("ongebd.lab.experiments.runner.speed_values", lambda *_: {"overall": 5.0})
    cost = EXPERIMENTS["cost"]
    ours = tuple(row for row in cost.rows if row.name == "ESTimator")
    table = runner.table(replace(cost, rows=ours))
    (row,) = table.rows
    online = runner.table(replace(EXPERIMENTS["online-kinetics"], rows=ours))
    assert row.cells["average"] == online.rows[0].cells["average"]
    assert row.cells["overall"].value == 5.0
    assert (row.printed["average"], row.printed["overall"]) == (0.748, 96.3)
    assert "measured on a processor, today" in " ".join(notes_of(table))


def test_videos_of_fewer_frames_a_second_are_counted(material: Made) -> None:
    found = label_videos(FeatureStore.open(material.set.test.store), material.set.test.labels).videos
    assert slower(found, 24.0) == ""
    half = replace(found[0], times=found[0].times * 2)
    still = replace(found[1], times=found[1].times * 0)
    assert slower([half, still, *found[2:]], 24.0) == "1 video with fewer frames a second, down to 12"
