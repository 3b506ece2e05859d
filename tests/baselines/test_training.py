"""The one loop trains every baseline; its output is named, streamed and decided as in validation."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from ongebd.baselines.methods import SCHEDULES, make_network  # noqa: E402
from ongebd.detector import load  # noqa: E402
from ongebd.errors import ConfigError  # noqa: E402
from ongebd.lab.training.batches import DeviceFeatures  # noqa: E402
from ongebd.lab.training.config import TrainConfig, read_config  # noqa: E402
from ongebd.lab.training.dataset import make_dataset  # noqa: E402
from ongebd.lab.training.loop import Trained, train  # noqa: E402
from ongebd.lab.training.scores import group_by_length  # noqa: E402
from ongebd.lab.training.task import optimizer_of, task_of  # noqa: E402
from ongebd.lab.training.validation import judge, predictions_at  # noqa: E402
from synthetic import SyntheticConfig, make_synthetic  # noqa: E402

CPU = torch.device("cpu")
NETWORKS = {
    "miniroad": "embedding=16,hidden=16,window=12,stride=1",
    "testra": "width=16,heads=2,ffn=16,first_queries=4,second_queries=4,work=8,long=16",
    "simon": "width=16,heads=2,ffn=16,layers=1,run=8",
    "oadtr": "width=16,ffn=16,encoder_heads=2,decoder_heads=2,encoder_layers=1,decoder_layers=1,window=8",
}


def configured(method: str, out: Path, **changes: Any) -> TrainConfig:
    base = TrainConfig(out=str(out), epochs=1, label_rule="exact", device="cpu")
    given = {
        "method": method,
        "network": NETWORKS.get(method, ""),
        "optimizer": "adamw",
        "weight_decay": 0.01,
        "schedule": "constant",
        "clip": None,
        "lr": 3e-3,
        "batch": 128,
    }
    return base.changed(given | changes)


def trained(method: str, out: Path, **changes: Any) -> tuple[TrainConfig, Any, Trained]:
    torch.set_num_threads(1)
    config = configured(method, out, **changes)
    store, labels = make_synthetic(SyntheticConfig(videos=8, frames=60, dim=1280, event=(15, 25)))
    dataset = replace(make_dataset(store, labels, config), backbone="efficientnet_lite0")
    return config, dataset, train(config, dataset=dataset)


def test_what_is_trained_streams_as_it_was_validated(method: str, tmp_path: Path) -> None:
    config, dataset, result = trained(method, tmp_path / "out")
    assert result.report is not None
    names = [each.name for each in result.report.results]
    assert names == [method, "window-mean", "persistence", f"{method}, OBD"]
    own = result.report.results[0]

    model = load(f"{method}:{tmp_path / 'out' / 'model'}")
    settings = model.configured()
    assert (settings.head, settings.threshold) == ("threshold", own.threshold)
    assert settings.min_gap == 0  # the authors have none
    videos = dataset.validation
    scores = task_of(config).scores(result.model, videos, DeviceFeatures(videos, CPU))
    predicted = predictions_at(judge(videos, scores, settings, obd=False), own.threshold, settings)
    for video, score in zip(videos, scores, strict=True):
        stream = model.stream()
        assert stream.latency == 0
        assert stream.state_bytes > 0
        decisions = [
            stream.update_feature(feature, time)
            for feature, time in zip(video.features.astype(np.float32), video.times, strict=True)
        ]
        np.testing.assert_allclose([d.error for d in decisions][1:], score[1:], atol=1e-5)
        assert np.isnan(score[0])
        found = [d.boundary for d in decisions if d.boundary is not None]
        last = stream.flush()
        found += [] if last is None else [last]
        if np.abs(score[1:] - own.threshold).min() > 1e-5:  # else rounding may decide
            np.testing.assert_allclose([b.time for b in found], predicted.videos[video.id].times, atol=1e-9)


def test_streams_scored_together_equal_each_alone(method: str, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    task = task_of(configured(method, tmp_path))
    network = task.network(12)
    store, labels = make_synthetic(SyntheticConfig(videos=20, frames=60, dim=12, event=(15, 25)))
    whole = make_dataset(store, labels, configured(method, tmp_path)).training
    epochs = np.repeat(np.int32([0, 1]), [7, 53])  # a break of the clock: two streams in one video
    videos = [
        replace(
            video,
            features=video.features[:n],
            times=video.times[:n],
            epochs=epochs[:n],
            targets=video.targets[:n],
        )
        for video, n in zip(whole, np.random.default_rng(0).integers(1, 61, len(whole)).tolist(), strict=True)
    ]
    together = task.scores(network, videos, DeviceFeatures(videos, CPU))
    for video, scores in zip(videos, together, strict=True):
        (alone,) = task.scores(network, [video], DeviceFeatures([video], CPU))
        np.testing.assert_allclose(scores, alone, atol=1e-6)
        assert np.flatnonzero(np.isnan(scores)).tolist() == [0, 7][: 1 + (len(video) > 7)]


@given(st.lists(st.integers(1, 20_000), max_size=60))
def test_long_streams_are_scored_in_smaller_batches(lengths: list[int]) -> None:
    spans = [(5, 5 + length) for length in lengths]
    groups = group_by_length(spans)
    assert sorted(span for group in groups for span in group) == sorted(spans)
    for group in groups:
        longest = max(end - first for first, end in group)
        assert group[-1][1] - group[-1][0] == longest
        assert len(group) == 1 or (len(group) <= 16 and len(group) * longest <= 8192)


def test_the_discriminator_can_be_its_head(tmp_path: Path) -> None:
    _, _, result = trained("miniroad", tmp_path / "out", obd=True)
    assert result.report is not None
    assert result.report.results[0].at_paper_tau is not None
    assert result.report.results[-1].name == "miniroad, threshold"
    settings = load(str(tmp_path / "out" / "model")).configured()
    assert (settings.head, settings.tau) == (None, result.report.results[0].threshold)
    again = load(f"miniroad:{tmp_path / 'out' / 'model'}").stream(head="threshold", threshold=0.25)
    assert again.config.threshold == 0.25


# For THUMOS, from the authors' repositories: a batch is so many samples of so many targets; rates by epoch.
AUTHORS = {
    "miniroad": ("adamw", 1e-4, 0.05, None, 10, (16, 1), {9: 1.0}),
    "testra": ("adam", 7e-5, 5e-5, None, 25, (16, 32), {0: 0.3, 10: 0.65451, 24: 0.003943}),
    "simon": ("adam", 1e-4, 1e-4, 1.0, 16, (256, 128), {2: 1.0, 3: 0.5, 15: 0.5**5}),
    "oadtr": ("adam", 1e-4, 1e-4, 1.0, 4, (4, 32), {0: 1.0, 3: 1e-3}),
}


@pytest.mark.parametrize("name", AUTHORS)
def test_its_authors_recipe_is_the_default(name: str) -> None:
    config = TrainConfig().changed({"method": name})
    kind, lr, decay, clip, epochs, (samples, targets), course = AUTHORS[name]
    optimizer = optimizer_of(config, torch.nn.Linear(2, 2), CPU)
    group = optimizer.param_groups[0]
    assert (type(optimizer).__name__.lower(), group["lr"], group["weight_decay"]) == (kind, lr, decay)
    assert (config.clip, config.epochs, config.obd) == (clip, epochs, False)
    layout = make_network(name).layout()
    assert (config.batch // layout.run, layout.run) == (samples, targets)
    assert layout.stride == (4 if name == "miniroad" else 1)
    for epoch, factor in course.items():
        assert SCHEDULES[config.schedule](epoch, epochs) == pytest.approx(factor, rel=1e-3)
    assert config.deviations() == []
    assert (
        config.changed({"epochs": 1, "schedule": "constant", "device": "cpu"}).deviations()[0] == "epochs 1"
    )


def test_the_learning_rate_follows_the_schedule_also_in_a_resumed_training(tmp_path: Path) -> None:
    whole = configured("oadtr", tmp_path / "whole", epochs=2, schedule="oadtr")
    store, labels = make_synthetic(SyntheticConfig(videos=8, frames=60, dim=16, event=(15, 25)))
    dataset = make_dataset(store, labels, whole)
    once = train(whole, dataset=dataset, report=False)
    config = replace(whole, out=str(tmp_path / "out"))
    train(replace(config, epochs=1), dataset=dataset, report=False)
    again = train(config, dataset=dataset, resume=True, report=False)
    assert torch.equal(once.model.head.weight, again.model.head.weight)  # type: ignore[operator, arg-type]
    kept = torch.load(tmp_path / "out" / "checkpoint.pt")
    assert kept["optimizer"]["param_groups"][0]["lr"] == pytest.approx(3e-4)  # a tenth in the second epoch


def test_gradients_are_clipped_if_the_authors_clip_them() -> None:
    config = TrainConfig().changed({"method": "oadtr", "network": NETWORKS["oadtr"]})
    network = task_of(config).network(16)
    optimizer = optimizer_of(config, network, CPU)
    for parameter in network.parameters():
        parameter.grad = torch.full_like(parameter, 100.0)
    optimizer.step()
    total = torch.sqrt(sum((p.grad**2).sum() for p in network.parameters() if p.grad is not None))
    assert float(total) == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "magic"}, "unknown method 'magic'; known are estimator, miniroad"),
        ({"network": "hidden"}, "'hidden' is not name=number"),
        ({"network": "depth=3"}, "unknown setting 'depth'"),
        ({"network": "hidden=0"}, "hidden must be at least 1"),
        ({"name": "estimator", "network": "hidden=4"}, "network is for baselines"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        trained(changes.pop("name", "miniroad"), tmp_path / "out", **changes)


def test_a_folder_of_another_baseline_is_refused(tmp_path: Path, small: Callable[[str], Any]) -> None:
    trained("simon", tmp_path / "out")
    folder = tmp_path / "out" / "model"
    assert load(str(folder)).summary.startswith("simon trained on 6 videos of custom; a threshold of ")
    with pytest.raises(ConfigError, match="has the weights of simon, not of miniroad"):
        load(f"miniroad:{folder}")
    with pytest.raises(ConfigError, match="no trained model"):
        load("miniroad:nowhere")
    with pytest.raises(ConfigError, match=r"needs trained weights: train it, then name testra:FOLDER"):
        load("testra")
    about = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(about | {"shape": {"dim": 4}}))
    with pytest.raises(ConfigError, match="no weights of simon"):
        load(str(folder))


def test_a_yaml_file_can_name_a_baseline(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("method: miniroad\nnetwork: hidden=8\n")
    config = read_config(tmp_path / "a.yaml")
    assert (config.method, config.network, config.obd) == ("miniroad", "hidden=8", False)
    (tmp_path / "b.yaml").write_text("method: miniroad\nobd: true\n")
    assert read_config(tmp_path / "b.yaml").obd
