"""Settings: types, ranges, text from files and command lines, and values that nothing can use."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest

import ongebd
from ongebd.common.settings import Range, changed, check_fields
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


@dataclass(frozen=True, kw_only=True)
class Sample:
    rate: Annotated[float, Range(above=0, most=120)] = 24.0
    window: Annotated[int, Range(least=1)] | None = None
    mode: Literal["auto", "off"] = "auto"
    name: str = ""
    exact: bool = False

    def __post_init__(self) -> None:
        check_fields(self)


def test_numbers_become_plain_numbers() -> None:
    import numpy as np

    sample = Sample(rate=np.float32(8), window=np.int64(3))
    assert (type(sample.rate), type(sample.window)) == (float, int)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("rate", 0, "rate must be above 0 and at most 120, not 0.0"),
        ("rate", "8", "rate must be a number, not '8'"),
        ("rate", float("nan"), "rate must be a finite number, not nan"),
        ("rate", True, "rate must be a number, not True"),
        ("rate", None, "rate must be a number, not None"),
        ("rate", 10**400, "fewer digits"),
        ("window", 0, "window must be at least 1, not 0"),
        ("window", 2.0, "window must be a whole number, not 2.0"),
        ("mode", "on", "mode must be one of auto, off, not 'on'"),
        ("mode", ["auto"], "mode must be one of auto, off"),
        ("name", 3, "name must be text, not 3"),
        ("exact", 1, "exact must be true or false, not 1"),
    ],
)
def test_a_wrong_value_is_one_line(name: str, value: Any, said: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        Sample(**{name: value})
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rate": "12.5", "window": "4"}, Sample(rate=12.5, window=4)),
        ({"window": "none"}, Sample()),
        ({"window": 4.0}, Sample(window=4)),
        ({"mode": False}, Sample(mode="off")),  # YAML 1.1's `off`
        ({"exact": "yes", "name": 7}, Sample(exact=True, name="7")),
    ],
)
def test_text_is_read_as_the_fields_type(changes: dict[str, Any], expected: Sample) -> None:
    assert changed(Sample(), changes) == expected


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"windw": 3}, "a.yaml: unknown setting 'windw': did you mean window?"),
        ({"zzz": 3}, "a.yaml: unknown setting 'zzz': known are rate, window, mode, name, exact"),
        ({"rate": "fast"}, "a.yaml: rate must be a number, not 'fast'"),
        ({"window": 2.5}, "a.yaml: window must be a whole number, not 2.5"),
        ({"window": [1]}, "a.yaml: window must be a whole number, not [1]"),
        ({"window": np.zeros(2)}, "a.yaml: window must be a whole number, not array([0., 0.])"),
    ],
)
def test_a_wrong_change_says_where(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        changed(Sample(), changes, "a.yaml: ")
    assert str(refusal.value) == said


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
