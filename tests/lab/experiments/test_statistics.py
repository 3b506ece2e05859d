"""Means and intervals over seeds and videos, and what may be set in bold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ongebd.lab.evaluation.counts import Counts
from ongebd.lab.experiments.columns import SCORES, Counted, value_of
from ongebd.lab.experiments.statistics import Drawn


def counted(hits: Sequence[int], positives: int = 10, detections: int = 10) -> Counted:
    """The same number of hits at every tolerance, one entry a video."""
    tp = np.repeat(np.array(hits)[:, None], 20, axis=1)
    same = np.ones_like(tp)
    return Counted(Counts(tp, positives * same, detections * same, 0 * same), ())


def test_a_figure_is_the_mean_over_seeds_with_an_interval_around_it() -> None:
    drawn = Drawn({"row": [counted([4, 6] * 10), counted([6, 8] * 10)]})
    cell = drawn.cell("row", "average")
    assert cell.seeds == pytest.approx((0.5, 0.7))
    assert cell.value == pytest.approx(0.6)
    assert cell.interval is not None
    assert 0.45 < cell.interval.low < 0.55 < 0.65 < cell.interval.high < 0.75  # seeds differ, and count


def test_seeds_that_agree_leave_the_spread_of_the_videos_alone() -> None:
    one = counted([4, 6] * 10)
    single, several = Drawn({"row": [one]}), Drawn({"row": [one, one, one]})
    assert single.cell("row", "absolute 0.5").interval == several.cell("row", "absolute 0.5").interval


def test_what_is_ahead_on_every_video_is_best_and_what_is_within_the_noise_is_not() -> None:
    rng = np.random.default_rng(0)
    hits = rng.integers(2, 8, 40)
    rows = {"base": [counted(hits)], "ahead": [counted(hits + 1)]}
    assert Drawn(rows).best(["base", "ahead"], "average") == "ahead"
    shuffled = counted(rng.permutation(hits))
    assert Drawn({"base": [counted(hits)], "other": [shuffled]}).best(["base", "other"], "average") is None
    assert Drawn({"alone": [counted(hits)]}).best(["alone"], "average") is None


def test_one_video_has_no_interval_and_no_best() -> None:
    drawn = Drawn({"a": [counted([1])], "b": [counted([9])]})
    assert drawn.cell("b", "average").interval is None
    assert drawn.best(["a", "b"], "average") is None


@pytest.mark.parametrize("column", SCORES)
def test_every_column_is_a_figure_of_the_counts(column: str) -> None:
    scores = counted([5], positives=10, detections=5).counts.totals()
    wanted = 1.0 if column.startswith("precision") else 0.5 if column.startswith("recall") else 2 / 3
    assert value_of(column, scores) == pytest.approx(wanted)
