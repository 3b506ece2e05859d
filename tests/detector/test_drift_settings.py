"""Settings of drift detectors: what is taken works on any scores, and all else is refused in one line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("river", reason="the extra `peers` is not installed")

from ongebd.detector.drift import _SETTINGS, make_drift_head
from ongebd.errors import ConfigError

_KEYS = [(head, key) for head, values in _SETTINGS.items() for key in values]
_TEXTS = st.one_of(
    st.integers(-3, 60).map(str),
    st.floats(-2, 60).map(str),
    st.sampled_from(["nan", "inf", "-inf", "1e300", "9" * 30, "-1", "0", "", "four", "1e-320"]),
)
_SCORES = st.lists(
    st.one_of(st.floats(0, 1), st.sampled_from([1e150, -1e150, 0.0])), min_size=70, max_size=70
)


@given(st.sampled_from(_KEYS), _TEXTS, _SCORES)
@settings(max_examples=150, deadline=None)
def test_a_setting_that_is_taken_works_and_any_other_is_refused(
    which: tuple[str, str], text: str, scores: list[float]
) -> None:
    head, key = which
    try:
        made = make_drift_head(head, f"{key}={text}")
    except ConfigError as problem:
        line = str(problem)
        assert line.startswith(f"head {head}: ")
        assert "\n" not in line
        return
    for _ in range(2):
        for score in scores:
            assert np.isfinite(made.update(score).z)
        made.reset()


@pytest.mark.parametrize(
    ("head", "given", "message"),
    [
        ("adwin", "clock=0", "clock must lie between 1 and"),
        ("adwin", "delta=nan", "delta must lie between"),
        ("adwin", "delta=0", "delta must lie between"),
        ("adwin", "grace_period=-1", "grace_period must lie between 0"),
        ("adwin", "clock=100000000000000000000", "clock must lie between"),
        ("page-hinkley", "threshold=inf", "threshold must lie between"),
        ("page-hinkley", "min_instances=0", "min_instances must lie between 1"),
        ("kswin", "stat_size=0", "stat_size must lie between 1"),
        ("kswin", "stat_size=20", r"window_size \(30\) must be at least twice stat_size \(20\)"),
        ("kswin", "alpha=2", "alpha must lie between 0 and 1"),
        ("kswin", "seed=-1", "seed must lie between 0"),
    ],
)
def test_a_setting_outside_its_range_is_named(head: str, given: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_drift_head(head, given)
