"""What a training's report says first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ongebd.lab.training import report
from ongebd.lab.training.checkpoint import Progress
from ongebd.lab.training.config import TrainConfig
from ongebd.lab.training.dataset import Dataset
from ongebd.lab.training.loop import train


@pytest.fixture
def findings(
    config: TrainConfig, make: Callable[..., Dataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    def run(errors: list[float], **data: Any) -> str:
        monkeypatch.setattr(report, "GIVEN_UP", 0.0)  # errors of an anticipator trained for an epoch are high
        real = report.make_report
        history = [{"epoch": n, "loss": 1.0, "error_elsewhere": error} for n, error in enumerate(errors)]
        progress = Progress(history=history)
        monkeypatch.setattr(
            "ongebd.lab.training.loop.make_report", lambda *given: real(*given[:-1], progress)
        )
        settings = replace(config, epochs=1, run=64)
        made = train(settings, dataset=make(settings, **data)).report
        assert made is not None
        return "\n".join(made.values["findings"])

    return run


def test_a_short_training_is_not_said_to_have_given_up(findings: Callable[..., str]) -> None:
    text = findings([0.5, 0.45, 0.4])
    assert "doesn't anticipate yet; train for more epochs" in text
    assert "given up" not in text
    assert "differs from the settings of the paper: features of synthetic, not of ResNet-50, " in text
    assert "run 64" in text


def test_a_training_that_no_longer_learns_and_does_not_anticipate_has_given_up(
    findings: Callable[..., str],
) -> None:
    assert "has given up" in findings([0.4, 0.42, 0.43])


def test_few_validation_videos_are_too_few_for_a_verdict(findings: Callable[..., str]) -> None:
    assert "1 video to validate on: too few for a verdict" in findings([0.4], videos=5)
