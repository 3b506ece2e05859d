"""Numbers and names that no setting or file can have: one short line of our own, from all of the API."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import ongebd
from ongebd.data.labels import read_labels
from ongebd.data.predictions import read_predictions
from ongebd.detector import StreamConfig, load
from ongebd.errors import ConfigError, OngebdError
from ongebd.features.extract import ExtractConfig
from ongebd.features.store import FeatureStore
from ongebd.lab.evaluation.evaluation import EvaluationConfig
from ongebd.lab.training.config import TrainConfig, read_config
from ongebd.output import RunHeader, open_writers, read_jsonl
from ongebd.watch import Patience, Watcher

NESTED: list[Any] = []
for _ in range(5000):
    NESTED = [NESTED]
VALUES = [
    10**400,
    -(10**5000),
    10**5000,
    Fraction(10**5000),
    1e308,
    "9" * 5000,
    "x" * 10**6,
    [10**5000],
    NESTED,
]
NAMES = [
    "x" * 5000,
    "a/" * 3000 + "b",
    "x\0y",
    "x\ud800y",
    f"file:{'x' * 5000}",
    "http://[",
    "tcp://h:99999999",
]


def test_what_a_file_says_never_commands_a_terminal() -> None:
    assert str(OngebdError("a\nb \x1b[2J\x9b \ud800")) == r"a\nb \x1b[2J\x9b \ud800"


@pytest.mark.parametrize("kind", [StreamConfig, TrainConfig, ExtractConfig, EvaluationConfig, Patience])
def test_settings_of_any_size_are_taken_or_refused_in_one_short_line(kind: type[Any]) -> None:
    for name in (field.name for field in fields(kind)):
        for value in VALUES:
            try:
                kind(**{name: value})
            except OngebdError as problem:
                assert len(str(problem)) < 500  # noqa: PT017
                assert "\n" not in str(problem)  # noqa: PT017


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
@pytest.mark.parametrize(
    "use",
    [
        ongebd.detect,
        load,
        lambda name: load(device=name),
        read_jsonl,
        read_predictions,
        FeatureStore.open,
        lambda name: read_labels(f"{name}.csv"),
        lambda name: read_config(Path(name)),
        lambda name: open_writers(["csv"], ".", f"/{name}", RunHeader("a", "m", {}, 1, 1, "0")),
    ],
)
def test_a_name_that_no_file_can_have_is_refused(use: Callable[[str], object], name: str) -> None:
    with pytest.raises(OngebdError):
        use(name)


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_watcher_takes_any_name_and_refuses_only_what_is_no_whole_address(name: str) -> None:
    refused = pytest.raises(ConfigError, match=r"^\w+://.*: not a whole address")
    with refused if "://" in name else nullcontext():
        Watcher([name]).stop()
