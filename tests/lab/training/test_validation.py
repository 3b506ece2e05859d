"""Errors, decisions and thresholds of validation: those of the stream."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ongebd.baselines.naive import Persistence, WindowMean
from ongebd.data.files import FloatArray
from ongebd.data.labelled import LabelledVideo
from ongebd.detector.config import StreamConfig
from ongebd.detector.detector import OnlineDetector
from ongebd.errors import ConfigError
from ongebd.estimator import Anticipator
from ongebd.estimator.anticipator import AnticipatorConfig, ConsistentEventAnticipator
from ongebd.estimator.onnx_anticipator import OnnxAnticipator
from ongebd.lab.training.batches import DeviceFeatures
from ongebd.lab.training.config import TrainConfig
from ongebd.lab.training.dataset import Dataset
from ongebd.lab.training.onnx_export import export_onnx
from ongebd.lab.training.scores import Naive, errors_of_model, errors_of_naive
from ongebd.lab.training.validation import boundaries_at, judge, validate
from ongebd.types import Boundary, Decision

CPU = torch.device("cpu")
WINDOW = 8


class Blind:
    """A backbone that is never asked."""

    name, dim, identity = "blind", 12, "blind@0"


def videos_with_a_break(dataset: Dataset) -> list[LabelledVideo]:
    """The clock of the first one steps back in its middle."""
    first, *rest = dataset.validation
    epochs, times = first.epochs.copy(), first.times.copy()
    epochs[40:] = 1
    times[40:] -= times[40]
    return [LabelledVideo(first.id, first.features, times, epochs, first.targets), *rest]


Outcome = tuple[list[Decision], list[Boundary]]


def streamed(video: LabelledVideo, anticipator: Anticipator, config: StreamConfig) -> Outcome:
    detector = OnlineDetector(Blind(), anticipator, config)  # type: ignore[arg-type]
    decisions, found = [], []
    epoch = 0
    for feature, time, number in zip(video.features, video.times, video.epochs, strict=True):
        if number != epoch:
            epoch = number
            found.append(detector.new_epoch())
        decisions.append(detector.update_feature(feature.astype(np.float32), float(time)))
        found.append(decisions[-1].boundary)
    found.append(detector.flush())
    return decisions, [boundary for boundary in found if boundary is not None]


def assert_same(errors: FloatArray, decisions: list[Decision]) -> None:
    unpredicted = np.isnan(errors)
    assert all(decisions[i].error == 0 and not decisions[i].ready for i in np.flatnonzero(unpredicted))
    ours = np.array([decision.error for decision in decisions])
    np.testing.assert_allclose(errors[~unpredicted], ours[~unpredicted], atol=1e-5)


@pytest.mark.parametrize("name", ["persistence", "window-mean"])
def test_naive_errors_are_those_of_the_stream(dataset: Dataset, name: Naive, config: TrainConfig) -> None:
    videos = videos_with_a_break(dataset)
    anticipator = Persistence() if name == "persistence" else WindowMean(WINDOW)
    all_errors = errors_of_naive(name, videos, DeviceFeatures(videos, CPU), window=WINDOW)
    for video, errors in zip(videos, all_errors, strict=True):
        assert_same(errors, streamed(video, anticipator, config.stream(24, 2.0))[0])


@pytest.mark.parametrize("residual", [True, False])
def test_a_network_errs_in_the_stream_as_in_validation(
    dataset: Dataset, config: TrainConfig, residual: bool, tmp_path: Path
) -> None:
    torch.manual_seed(1)
    shape = AnticipatorConfig(dim=12, width=16, heads=2, ffn=16, window=WINDOW, residual=residual)
    model = ConsistentEventAnticipator(shape)
    if residual:
        torch.nn.init.normal_(model.head.weight, std=0.1)
    export_onnx(model, tmp_path / "model.onnx")
    anticipator = OnnxAnticipator(tmp_path / "model.onnx", "cea", WINDOW)
    videos = videos_with_a_break(dataset)
    settings = config.stream(24, 1.5)
    errors = errors_of_model(model, videos, DeviceFeatures(videos, CPU))
    for video, own, judged in zip(videos, errors, judge(videos, errors, settings), strict=True):
        decisions, found = streamed(video, anticipator, settings)
        assert_same(own, decisions)
        ours = boundaries_at(judged, 1.5, settings)
        assert [(b.time, b.onset, b.decided) for b in ours] == [(b.time, b.onset, b.decided) for b in found]


@pytest.mark.parametrize("tau", [0.5, 1.5, 4.0])
def test_decisions_at_any_tau_are_the_detectors(dataset: Dataset, config: TrainConfig, tau: float) -> None:
    videos = videos_with_a_break(dataset)
    settings = config.stream(24, tau)
    errors = errors_of_naive("window-mean", videos, DeviceFeatures(videos, CPU), window=WINDOW)
    total = 0
    for video, judged in zip(videos, judge(videos, errors, config.stream(24, 1.0)), strict=True):
        found = streamed(video, WindowMean(WINDOW), settings)[1]
        ours = boundaries_at(judged, tau, settings)
        assert [(b.time, b.onset, b.decided) for b in ours] == [(b.time, b.onset, b.decided) for b in found]
        total += len(found)
    assert total > 0


def test_the_best_threshold_is_the_best_of_those_tried(dataset: Dataset, config: TrainConfig) -> None:
    videos = dataset.validation
    errors = errors_of_naive("window-mean", videos, DeviceFeatures(videos, CPU), window=WINDOW)
    result = validate(
        "window-mean", videos, errors, dataset.labels, config.stream(24, 1.0), select_by="absolute 0.1"
    )
    assert result.figures["absolute 0.1"] == max(result.by_threshold.values())
    assert result.by_threshold[result.threshold] == result.figures["absolute 0.1"]
    assert result.at_paper_tau is not None
    assert result.at_paper_tau["absolute 0.1"] == result.by_threshold[1.5]


def test_a_fixed_threshold_looks_at_the_error_itself(dataset: Dataset, config: TrainConfig) -> None:
    videos = dataset.validation
    errors = [video.targets * 0.6 + 0.1 for video in videos]
    result = validate(
        "oracle", videos, errors, dataset.labels, config.stream(24, 1.0), select_by="absolute 0.1", obd=False
    )
    assert result.figures["absolute 0.1"] == 1.0
    assert 0.1 <= result.threshold < 0.7
    assert result.mean_boundary > result.mean_elsewhere
    assert result.at_paper_tau is None


def test_an_unknown_figure_is_named(dataset: Dataset, config: TrainConfig) -> None:
    with pytest.raises(ConfigError, match="select_by must be one of average"):
        validate("x", [], [], dataset.labels, config.stream(24, 1.0), select_by="accuracy")
