"""The qualitative figure: what it counts, where frames stand, and that all of it can be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from ongebd.data.label_set import VideoLabels
from ongebd.errors import ConfigError
from ongebd.lab.evaluation.figure_style import INCHES, Width
from ongebd.lab.evaluation.matching import count_matches
from ongebd.lab.experiments.figures import qualitative as module
from ongebd.lab.experiments.figures.judging import judge, tolerance_of
from ongebd.lab.experiments.figures.qualitative import part_of
from ongebd.lab.experiments.figures.tracing import MethodTrace
from ongebd.types import ImageU8

LENGTH = 10.0
seconds = st.lists(st.integers(0, 100).map(lambda tenth: tenth / 10), max_size=6, unique=True).map(sorted)


def labels_of(*annotators: list[float]) -> VideoLabels:
    return VideoLabels("clip", LENGTH, tuple(np.array(times, np.float64) for times in annotators))


def watched(name: str, frames: int = 240, unit: str = "score", seed: int = 0) -> MethodTrace:
    """A stream of made scores without a threshold at its beginning."""
    rng = np.random.default_rng(seed)
    time, score = np.arange(frames) * LENGTH / frames, rng.gamma(2.0, 0.02, frames)
    threshold = np.where(time < 0.5, np.nan, 0.1)
    return MethodTrace(name, unit, time, score, threshold, time[score > threshold], LENGTH)


@pytest.fixture
def draw(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Figure]:
    """Draws traces with made frames and raters."""

    def draw(
        *traces: MethodTrace,
        raters: int = 3,
        shape: tuple[int, int] = (90, 160),
        length: float = LENGTH,
        scenes: int = 1,
        **more: Any,
    ) -> Figure:
        def frames(_: object, times: list[float]) -> list[ImageU8]:
            return [np.full((*shape, 3), 12 * number, np.uint8) for number in range(len(times))]

        monkeypatch.setattr(module, "frames_at", frames)
        marks = [[1.0 + 0.2 * rater, 5.0, 9.5] for rater in range(raters)]
        labels = replace(labels_of(*marks), duration=length)
        return module.qualitative([module.Scene("clip.mp4", labels, traces)] * scenes, **more)

    return draw


@given(seconds, seconds, seconds, st.floats(0.05, 2.0))
def test_right_false_and_missed_are_those_of_the_official_rule(
    first: list[float], second: list[float], found: list[float], tolerance: float
) -> None:
    labels, times = labels_of(first, second), np.array(found, np.float64)
    counts = count_matches([labels.boundaries], [times], np.array([[tolerance]]))
    result = judge(times, labels, tolerance)
    assert int(result.right.sum()) == int(counts.tp[0, 0])
    assert int(result.right.sum()) + len(result.missed) == int(counts.positives[0, 0])
    assert len(result.times) == int(counts.detections[0, 0])


def test_boundaries_outside_the_labelled_part_are_not_judged() -> None:
    result = judge(np.array([-0.1, 1.0, 10.5]), labels_of([1.0]), 0.5)
    assert result.times.tolist() == [1.0]
    assert str(result) == "1 right, 0 false, 0 missed"


def test_a_part_counts_what_it_shows_and_is_judged_in_the_whole() -> None:
    whole = judge(np.array([1.0, 4.0, 9.0]), labels_of([1.2, 5.9, 9.0]), 0.5)
    assert str(whole.between(3.0, 7.0)) == "0 right, 1 false, 1 missed"
    assert str(whole.between(8.0, 10.0)) == "1 right, 0 false, 0 missed"


LONG = "a method with a name so long that nobody would want to read all of it above a panel"


@pytest.mark.parametrize("width", INCHES)
@pytest.mark.parametrize(
    ("traces", "options"),
    [
        pytest.param([watched("ours"), watched("baseline", seed=1)], {}, id="two"),
        pytest.param([watched(LONG)], {"raters": 1}, id="long names"),
        pytest.param([watched("ours")], {"raters": 12, "shape": (160, 90)}, id="upright"),
        pytest.param([watched("ours")], {"start": 2.0, "end": 2.5}, id="part"),
        pytest.param([watched("_$x$_")], {}, id="marks of matplotlib"),
        pytest.param([watched("still", frames=1)], {}, id="one frame"),
        pytest.param([watched("ours"), watched("baseline", seed=1)], {"scenes": 4}, id="four scenes"),
    ],
)
def test_all_letters_can_be_read(
    draw: Callable[..., Figure],
    traces: list[MethodTrace],
    options: dict[str, Any],
    width: Width,
    check_letters: Callable[[Figure], None],
) -> None:
    figure = draw(*traces, width=width, **options)
    check_letters(figure)
    assert figure.get_figwidth() == INCHES[width]


def test_frames_keep_their_shape_and_stand_above_their_moments(draw: Callable[..., Figure]) -> None:
    for shape in ((90, 160), (160, 90)):
        figure = draw(watched("ours"), shape=shape, start=2.0, end=6.0)
        images, panel = figure.axes[0].images, figure.axes[2]
        assert len(images) == 8
        for number, image in enumerate(images):
            box = image.get_window_extent()
            assert box.height / box.width == pytest.approx(shape[0] / shape[1], rel=1e-3)
            middle = panel.transData.inverted().transform(((box.x0 + box.x1) / 2, 0))[0]
            assert middle == pytest.approx(2.25 + 0.5 * number, abs=1e-3)


def test_the_axis_is_called_by_what_is_drawn(
    draw: Callable[..., Figure], texts_of: Callable[[Figure], list[str]]
) -> None:
    figure = draw(watched("ours", unit="error ε"), watched("other"))
    assert {"error ε", "score", "time (s)", "3 raters", "missed"} <= set(texts_of(figure))
    assert "ours:" in " ".join(texts_of(figure))


def test_each_scene_has_its_own_frames_raters_and_panels(draw: Callable[..., Figure]) -> None:
    figure = draw(watched("ours"), watched("other"), scenes=2)
    assert [len(axes.images) for axes in figure.axes] == [8, 0, 0, 0, 8, 0, 0, 0]
    assert [axes.get_title(loc="left")[:5] for axes in figure.axes[2::4]] == ["ours:", "ours:"]
    assert [bool(axes.get_xlabel()) for axes in figure.axes] == [False, False, False, True] * 2
    assert len(figure.legends) == 1


def test_a_figure_ends_where_labels_or_video_end(draw: Callable[..., Figure]) -> None:
    assert draw(watched("ours"), length=7.5).axes[0].get_xlim() == (0.0, 7.5)
    assert draw(watched("ours"), length=20.0).axes[0].get_xlim() == (0.0, LENGTH)


def test_the_tolerance_is_the_papers_strictest_where_none_is_given() -> None:
    assert tolerance_of(labels_of([1.0]), None) == 0.5
    assert tolerance_of(labels_of([1.0]), 0.2) == 0.2
    with pytest.raises(ConfigError, match="tolerance is 0"):
        tolerance_of(labels_of([1.0]), 0)


def test_the_part_ends_where_the_labels_do() -> None:
    assert part_of("clip.mp4", 24.0, None, None) == (0.0, 24.0)
    assert part_of("clip.mp4", 24.0, 3, 90) == (3.0, 24.0)
    for start, end in ((5.0, 5.0), (-1.0, 4.0), (30.0, None)):
        with pytest.raises(ConfigError, match=r"clip\.mp4: nothing to show"):
            part_of("clip.mp4", 24.0, start, end)
