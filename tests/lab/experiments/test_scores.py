"""Means and intervals over seeds and videos, and what may be set in bold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ongebd.lab.evaluation.counts import Counts
from ongebd.lab.experiments.scores import SCORES, Resampled, value_of


def counted(hits: Sequence[int], positives: int = 10, detections: int = 10) -> Counts:
    """The same number of hits at every tolerance, one entry a video."""
    tp = np.repeat(np.array(hits)[:, None], 20, axis=1)
    same = np.ones_like(tp)
    return Counts(tp, positives * same, detections * same, 0 * same)


def test_a_value_is_the_mean_over_seeds_with_an_interval_around_it() -> None:
    resampled = Resampled({"row": [counted([4, 6] * 10), counted([6, 8] * 10)]})
    value = resampled.measured("row", "average")
    assert value.seeds == pytest.approx((0.5, 0.7))
    assert value.value == pytest.approx(0.6)
    assert value.interval is not None
    assert 0.45 < value.interval.low < 0.55 < 0.65 < value.interval.high < 0.75  # seeds differ, and count


def test_seeds_that_agree_leave_the_spread_of_the_videos_alone() -> None:
    one = counted([4, 6] * 10)
    intervals = [
        Resampled({"row": [one] * seeds}).measured("row", "absolute 0.5").interval for seeds in (1, 3)
    ]
    assert intervals[0] == intervals[1]


def test_best_is_only_what_is_ahead_beyond_the_noise() -> None:
    rng = np.random.default_rng(0)
    hits = rng.integers(2, 8, 40)
    base, ahead, shuffled = counted(hits), counted(hits + 1), counted(rng.permutation(hits))
    assert Resampled({"base": [base], "ahead": [ahead]}).best("average") == "ahead"
    assert Resampled({"base": [base], "other": [shuffled]}).best("average") is None
    assert Resampled({"alone": [base]}).best("average") is None


def test_one_video_has_no_interval_and_no_best() -> None:
    resampled = Resampled({"a": [counted([1])], "b": [counted([9])]})
    assert resampled.measured("b", "average").interval is None
    assert resampled.best("average") is None


@pytest.mark.parametrize("column", SCORES)
def test_every_column_is_a_value_of_the_counts(column: str) -> None:
    scores = counted([5], positives=10, detections=5).totals()
    wanted = 1.0 if column.startswith("precision") else 0.5 if column.startswith("recall") else 2 / 3
    assert value_of(column, scores) == pytest.approx(wanted)
