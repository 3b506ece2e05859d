"""Floors and the human ceiling, between which a score stands; its interval over videos."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.data import LabelSet, PredictionSet, as_label_set, as_prediction_set, read_labels
from ongebd.errors import ConfigError
from ongebd.lab.evaluation import EvaluationConfig, evaluate, relative_distance
from ongebd.lab.evaluation.comparison import Comparison, compare
from ongebd.lab.evaluation.counts import Interval, resampled_sums
from ongebd.lab.evaluation.floors import (
    clock_floor,
    clock_times,
    each_annotator,
    most_consistent_annotator,
    random_floor,
    uniform_floor,
    uniform_times,
)
from ongebd.lab.evaluation.relative_distance import count_all, figure_values

Official = Callable[..., dict[str, dict[str, object]]]


def comparison_of(labels: dict[str, dict[str, object]], found: dict[str, list[float]]) -> Comparison:
    return compare(as_label_set(labels), as_prediction_set(found))


@pytest.fixture(scope="module")
def kinetics(shared: Path) -> LabelSet:
    return read_labels(shared / "labels/k400_mr345_minval_min_change_duration0.3.pkl")


@given(st.floats(0.1, 1000), st.floats(0.1, 50))
def test_a_clock_strikes_inside_the_video_only(duration: float, period: float) -> None:
    times = clock_times(duration, period)
    assert ((times > 0) & (times < duration)).all()
    assert len(times) == 0 or times[-1] + period >= duration * (1 - 1e-12)


def test_a_clock_without_a_period_is_refused() -> None:
    with pytest.raises(ConfigError, match="period must be above 0"):
        clock_times(10.0, 0.0)


def test_uniform_points_cut_a_video_into_equal_parts() -> None:
    parts = np.diff([0.0, *uniform_times(7.0, 4), 7.0])
    np.testing.assert_allclose(parts, 7 / 5)
    assert len(uniform_times(7.0, 0)) == 0


def test_the_clock_finds_the_period_that_the_labels_have(official: Official) -> None:
    labels = official(v=(10.0, [[2.5, 5.0, 7.5]]), w=(5.0, [[2.5]]))
    floor = clock_floor(comparison_of(labels, {"v": [1.0], "w": []}))
    assert floor.figures["absolute 0.1"].f1 == 1.0
    assert floor.figures["absolute 0.1"].detail == "every 2.5 s"


def test_each_figure_has_its_own_best_period(official: Official) -> None:
    labels = official(v=(10.0, [[1.0, 2.0, 3.0, 4.0, 5.0]]))
    comparison = comparison_of(labels, {"v": [1.0]})
    best = clock_floor(comparison).figures
    for period in (0.5, 1.0, 1.5, 2.0, 3.0):
        f1 = count_all(comparison.with_detections([clock_times(10.0, period)])).totals().f1
        assert all(float(value) <= best[figure].f1 for figure, value in figure_values(f1).items())


def test_uniform_and_random_have_the_systems_own_count_in_each_video(official: Official) -> None:
    comparison = comparison_of(
        official(v=(10.0, [[2.0]]), w=(10.0, [[2.0]])), {"v": [1.0, 2.0, 3.0], "w": []}
    )
    for floor, runs in ((uniform_floor(comparison), 1), (random_floor(comparison, 0, seeds=3), 3)):
        assert floor.figures["average"].counts.detections[:, 0].tolist() == [3 * runs, 0]


def test_the_random_floor_is_the_mean_of_its_seeds_and_the_same_each_time(official: Official) -> None:
    comparison = comparison_of(official(v=(10.0, [[2.0, 5.0]])), {"v": [1.0, 2.0, 3.0]})
    first, again, other = (random_floor(comparison, seed) for seed in (0, 0, 1))
    assert first.curve.tolist() == again.curve.tolist()
    assert first.curve.tolist() != other.curve.tolist()


def test_four_random_points_score_as_published_here(kinetics: LabelSet) -> None:
    averages, firsts = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        points = {name: rng.uniform(0, video.duration, 4) for name, video in kinetics.videos.items()}
        score = relative_distance(kinetics, points)
        averages.append(score.average)
        firsts.append(score.f1[0])
    assert np.mean(firsts) == pytest.approx(0.514, abs=0.005)
    assert np.mean(averages) == pytest.approx(0.786, abs=0.005)


def test_annotators_score_the_golden_figures_against_the_others(kinetics: LabelSet) -> None:
    comparison = compare(kinetics, as_prediction_set({name: [] for name in kinetics.videos}))
    # Labels that take the first annotator for the most consistent one.
    first_best = {
        name: replace(video, annotator_consistency=(1.0,) + (0.0,) * (len(video.boundaries) - 1))
        for name, video in kinetics.videos.items()
    }
    for labels, first, average in (
        (replace(kinetics, videos=first_best), 0.810, 0.901),
        (kinetics, 0.873, 0.935),
    ):
        human = most_consistent_annotator(comparison, labels)
        assert human is not None
        assert human.n == 1964
        values = figure_values(human.f1)
        assert (round(float(values["relative 0.05"]), 3), round(float(values["average"]), 3)) == (
            first,
            average,
        )


def test_every_annotator_is_left_out_in_turn(official: Official) -> None:
    labels = official(v=(10.0, [[2.0], [2.1], [8.0]]), alone=(10.0, [[5.0]]))
    human = each_annotator(comparison_of(labels, {"v": [], "alone": []}))
    assert human is not None
    assert human.n == 1
    assert human.counts.detections[:, 0].tolist() == [3, 0]
    assert human.counts.tp[:, 0].tolist() == [2, 0]  # 2.0 and 2.1 find each other; 8.0 finds nobody


def test_single_annotators_have_no_ceiling(official: Official) -> None:
    labels = official(v=(10.0, [[2.0]]))
    comparison = comparison_of(labels, {"v": [2.0]})
    assert each_annotator(comparison) is None
    assert most_consistent_annotator(comparison, as_label_set(labels)) is None


def test_labels_without_consistency_have_no_most_consistent_annotator(official: Official) -> None:
    labels = official(v=(10.0, [[2.0], [3.0]]))
    del labels["v"]["f1_consis"]
    comparison = comparison_of(labels, {"v": [2.0]})
    assert each_annotator(comparison) is not None
    assert most_consistent_annotator(comparison, as_label_set(labels)) is None


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
