from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from footage.films import Film
from footage.listening import Found, Listening
from footage.methods import method_of, unique
from footage.scores import clock_row, delay_figures, difference, prediction_set, ratio, row

import ongebd
from ongebd.data import LabelSet, VideoLabels
from ongebd.detector.recipes import RECIPES
from ongebd.errors import ConfigError
from ongebd.lab.evaluation.figures import ABSOLUTE
from ongebd.types import Boundary


def as_rows(found: Found) -> list[tuple[float, float, float]]:
    return list(zip(found.times.tolist(), found.onsets.tolist(), found.decided.tolist(), strict=True))


def as_detected(boundaries: list[Boundary]) -> list[tuple[float, float, float]]:
    return [(each.time, each.onset, each.decided) for each in boundaries]


@pytest.fixture
def film(make_video: Callable[..., Path], make_scene: Callable[..., np.ndarray], tmp_path: Path) -> Film:
    pictures = [scene for scene in map(make_scene, (1, 2, 3)) for _ in range(30)]
    return Film("made", make_video(tmp_path / "made.mp4", pictures, rate=24))


@pytest.mark.parametrize("name", ["window-mean", "clock:1", "scenedetect-adaptive", "scenedetect-content"])
def test_what_is_found_is_what_detect_finds_also_from_what_was_kept(
    name: str, film: Film, tmp_path: Path
) -> None:
    if RECIPES[name.partition(":")[0]].extra:
        pytest.importorskip("scenedetect")
    method = method_of(name)
    expected = as_detected(ongebd.detect(film.path, name).boundaries)
    assert expected
    for _ in range(2):
        assert as_rows(Listening(tmp_path / "work").all([method], [film])[name]["made"]) == expected


def test_an_onset_is_told_when_its_frame_was_judged(film: Film, tmp_path: Path) -> None:
    pytest.importorskip("scenedetect")
    listening = Listening(tmp_path / "work")
    methods = [method_of("window-mean"), method_of("scenedetect-adaptive")]
    found = {label: of["made"] for label, of in listening.all(methods, [film]).items()}
    now = found["window-mean"]
    assert now.told is not None
    assert now.told.tolist() == now.onsets.tolist()
    later = found["scenedetect-adaptive"]  # which waits for two frames
    assert later.told is not None
    assert (later.told - later.onsets).tolist() == pytest.approx([2 / 24] * len(later.onsets))


def test_settings_and_labels_of_a_method() -> None:
    method = method_of("often=window-mean@tau=2,delta=16")
    assert (method.label, method.config.tau, method.config.delta) == ("often", 2.0, 16)
    assert method_of("window-mean@tau=5").label == "window-mean@tau=5"
    with pytest.raises(ConfigError, match="no setting=value"):
        method_of("window-mean@tau")
    with pytest.raises(ConfigError, match="called 'window-mean'"):
        unique([method_of("window-mean"), method_of("window-mean")])


def test_features_are_shared_where_view_and_rate_are_the_same() -> None:
    mean, last = method_of("window-mean"), method_of("persistence@tau=7")
    assert mean.view == last.view
    slower = mean.changed("slower", fps=12)
    assert slower.view != mean.view


LABELS = LabelSet(
    {
        "a": VideoLabels("a", 10.0, (np.array([2.0, 6.0]), np.array([2.0]))),
        "b": VideoLabels("b", 10.0, (np.array([5.0]),)),
    }
)


def moments(*times: float, late: float = 0.2) -> Found:
    centres = np.array(times)
    return Found(centres + 0.1, centres, centres + late, centres + 0.05)


def test_scores_are_of_the_moment_asked_for() -> None:
    found = {"a": moments(2.0, 6.0), "b": moments(5.0)}
    assert row("", LABELS, found, "onset").at(0.1)[2] == 1.0
    assert row("", LABELS, {n: moments(*(f.onsets + 0.1)) for n, f in found.items()}).at(0.1)[2] == 0.0
    assert prediction_set(found, "onset").videos["b"].decided == pytest.approx([5.05])


def test_delay_is_from_the_boundary_to_when_it_was_known() -> None:
    found = {"a": moments(2.0, 6.0), "b": moments(5.0, late=0.4)}
    assert delay_figures(LABELS, found, "centre")["median"].value == pytest.approx(0.2)
    assert delay_figures(LABELS, found, "onset")["median"].value == pytest.approx(0.05)
    unknown = {name: replace(each, told=None) for name, each in found.items()}
    assert delay_figures(LABELS, unknown, "onset") == {}


def test_the_clock_has_its_best_period_at_each_tolerance() -> None:
    clock, periods = clock_row(LABELS)
    assert len(periods) == len(ABSOLUTE)
    for column, period in enumerate(periods):
        alone = {n: moments(*np.arange(period, 10, period)) for n in LABELS.videos}
        same = row("", LABELS, {n: replace(f, times=f.onsets) for n, f in alone.items()})
        assert clock.f1()[column].value == pytest.approx(same.f1()[column].value)


def test_a_difference_is_paired() -> None:
    better = row("", LABELS, {"a": moments(1.9, 5.9), "b": moments(4.9)})
    worse = row("", LABELS, {"a": moments(1.9), "b": moments(8.0)})
    figure, above = difference(better, worse)[ABSOLUTE.index(0.25)]
    assert figure.value == pytest.approx(better.at(0.25)[2] - worse.at(0.25)[2])
    assert figure.interval is not None
    assert above > 0.5
    assert difference(better, better)[0][0].value == 0.0


def test_a_ratio_of_sums_is_not_the_mean_of_ratios() -> None:
    figure = ratio(np.array([1.0, 0.0]), np.array([1.0, 3.0]))
    assert figure.value == 0.25
    assert np.isnan(ratio(np.zeros(2), np.zeros(2)).value)
