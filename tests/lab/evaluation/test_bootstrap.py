"""Intervals over videos, and paired differences."""

from __future__ import annotations

import numpy as np
import pytest

from ongebd.data import LabelSet, PredictionSet, as_label_set, as_prediction_set
from ongebd.lab.evaluation import EvaluationConfig, evaluate
from ongebd.lab.evaluation.counts import Interval, resampled_sums


def made_set(videos: int = 40) -> tuple[LabelSet, PredictionSet]:
    rng = np.random.default_rng(0)
    labels: dict[str, dict[str, object]] = {}
    found = {}
    for index in range(videos):
        rows = [np.sort(rng.uniform(0.5, 9.5, 4)).tolist() for _ in range(3)]
        labels[str(index)] = {"video_duration": 10.0, "substages_timestamps": rows}
        found[str(index)] = (np.array(rows[0]) + rng.normal(0, 0.4, 4)).clip(0, 10).tolist()
    return as_label_set(labels), as_prediction_set(found)


def test_sums_of_draws_have_the_mean_and_the_spread_that_theory_gives() -> None:
    values = np.random.default_rng(1).exponential(size=(50, 1))
    sums = resampled_sums(values, 20_000, seed=0)
    assert sums.mean() == pytest.approx(values.sum(), rel=0.01)
    assert sums.std() == pytest.approx(np.sqrt(50) * values.std(), rel=0.03)


def test_one_video_has_no_interval() -> None:
    assert len(resampled_sums(np.ones((1, 2)), 100, seed=0)) == 0
    assert Interval.of(np.zeros(0)) is None
    assert Interval.of(np.array([0.5, np.nan])) is None


def test_intervals_hold_the_score_and_are_the_same_for_the_same_seed() -> None:
    labels, found = made_set()
    first, again = (evaluate(labels, found, config=EvaluationConfig(seed=3)) for _ in range(2))
    assert first == again
    for row in (*first["relative"].values(), *first["absolute"].values()):
        low, high = row["f1_interval"]
        assert low <= row["f1"] <= high


def test_a_system_does_not_differ_from_itself() -> None:
    labels, found = made_set()
    for difference in evaluate(labels, found, found)["difference"].values():
        assert difference["f1"] == 0.0
        assert difference["interval"] == Interval(0.0, 0.0)


def test_a_paired_difference_is_narrower_than_its_parts() -> None:
    labels, found = made_set()
    worse = {name: video.times if int(name) else video.times[:1] for name, video in found.videos.items()}
    evaluation = evaluate(labels, found, as_prediction_set(worse))
    paired = evaluation["difference"]["absolute 0.25"]["interval"]
    whole = evaluation["absolute"]["0.25"]["f1_interval"]
    assert paired.high - paired.low < whole.high - whole.low


def test_no_resamples_give_no_intervals() -> None:
    labels, found = made_set(3)
    report = evaluate(labels, found, config=EvaluationConfig(resamples=0))
    assert report["relative"]["average"]["f1_interval"] is None
    assert all(skill["interval"] is None for skill in report["skill"].values())
