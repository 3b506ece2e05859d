"""`ongebd detect --store`: the boundaries of stored features, as those of the videos."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ongebd
from ongebd.cli import detect_store as command
from ongebd.cli import main
from ongebd.data import read_predictions
from ongebd.detector.stored import detect_stored, load_for
from ongebd.features.store import FeatureStore
from synthetic import SyntheticConfig, make_synthetic

DIM = 12
BACKBONE = "net@0123"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Five videos, one with a break of the clock, one with an id that isn't its file's name, one empty."""
    made, _ = make_synthetic(SyntheticConfig(videos=4, frames=80, dim=DIM, event=(20, 30)))
    with FeatureStore.create(tmp_path / "features", backbone=BACKBONE, dim=DIM, fps=24) as store:
        for name, video in made.videos.items():
            epochs = np.zeros(80, np.int32)
            epochs[37:] = name == "video-2"
            file = f"files/v.{name}.mp4" if name != "video-3" else "files/other.mp4"
            store.add(f"v.{name}", video.features, video.times, epochs, video.duration, file)
        store.add("empty", np.empty((0, DIM)), [], [], 0.0, "empty.mp4")
    return tmp_path / "features"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, train_small: Callable[..., Path]) -> Path:
    return train_small(tmp_path_factory.mktemp("runs") / "mine", BACKBONE, DIM)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["detect", *map(str, arguments)]) == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1, shown
    return shown


def test_the_boundaries_are_those_of_the_video(
    tmp_path: Path, make_video: Callable[..., Path], make_scene: Callable[..., Any]
) -> None:
    clip = make_video(tmp_path / "a.b.mp4", [make_scene(1)] * 40 + [make_scene(2)] * 40, rate=24)
    assert main(["extract", str(clip), "--out", str(tmp_path / "store"), "-q"]) == 0
    times = []
    for source in (str(clip), f"--store={tmp_path / 'store'}"):
        out = tmp_path / f"found-{len(times)}"
        assert main(["detect", source, "-m", "window-mean", "-o", str(out), "-q"]) == 0
        (video,) = read_predictions(out).videos.items()
        assert video[0] == "a.b"
        times.append([video[1].times.tolist(), video[1].decided.tolist(), video[1].onsets.tolist()])
    assert times[0] == times[1]
    assert times[0][2] == [pytest.approx(40 / 24, abs=1e-6)]


def test_evaluate_finds_every_video_under_its_id(store: Path, tmp_path: Path) -> None:
    arguments = ["--store", store, "-m", "window-mean", "-o", tmp_path / "found", "--format", "jsonl,csv,vtt"]
    assert main(["detect", *map(str, arguments)]) == 0
    found = read_predictions(tmp_path / "found")
    assert sorted(found.videos) == ["empty", *(f"v.video-{n}" for n in range(4))]
    assert all(video.complete for video in found.videos.values())
    assert sum(len(video.times) for video in found.videos.values()) > 4
    assert len(list((tmp_path / "found").iterdir())) == 15
    assert main(["detect", *map(str, arguments)]) == 0, "its own results are overwritten"


def test_an_offline_system_sees_each_video_whole(store: Path) -> None:
    opened = FeatureStore.open(store)
    model = load_for(opened, "pa")
    found = [b for name in opened.ids() for b in detect_stored(opened[name], model, model.configured())[0]]
    assert found


@pytest.mark.parametrize("method", ["window-mean", "persistence", "predictability"])
def test_it_is_the_stream_to_the_bit(store: Path, method: str) -> None:
    opened = FeatureStore.open(store)
    model = load_for(opened, method)
    video = opened["v.video-2"]
    stream, wanted = model.stream(), []
    for feature, time, epoch in zip(video.features, video.times, video.epochs, strict=True):
        if time == video.times[37]:
            assert epoch == 1
            wanted += [decision.boundary for decision in stream.drain()] + [stream.new_epoch()]
        wanted.append(stream.update_feature(feature, float(time)).boundary)
    wanted += [decision.boundary for decision in stream.drain()]
    while (last := stream.flush()) is not None:
        wanted.append(last)
    found, decisions = detect_stored(video, model, model.configured())
    assert found == [boundary for boundary in wanted if boundary is not None]
    assert [decision.time for decision in decisions] == video.times.tolist()
    assert found


def test_a_trained_model_scores_many_frames_in_one_call(store: Path, trained: Path) -> None:
    opened = FeatureStore.open(store)
    many = load_for(opened, str(trained / "model"))
    settings = many.configured(tau=0.8)
    found = [b for name in opened.ids() for b in detect_stored(opened[name], many, settings)[0]]
    one = ongebd.load(str(trained / "model"), backbone=many.backbone)
    assert hasattr(one.method(settings), "anticipate_run")
    wanted = []
    for name in opened.ids():
        stream = one.stream(settings)
        video = opened[name]
        for feature, time, epoch in zip(video.features, video.times, video.epochs, strict=True):
            if epoch and time == video.times[37]:
                wanted.append(stream.new_epoch())
            wanted.append(stream.update_feature(feature, float(time)).boundary)
        wanted.append(stream.flush())
    expected = [boundary for boundary in wanted if boundary is not None]
    assert [b.time for b in found] == [b.time for b in expected]
    np.testing.assert_allclose([b.score for b in found], [b.score for b in expected], rtol=1e-3)
    assert found


def test_processes_find_the_same(store: Path, trained: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(command, "_FEW", 0)
    for workers in (1, 2):
        where = ["-o", tmp_path / str(workers), "--workers", workers]
        arguments = ["--store", store, "-m", trained / "model", *where]
        assert main(["detect", *map(str, arguments), "-q"]) == 0
    one, two = (sorted((tmp_path / name).iterdir()) for name in "12")
    assert [file.read_text() for file in one] == [file.read_text() for file in two]
    assert json.loads(one[0].read_text().splitlines()[0])["model"] == "mine"


def test_what_does_not_fit_the_store_is_told_in_one_line(
    store: Path, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", tmp_path / "found"]
    mean = ["--store", store, "-m", "window-mean", *out]
    assert "24 frames a second, but window-mean looks at 6; add --fps 24" in refusal(
        capsys, *mean, "--fps", 6
    )
    model = ["--store", store, "-m", trained / "model", *out]
    about = trained / "model" / "ongebd.json"
    text = about.read_text()
    about.write_text(text.replace('"fps": 24.0', '"fps": 6.0'))
    assert "has 24 frames a second, but mine looks at 6; make a store with" in refusal(capsys, *model)
    assert "mine was trained at 6 frames a second, not 24" in refusal(capsys, *model, "--fps", 24)
    about.write_text(text.replace(BACKBONE, "net@4567"))
    assert "trained on features of net@4567, but these are of net@0123" in refusal(capsys, *model)
    about.write_text(text)
    for name, advice in (("immediate", "make another store: ongebd ext"), ("clock:2", "give it the videos")):
        assert f"not at {BACKBONE}; {advice}" in refusal(capsys, "--store", store, "-m", name, *out)
    assert f"has features, not videos; run: ongebd detect --store {store}" in refusal(capsys, store)
    assert "--store needs --out DIR" in refusal(capsys, "--store", store, "-m", "window-mean")
    assert "drop a source" in refusal(capsys, "v.mp4", *mean)
    assert "drop --plot" in refusal(capsys, *mean, "--plot")
    assert "drop what is for sources" in refusal(capsys, *mean, "--max-pixels", 100)
    assert "--workers must be at least 1" in refusal(capsys, *mean, "--workers", 0)
    assert "png" in refusal(capsys, *mean, "--format", "png")
    assert "not a feature store" in refusal(capsys, "--store", tmp_path, "-m", "window-mean", *out)
    assert not (tmp_path / "found").exists()


def test_a_broken_feature_costs_its_video_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FeatureStore.create(tmp_path / "features", backbone=BACKBONE, dim=3, fps=24) as store:
        for name in ("good", "bad"):
            features = np.ones((3, 3))
            features[1:] *= name == "good"
            store.add(name, features, [0, 0.1, 0.2], [0, 0, 0], 0.3, f"{name}.mp4")
    found = tmp_path / "found"
    line = refusal(capsys, "--store", store.path, "-m", "window-mean", "-o", found, "-q")
    assert "bad: frame 1 at 0.100 s: the feature has norm zero" in line
    assert [file.name for file in found.iterdir()] == ["good.jsonl"]
