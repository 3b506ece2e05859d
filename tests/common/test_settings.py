"""Settings dataclasses: types, ranges and unknown names are refused in one line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from ongebd.common.settings import Range, changed, check_fields
from ongebd.errors import ConfigError


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
