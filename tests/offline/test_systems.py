"""The offline systems: published shapes, what a boundary does to each, and that they refuse streams."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ongebd.cli import main
from ongebd.data.label_set import LabelSet, VideoLabels
from ongebd.detector import load
from ongebd.detector.recipes import catalogue
from ongebd.errors import ConfigError
from ongebd.offline import flowgebd, predictability
from ongebd.offline.systems import SYSTEMS, TRAINED, make_system
from ongebd.offline.whole_video import WholeVideo, spread
from synthetic import FPS, MemoryStore, MemoryVideo, SyntheticConfig, make_synthetic

SMALL = {
    "pc": "width=24",
    "tcn": "width=8,kernel=9,dropout=0",
    "uboco": "width=16,heads=2,layers=1,length=80",
    "sboco": "width=16,heads=2,layers=1,length=80",
    "basicgebd": "width=16,length=80",
    "efficientgebd": "width=16,length=80",
    "ddm-net": "width=16,heads=2,layers=1,ffn=32,length=80",
    "sc-transformer": "width=16,heads=2,layers=1,ffn=32,side=4,length=80",
    "lcvsl": "width=16,side=4,length=80",
    "bmn": "width=8,points=8,length=80",
    "bmn-startend": "width=8,points=8,length=80",
    "coseg": "width=16,heads=2,layers=1,length=120",
}
"""Tiny networks. Each learns to find changes in seconds."""
HEAVY = ("sboco", "basicgebd", "efficientgebd", "ddm-net", "sc-transformer", "lcvsl")
"""Those that take up to twenty seconds."""
TRAINING: dict[str, dict[str, Any]] = {
    "sboco": {"lr": 1e-2},
    "basicgebd": {"epochs": 8},
    "ddm-net": {"epochs": 8},
    "bmn": {"epochs": 8},
}


def features_with_changes(at: list[int], frames: int, dim: int = 16) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(0)
    edges = [0, *at, frames]
    parts = [np.repeat(rng.random((1, dim)), b - a, 0) for a, b in pairwise(edges)]
    return (np.concatenate(parts) + 0.01 * rng.random((frames, dim))).astype(np.float32)


def test_pa_finds_every_change_between_blobs_and_needs_no_threshold():
    found = np.flatnonzero(predictability.score_video(features_with_changes([240, 480], 720), 24.0))
    near = [found[np.abs(found - change).argmin()] for change in (240, 480)]
    np.testing.assert_allclose(near, [240, 480], atol=3)


def test_pa_is_the_laplacian_of_a_gaussian_of_the_original():
    ndimage = pytest.importorskip("scipy.ndimage")
    signal = np.random.default_rng(1).random(200)
    for sigma in (2.0, 15.0):
        ours = predictability.laplacian_of_gaussian(signal, sigma)
        theirs = ndimage.gaussian_laplace(signal, sigma=sigma, mode="nearest")
        np.testing.assert_allclose(ours, theirs, atol=1e-3 * np.abs(theirs).max())


@pytest.mark.parametrize("frames", [0, 1, 2, 5, 29, 30, 31, 34])
def test_pa_has_nothing_to_say_of_a_video_that_is_too_short(frames: int):
    assert not predictability.score_video(np.ones((frames, 4), np.float32), 24.0)[:30].any()


def test_pa_random_gives_no_video_its_own_boundaries():
    scores = [np.eye(1, 10, place)[0] for place in range(6)]
    for own, given in zip(scores, predictability.swapped(scores), strict=True):
        assert given.sum() == 1
        assert not (own * given).any()


def test_flowgebd_tells_another_scene_and_a_burst_of_motion_from_a_still_picture():
    pytest.importorskip("cv2")
    rng = np.random.default_rng(0)
    one, two = (np.kron(rng.integers(0, 255, (14, 14, 1)), np.ones((6, 8, 3))) for _ in range(2))
    scenes = [one] * 16 + [two] * 16
    given = np.stack([picture.ravel().astype(np.float32) + 1 for picture in scenes])
    assert np.flatnonzero(flowgebd.score_video(given, 8.0)).tolist() == [16]
    moved = [np.roll(one, 3 * max(0, min(4, frame - 12)), axis=1) for frame in range(32)]
    given = np.stack([picture.ravel().astype(np.float32) + 1 for picture in moved])
    found = np.flatnonzero(flowgebd.score_video(given, 8.0))
    assert len(found) >= 1
    assert (np.abs(found - 14) <= 3).all()
    still = np.repeat(given[:1], 32, axis=0)
    assert not flowgebd.score_video(still, 8.0).any()
    for frames in range(3):
        assert flowgebd.score_video(given[:frames], 8.0).shape == (frames,)


def test_a_candidate_must_be_the_only_highest_among_its_neighbours():
    assert spread(np.array([0.0, 0.5, 0.5, 0.0]), 4, 1, 1).tolist() == [0, 0, 0, 0]
    assert spread(np.array([0.3, 0.1, 0.2]), 3, 1, 1).tolist() == [0.3, 0, 0.2]
    assert spread(np.array([0.3, 0.1, 0.2]), 3, 1, 2).tolist() == [0.3, 0, 0]


def test_every_offline_system_is_listed_as_such():
    facts = {each["name"]: each for each in catalogue()}
    for name in (*TRAINED, "pa", "flowgebd"):
        assert facts[name]["offline"]
        assert facts[name]["latency"] is None
        assert facts[name]["parameters"] == SYSTEMS[name].parameters
    assert not facts["immediate"]["offline"]


def test_an_offline_method_takes_no_stream_and_says_what_to_do(capsys: pytest.CaptureFixture[str]):
    model = load("pa")
    with pytest.raises(ConfigError, match=r"pa is offline: .* run `ongebd detect` on a file"):
        model.stream()
    from ongebd.pool import StreamPool

    with pytest.raises(ConfigError, match="pa is offline"):
        StreamPool(model)
    assert main(["watch", "http://127.0.0.1:9/none.ts", "--model", "pa"]) == 2
    said = capsys.readouterr().err
    assert "pa is offline" in said
    assert said.count("\n") == 1


def test_the_whole_video_scorer_gives_every_frame_its_score_at_the_end():
    scorer = WholeVideo("made", lambda features, fps: features[:, 0] * fps)
    for number in range(3):
        assert scorer.update(np.float32([number]), number / 2) is None
    assert scorer.flush() == [None, 2, 4]
    assert scorer.state_bytes == 12
    scorer.reset()
    assert scorer.flush() == []


@pytest.mark.parametrize("fps", [6.0, 10.0, 24.0])
def test_a_source_may_be_slower_than_the_rate(fps: float):
    features, model = features_with_changes([200, 400], 600, dim=1280), load("pa")
    run = model.begin(model.configured())
    for number, feature in enumerate(features):
        run.update_feature(feature, number / fps)
    decided = run.drain()
    assert len(decided) == len(features)
    wanted = predictability.score_video(features, fps)
    np.testing.assert_array_equal([each.error for each in decided], wanted)
    assert wanted.any()


torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from ongebd.backbones import get  # noqa: E402
from ongebd.baselines.network import parameter_count  # noqa: E402
from ongebd.data.windows import build_clips  # noqa: E402
from ongebd.features.store import FeatureStore  # noqa: E402
from ongebd.lab.training.batches import DeviceFeatures  # noqa: E402
from ongebd.lab.training.config import TrainConfig  # noqa: E402
from ongebd.lab.training.dataset import make_dataset  # noqa: E402
from ongebd.lab.training.loop import train  # noqa: E402
from ongebd.lab.training.processes import Processes, prepared  # noqa: E402
from ongebd.lab.training.task import task_of  # noqa: E402
from ongebd.offline.network import bells, centres  # noqa: E402


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def configured(name: str, out: Path, **changes: Any) -> TrainConfig:
    return TrainConfig().changed(
        {
            "method": name,
            "network": SMALL[name],
            "out": str(out),
            "batch": 192,
            "epochs": 4,
            "validate_every": 4,
            "optimizer": "adamw",
            "lr": 3e-3,
            "clip": None,
            "label_rule": "near",
            "select_by": "average",
            "device": "cpu",
        }
        | TRAINING.get(name, {})
        | changes
    )


def made(config: TrainConfig, videos: int = 24, frames: int = 240, dim: int = 12) -> Any:
    """Videos of five kinds of event, one after the other."""
    rng = np.random.default_rng(0)
    kinds, store, labels = rng.random((5, dim)), MemoryStore(dim, FPS), {}
    for number in range(videos):
        changes = np.cumsum(rng.integers(35, 75, frames // 35))
        changes = changes[changes < frames - 20]
        order = (rng.integers(5) + np.cumsum(rng.integers(1, 5, len(changes) + 1))) % 5
        shown = kinds[np.repeat(order, np.diff([0, *changes, frames]))] + 0.05 * rng.random((frames, dim))
        times, epochs = np.arange(frames) / FPS, np.zeros(frames, np.int32)
        store.videos[str(number)] = MemoryVideo(shown.astype(np.float16), times, epochs, frames / FPS)
        labels[str(number)] = VideoLabels(str(number), frames / FPS, (changes / FPS,), fps=FPS)
    return make_dataset(store, LabelSet(labels, "custom", "made"), config)


@pytest.mark.parametrize(
    ("name", "compiled"), [("ddm-net", False), ("coseg", False), ("pc", True), ("estimator", True)]
)
def test_a_gpu_compiles_only_what_torch_can_compile(name: str, compiled: bool):
    on, objective = Processes(0, 1, torch.device("cuda")), torch.nn.Linear(1, 1)
    config = TrainConfig().changed({"method": name})
    assert (prepared(objective, config, on) is not objective) == compiled
    assert prepared(objective, replace(config, compile="default"), on) is not objective


@pytest.mark.parametrize("name", TRAINED)
def test_the_catalogue_has_the_networks_parameters(name: str):
    with torch.device("meta"):
        assert parameter_count(make_system(name)) == SYSTEMS[name].parameters


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in HEAVY else []) for name in TRAINED]
)
def test_it_learns_to_find_changes(name: str, tmp_path: Path):
    config = configured(name, tmp_path)
    report = train(config, dataset=made(config)).report
    assert report is not None
    own = report.results[0]
    assert own.name == name
    assert own.figures["absolute 0.25"] > 0.85, own.figures
    facts = json.loads((tmp_path / "report.json").read_text())
    assert facts["model"]["method"] == name


@pytest.mark.parametrize("name", TRAINED)
def test_its_folder_finds_what_validation_found(name: str, tmp_path: Path):
    config = configured(name, tmp_path, epochs=1)
    dataset = replace(made(config, dim=1280, videos=6), backbone="efficientnet_lite0")
    result = train(config, dataset=dataset)
    assert result.report is not None
    model = load(f"{name}:{tmp_path / 'model'}")
    with pytest.raises(ConfigError, match="is offline"):
        model.stream()
    video = dataset.validation[0]
    run = model.begin(model.configured())
    for feature, time in zip(video.features.astype(np.float32), video.times, strict=True):
        assert run.update_feature(feature, time).pending
    decisions = run.drain()
    (scores,) = task_of(config).scores(result.model, [video], DeviceFeatures([video], torch.device("cpu")))
    np.testing.assert_allclose([each.error for each in decisions][1:], scores[1:], atol=1e-5)
    found = [each.boundary.time for each in decisions if each.boundary]
    while (left := run.flush()) is not None:
        found.append(left.time)
    np.testing.assert_allclose(found, result.report.results[0].predictions.videos[video.id].times, atol=1e-9)


def test_detect_reads_a_store_with_an_offline_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = configured("pc", tmp_path / "pc", epochs=1)
    dataset = made(config, dim=1280, videos=6)
    backbone = get("efficientnet_lite0").identity
    result = train(config, dataset=replace(dataset, backbone=backbone)).report
    assert result is not None
    with FeatureStore.create(tmp_path / "store", backbone=backbone, dim=1280, fps=FPS) as store:
        for video in dataset.validation:
            store.add(video.id, video.features, video.times, video.epochs, 10.0, f"{video.id}.mp4")
    model = str(tmp_path / "pc" / "model")
    assert (
        main(
            ["detect", "--store", str(tmp_path / "store"), "--model", model, "--out", str(tmp_path / "found")]
        )
        == 0
    )
    for name, wanted in result.results[0].predictions.videos.items():
        lines = map(json.loads, (tmp_path / "found" / f"{name}.jsonl").read_text().splitlines())
        times = [line["time"] for line in lines if line["type"] == "boundary"]
        np.testing.assert_allclose(times, wanted.times, atol=1e-3)


@pytest.mark.parametrize("name", TRAINED)
def test_frames_that_fill_up_a_clip_have_no_loss(name: str, tmp_path: Path):
    task = task_of(configured(name, tmp_path))
    network: Any = task.network(32)
    frames, targets = (
        torch.rand(2, network.shape.length, 32),
        torch.zeros(2, network.shape.length, dtype=torch.bool),
    )
    targets[:, 10] = True
    lead = torch.arange(network.shape.length).repeat(2, 1)
    lead[:, 30:] = -1
    _, each = task.objective(network)(frames, targets, lead, torch.ones(()), torch.ones(()))
    assert each[:, 30:].abs().max() == 0
    assert each.isfinite().all()
    none = torch.full_like(lead, -1)
    loss, _ = task.objective(network)(frames, targets, none, torch.ones(()), torch.ones(()))
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad is None or p.grad.isfinite().all() for p in network.parameters())


def test_every_frame_is_a_target_once_and_clips_never_mix_videos():
    store, labels = make_synthetic(SyntheticConfig(videos=5, frames=100, dim=4, event=(20, 30)))
    config = TrainConfig(out="", label_rule="exact", validation_share=0.2)
    videos = make_dataset(store, labels, config).training
    videos[0] = replace(videos[0], epochs=np.repeat(np.int32([0, 1]), [1, 99]))
    tape = build_clips(videos, length=16, stride=3)
    real = tape.lead >= 0
    assert sorted(tape.rows[real]) == list(range(sum(map(len, videos))))
    owner = np.repeat(np.arange(len(videos)), [len(video) for video in videos])[tape.rows].reshape(-1, 16)
    assert (owner == owner[:, :1]).all()
    assert sorted(tape.epoch(0, 3)) == list(range(16, len(tape.rows), 16))
    boundaries = sum(video.targets.sum() for video in videos)
    assert (tape.targets & real).sum() == 3 * boundaries  # the frame itself and its neighbours in other clips


def test_soft_targets_have_their_peak_in_the_middle():
    targets = torch.tensor([[0, 1, 1, 1, 0, 0, 0, 1, 1, 0]]).bool()
    assert centres(targets).nonzero()[:, 1].tolist() == [2, 8]
    assert bells(targets)[0, [2, 8]].tolist() == pytest.approx([1, 1], abs=1e-3)
    assert bells(targets).max() <= 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "pa"}, "unknown method 'pa'; known are estimator, miniroad"),
        ({"network": "widht=3"}, "unknown setting 'widht'"),
    ],
)
def test_a_mistake_is_one_line(changes: dict[str, Any], message: str, tmp_path: Path):
    with pytest.raises(ConfigError, match=message):
        made(configured("pc", tmp_path, **changes))
