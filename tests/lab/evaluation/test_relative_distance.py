"""The official score: golden figures, the rule's corners, and properties that always hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ongebd.data import LabelSet, PredictionSet, read_ids, read_labels
from ongebd.data.prediction_set import VideoPrediction
from ongebd.errors import ConfigError, LabelError
from ongebd.lab.evaluation import THRESHOLDS, relative_distance
from ongebd.lab.evaluation.floors import clock_times

Labels = dict[str, dict[str, object]]
KINETICS = "labels/k400_mr345_minval_min_change_duration0.3.pkl"

# Times on a grid, so that ties in distance, and distances equal to the tolerance, are common.
grid = st.integers(0, 40).map(lambda step: step / 4)
rows = st.lists(grid, max_size=6)
videos = st.fixed_dictionaries(
    {
        "video_duration": st.sampled_from([5.0, 10.0, 3.7]),
        "f1_consis_avg": st.sampled_from([0.2, 0.3, 0.9]),
        "substages_timestamps": st.lists(rows, min_size=1, max_size=4),
    }
)
label_sets = st.dictionaries(st.sampled_from("abcdef"), videos, min_size=1)
found = st.lists(st.integers(-4, 48).map(lambda step: step / 4), max_size=7)
predictions = st.dictionaries(st.sampled_from("abcdef"), found)
quick = settings(max_examples=150)


def scorable(labels: Labels, given: dict[str, list[float]]) -> bool:
    """Whether the filter leaves a video, and a prediction has a label."""
    kept = any(video["f1_consis_avg"] >= 0.3 for video in labels.values())  # type: ignore[operator]
    return kept and (not given or any(name in labels for name in given))


def plain_counts(
    labels: Mapping[str, Mapping[str, object]],
    predictions: Mapping[str, Sequence[float]],
    threshold: float,
    min_consistency: float = 0.3,
) -> tuple[int, int, int]:
    """(true positives, positives, detections) at one threshold: the official rule, loop by loop."""
    hits = positives = detections = 0
    for name, video in labels.items():
        if video.get("f1_consis_avg", 1.0) < min_consistency:  # type: ignore[operator]
            continue
        rows, duration = video["substages_timestamps"], video["video_duration"]
        found = [time for time in predictions.get(name, []) if 0 <= time <= duration]  # type: ignore[operator]
        if not found:
            positives += len(rows[0])  # type: ignore[index]
            continue
        detections += len(found)
        best = (-1.0, 0, 0)
        for boundaries in rows:  # type: ignore[attr-defined]
            free, hit = list(found), 0
            for boundary in boundaries:
                distances = [abs(boundary - time) for time in free]
                if distances and min(distances) <= threshold * duration:  # type: ignore[operator]
                    hit += 1
                    del free[distances.index(min(distances))]
            recall = hit / len(boundaries) if boundaries else 1
            precision = hit / len(found)
            f1 = 2 * recall * precision / (recall + precision) if recall + precision else 0
            if f1 > best[0]:
                best = (f1, hit, len(boundaries))
        hits, positives = hits + best[1], positives + best[2]
    return hits, positives, detections


@pytest.fixture(scope="module")
def kinetics(shared: Path) -> LabelSet:
    return read_labels(shared / KINETICS)


@pytest.fixture(scope="module")
def tapos(shared: Path) -> LabelSet:
    labels = read_labels(shared / "labels/tapos_gt_val.pkl", "tapos")
    return labels.restrict(read_ids(shared / "labels/tapos_official_val_ids.csv"), "the official ids")


def sixths(labels: LabelSet) -> dict[str, list[float]]:
    return {name: [video.duration * i / 6 for i in range(1, 6)] for name, video in labels.videos.items()}


def test_the_40_vectors_are_reproduced_in_every_count(shared: Path) -> None:
    vectors = json.loads((shared / "vectors/reldis_vectors.json").read_text())
    score = relative_distance(vectors["gt"], vectors["pred"])
    expected = [vectors["expected"][str(threshold)] for threshold in THRESHOLDS]
    for name, key in (("tp", "tp"), ("positives", "num_pos"), ("detections", "num_det")):
        assert getattr(score, name).tolist() == [row[key] for row in expected]
    for name in ("f1", "precision", "recall"):
        np.testing.assert_allclose(getattr(score, name), [row[name] for row in expected], rtol=0, atol=1e-12)


def test_kinetics_minval_scores_the_golden_figures(kinetics: LabelSet) -> None:
    golden = [0.661341, 0.834512, 0.876279, 0.889222, 0.898578]
    golden += [0.905682, 0.908113, 0.910408, 0.914005, 0.916395]
    score = relative_distance(kinetics, sixths(kinetics))
    np.testing.assert_allclose(score.f1, golden, rtol=0, atol=1e-6)
    assert score.average == pytest.approx(0.871453, abs=1e-6)
    assert (score.n, score.comparison.filtered) == (1964, 36)
    unfiltered = relative_distance(kinetics, sixths(kinetics), min_consistency=None)
    assert unfiltered.average == pytest.approx(0.869435, abs=1e-6)


@pytest.mark.parametrize(
    ("period", "first", "average"), [(1.0, 0.731, 0.786), (1.5, 0.696, 0.877), (2.0, 0.590, 0.861)]
)
def test_a_clock_on_kinetics_scores_as_published_here(
    kinetics: LabelSet, period: float, first: float, average: float
) -> None:
    clock = {name: clock_times(video.duration, period) for name, video in kinetics.videos.items()}
    score = relative_distance(kinetics, clock)
    assert (round(float(score.f1[0]), 3), round(score.average, 3)) == (first, average)


@pytest.mark.parametrize(("period", "first", "average"), [(2.0, 0.396, 0.561), (3.0, 0.390, 0.606)])
def test_a_clock_on_tapos_scores_as_published_here(
    tapos: LabelSet, period: float, first: float, average: float
) -> None:
    clock = {name: clock_times(video.duration, period) for name, video in tapos.videos.items()}
    score = relative_distance(tapos, clock)
    assert score.n == 1337
    assert score.positives[0] == 3312
    assert (round(float(score.f1[0]), 3), round(score.average, 3)) == (first, average)


def test_tapos_in_frames_has_a_length_of_end_minus_start_plus_one(tapos: LabelSet) -> None:
    clock = {name: VideoPrediction(clock_times(video.duration, 2.0)) for name, video in tapos.videos.items()}
    frames = PredictionSet(clock).in_frames(tapos)
    score = relative_distance(tapos, frames, unit="frames")
    assert score.comparison.lengths.sum() == 436_888
    assert (round(float(score.f1[0]), 3), round(score.average, 3)) == (0.397, 0.562)


CORNERS: dict[str, tuple[list[list[float]], list[float], float, tuple[int, int, int]]] = {
    # annotators' boundaries in a video of 10 s, detections, threshold: tp, positives, detections
    "a tolerance includes its end": ([[2.0]], [2.5], 0.05, (1, 1, 1)),
    "and nothing beyond": ([[2.0]], [np.nextafter(2.5, 3)], 0.05, (0, 1, 1)),
    "greedy in the annotator's order": ([[2.0, 3.0]], [2.4, 1.0], 0.1, (1, 2, 2)),
    "another order can find more": ([[3.0, 2.0]], [2.4, 1.0], 0.1, (2, 2, 2)),
    "detections outside don't count": ([[1.0, 2.0]], [-0.1, 10.1], 0.5, (0, 2, 0)),
    "detections at 0 and at the end do": ([[1.0]], [0.0, 10.0], 0.05, (0, 1, 2)),
    "repeated detections count each": ([[1.0, 1.2]], [1.1, 1.1, 1.1], 0.05, (2, 2, 3)),
    "the best annotator is chosen": ([[], [5.0]], [5.0], 0.05, (1, 1, 1)),
    "the first on ties": ([[], [5.0]], [9.0], 0.05, (0, 0, 1)),
}


@pytest.mark.parametrize("name", CORNERS)
def test_corners_of_the_rule(official: Callable[..., Labels], name: str) -> None:
    rows, detections, threshold, expected = CORNERS[name]
    score = relative_distance(official(v=(10.0, rows)), {"v": detections}, [threshold])
    assert (score.tp.item(), score.positives.item(), score.detections.item()) == expected


def test_a_missing_video_counts_annotator_0_or_is_skipped(official: Callable[..., Labels]) -> None:
    labels = official(v=(10.0, [[1.0, 2.0], [1.0]]), w=(10.0, [[5.0]]))
    counted = relative_distance(labels, {"w": [5.0]}, [0.1])
    skipped = relative_distance(labels, {"w": [5.0]}, [0.1], missing="skip")
    assert (counted.positives.tolist(), counted.n, counted.comparison.missing) == ([3], 2, 1)
    assert (skipped.positives.tolist(), skipped.n, skipped.comparison.skipped) == ([1], 1, 1)


def test_recall_is_1_and_f1_is_0_if_there_is_nothing_to_find(official: Callable[..., Labels]) -> None:
    score = relative_distance(official(v=(10.0, [[]])), {"v": [5.0]}, [0.05])
    assert (score.recall.item(), score.precision.item(), score.f1.item()) == (1.0, 0.0, 0.0)


def test_labels_without_consistency_are_not_filtered(official: Callable[..., Labels]) -> None:
    labels = official(v=(10.0, [[5.0]]))
    del labels["v"]["f1_consis_avg"]
    assert relative_distance(labels, {"v": [5.0]}).n == 1


def test_in_frames_the_last_frame_is_the_last_admissible_one(official: Callable[..., Labels]) -> None:
    labels = official(v=(10.0, [[2.0]]))
    score = relative_distance(labels, {"v": [50, 249, 250]}, [0.0], unit="frames")
    assert (score.tp.tolist(), score.detections.tolist()) == ([1], [2])


@quick
@given(label_sets, predictions)
def test_every_count_is_that_of_the_rule_as_it_reads(
    labels: Labels, predictions: dict[str, list[float]]
) -> None:
    if not scorable(labels, predictions):
        with pytest.raises(LabelError):
            relative_distance(labels, predictions)
        return
    score = relative_distance(labels, predictions)
    ours = list(zip(score.tp.tolist(), score.positives.tolist(), score.detections.tolist(), strict=True))
    assert ours == [plain_counts(labels, predictions, threshold) for threshold in THRESHOLDS]


@quick
@given(label_sets, predictions, st.randoms())
def test_the_order_and_the_names_of_videos_do_not_matter(
    labels: Labels, predictions: dict[str, list[float]], random: Any
) -> None:
    if not scorable(labels, predictions):
        return
    names = dict(zip("abcdef", random.sample(range(100), 6), strict=True))
    shuffled = random.sample(list(labels), len(labels))
    renamed = {f"video {names[name]}": labels[name] for name in shuffled}
    moved = {f"video {names[name]}": times for name, times in reversed(predictions.items())}
    before, after = relative_distance(labels, predictions), relative_distance(renamed, moved)
    for name in ("tp", "positives", "detections", "f1"):
        assert getattr(before, name).tolist() == getattr(after, name).tolist()


@quick
@given(st.lists(st.integers(0, 20).map(lambda step: step / 4), min_size=1, max_size=6), found)
def test_a_far_away_detection_never_raises_precision(
    boundaries: list[float], detections: list[float]
) -> None:
    labels = {"v": {"video_duration": 100.0, "substages_timestamps": [boundaries]}}
    before = relative_distance(labels, {"v": detections})
    after = relative_distance(labels, {"v": [*detections, 90.0]})
    assert (after.precision <= before.precision).all()
    assert (after.tp == before.tp).all()


def test_with_several_annotators_a_false_alarm_can_change_the_chosen_one_and_raise_precision(
    official: Callable[..., Labels],
) -> None:
    labels = official(v=(10.0, [[1.0], [1.0, 3.0, 7.0, 8.5]]))  # why the property above has one annotator
    before = relative_distance(labels, {"v": [1.0, 3.0]}, [0.05])
    after = relative_distance(labels, {"v": [1.0, 3.0, 5.0]}, [0.05])
    assert before.precision.tolist() == [1 / 2]
    assert after.precision.tolist() == [2 / 3]


@quick
@given(
    st.lists(st.lists(grid, max_size=6), min_size=1, max_size=4),
    st.lists(st.floats(0, 2), min_size=1, max_size=5),
)
def test_a_perfect_prediction_scores_1_at_every_tolerance(
    rows: list[list[float]], thresholds: list[float]
) -> None:
    perfect = max(rows, key=len)
    if not perfect:
        return
    labels = {"v": {"video_duration": 10.0, "substages_timestamps": rows}}
    assert relative_distance(labels, {"v": perfect}, thresholds).f1.tolist() == [1.0] * len(thresholds)


def test_a_set_of_long_and_short_videos_is_scored_in_pieces_that_fit() -> None:
    rng = np.random.default_rng(0)
    labels: Labels = {}
    given: dict[str, list[float]] = {}
    for index in range(60):
        count = 2000 if index == 7 else int(rng.integers(1, 9))
        labels[str(index)] = {
            "video_duration": 600.0,
            "substages_timestamps": [rng.uniform(0, 600, 9).tolist()],
        }
        given[str(index)] = rng.uniform(0, 600, count).tolist()
    score = relative_distance(labels, given, [0.01, 0.1])
    ours = list(zip(score.tp.tolist(), score.positives.tolist(), score.detections.tolist(), strict=True))
    assert ours == [plain_counts(labels, given, threshold) for threshold in (0.01, 0.1)]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"v": [1.0, float("nan")]}, "prediction 'v', position 2: nan is not a finite number"),
        ({"nobody": [1.0]}, r"none of its 1 ids is among the 1 to score"),
        ({"v": "1 2"}, "must be a list of numbers"),
    ],
)
def test_predictions_that_cannot_be_scored_are_refused(
    official: Callable[..., Labels], given: Any, complaint: str
) -> None:
    with pytest.raises(LabelError, match=complaint):
        relative_distance(official(v=(10.0, [[1.0]])), given)


def test_a_set_that_the_filter_leaves_empty_is_refused(official: Callable[..., Labels]) -> None:
    with pytest.raises(LabelError, match=r"no video has f1_consis_avg of 0\.95 or more"):
        relative_distance(official(v=(10.0, [[1.0]])), {"v": [1.0]}, min_consistency=0.95)


@pytest.mark.parametrize("thresholds", [[], [-0.1], [float("nan")]])
def test_thresholds_that_mean_nothing_are_refused(
    official: Callable[..., Labels], thresholds: list[float]
) -> None:
    with pytest.raises(ConfigError, match="thresholds must be"):
        relative_distance(official(v=(10.0, [[1.0]])), {"v": [1.0]}, thresholds)
