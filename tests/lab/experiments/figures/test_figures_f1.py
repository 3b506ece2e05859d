"""The F1 curves: the evaluation's own figures, the paper's printed ones, and a legend that fits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure

from ongebd.data import LabelSet, PredictionSet, VideoLabels, VideoPrediction
from ongebd.errors import ConfigError
from ongebd.lab.evaluation.evaluation import evaluate
from ongebd.lab.evaluation.figures import ABSOLUTE
from ongebd.lab.evaluation.system import EvaluationConfig, SystemResult
from ongebd.lab.experiments.figures import Band, F1Lines, f1_curves, lines_of_result, printed_lines
from ongebd.lab.experiments.figures.f1_curves import PLACES, columns_of_legend, limits_of_result
from ongebd.lab.experiments.figures.style import WIDTHS, Width
from ongebd.lab.experiments.printed import PRINTED


def result_of(*, decided: bool = True, resamples: int = 50) -> SystemResult:
    rng = np.random.default_rng(0)
    videos, predictions = {}, {}
    for number in range(12):
        marks = np.sort(rng.uniform(0.5, 9.5, 4))
        name = f"video{number}"
        videos[name] = VideoLabels(name, 10.0, (marks, marks + 0.1))
        times = np.clip(marks[:3] + rng.normal(0, 0.3, 3), 0, 10)
        predictions[name] = VideoPrediction(times, times + 0.2 if decided else None, times)
    evaluation = evaluate(
        LabelSet(videos), PredictionSet(predictions), config=EvaluationConfig(resamples=resamples)
    )
    return evaluation.systems[0]


def test_a_methods_lines_are_those_of_its_evaluation() -> None:
    result = result_of()
    lines = lines_of_result("ours", result)
    assert lines.relative is not None
    assert lines.absolute is not None
    assert lines.delay is not None
    assert result.within_delay is not None
    assert lines.relative.f1.tolist() == result.scores.f1[:10].tolist()
    assert lines.absolute.f1.tolist() == result.scores.f1[10:].tolist()
    assert lines.delay.f1.tolist() == result.within_delay.f1.tolist()
    assert lines.relative.low is not None
    assert lines.relative.low.tolist() == np.percentile(result.samples.f1[:, :10], 2.5, axis=0).tolist()


def test_what_is_not_known_has_no_line() -> None:
    lines = lines_of_result("ours", result_of(decided=False, resamples=0))
    assert lines.delay is None
    assert lines.relative is not None
    assert lines.relative.low is None
    assert len(f1_curves([lines]).figure.axes) == 2


def test_the_clock_and_the_annotators_stand_beside() -> None:
    clock, humans = limits_of_result(result := result_of())
    assert clock.kind == "floor"
    assert clock.absolute is not None
    assert clock.absolute.f1[1] == result.floors[0].figures["absolute 0.25"].f1
    assert (humans.kind, humans.delay) == ("ceiling", None)


def test_printed_values_are_the_papers_and_a_dash_is_a_gap() -> None:
    ours = printed_lines("online-kinetics", "ESTimator")
    assert ours.relative is not None
    assert ours.relative.f1.tolist() == list(PRINTED["online-kinetics"].rows["ESTimator"][:10])
    gaps = printed_lines("offline-tapos", "EfficientGEBD")
    assert gaps.relative is not None
    assert np.isnan(gaps.relative.f1).sum() == 6
    with pytest.raises(ConfigError, match="'fps' has no ten thresholds"):
        printed_lines("fps", "ESTimator")


def test_an_interval_of_seeds_holds_the_middle_95_percent() -> None:
    band = Band.of(np.zeros(4), np.arange(101.0)[:, None] * np.ones(4))
    assert band.low is not None
    assert band.high is not None
    assert (band.low[0], band.high[0]) == (2.5, 97.5)
    assert Band.of(np.zeros(4), np.zeros((1, 4))).low is None


def method(name: str, start: float = 0.3) -> F1Lines:
    bands = (
        Band(np.linspace(start, 0.8, len(places)), np.full(len(places), 0.2), np.full(len(places), 0.9))
        for places in PLACES.values()
    )
    return F1Lines(name, *bands)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("longest", ["short", "a method with a name that is much too long for a legend"])
def test_all_letters_can_be_read(
    width: Width,
    longest: str,
    check_letters: Callable[[Figure], None],
    texts_of: Callable[[Figure], list[str]],
) -> None:
    lines = [method(f"{number} {longest}") for number in range(6)] + [method("_hidden_")]
    figure = f1_curves([*lines, printed_lines("online-tapos", "MiniROAD-BC")], width=width).figure
    check_letters(figure)
    assert {"relative distance", "tolerance (s)"} <= set(texts_of(figure))
    assert sum("MiniROAD-BC (printed)" in text for text in texts_of(figure)) == 1
    assert sum("_hidden_" in text for text in texts_of(figure)) == 1


def test_only_the_panels_that_are_asked_for_are_drawn() -> None:
    assert len(f1_curves([method("ours")], against=["delay"]).figure.axes) == 1
    assert PLACES["absolute"] == tuple(f"{seconds:g}" for seconds in ABSOLUTE)


def test_a_legend_of_long_names_has_few_columns() -> None:
    assert columns_of_legend(6.875, ["ours"] * 9) == 4
    assert columns_of_legend(3.25, ["x" * 60] * 9) == 1
    assert columns_of_legend(6.875, ["ours"]) == 1


def test_what_cannot_be_told_apart_or_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match="8 lines cannot be told apart"):
        f1_curves([method(str(number)) for number in range(8)])
    with pytest.raises(ConfigError, match="no F1 to draw"):
        f1_curves([printed_lines("online-tapos", "ESTimator")], against=["delay"])
    with pytest.raises(ConfigError, match="no panel is called 'time'"):
        f1_curves([method("ours")], against=["time"])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="ours: 10 values are wanted"):
        F1Lines("ours", Band(np.zeros(4)))
