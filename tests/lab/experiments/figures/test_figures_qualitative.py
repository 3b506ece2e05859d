"""The qualitative figure: what it counts, what it shades, and that all of it can be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from ongebd.data.label_set import VideoLabels
from ongebd.detector import StreamConfig
from ongebd.errors import ConfigError
from ongebd.estimator import BoundaryDiscriminator
from ongebd.lab.evaluation.matching import count_matches
from ongebd.lab.experiments.figures.judging import agreement, judge, tolerance_of
from ongebd.lab.experiments.figures.qualitative import Scene, part_of, qualitative
from ongebd.lab.experiments.figures.style import INCHES, Width
from ongebd.lab.experiments.figures.tracing import MethodTrace
from ongebd.types import Boundary, Decision, Detection

LENGTH = 10.0
seconds = st.lists(st.integers(0, 100).map(lambda tenth: tenth / 10), max_size=6, unique=True).map(sorted)


def labels_of(*annotators: list[float]) -> VideoLabels:
    return VideoLabels("clip", LENGTH, tuple(np.array(times, np.float64) for times in annotators))


def watched(name: str, head: str | None = None, frames: int = 240, seed: int = 0) -> MethodTrace:
    """A stream of made errors through the real discriminator, with a boundary at each positive frame."""
    rng = np.random.default_rng(seed)
    discriminator = BoundaryDiscriminator(tau=2.0, delta=21, warmup=8, min_std=0.01)
    decisions, found = [], []
    for index, error in enumerate(rng.gamma(2.0, 0.02, frames)):
        time = index * LENGTH / frames
        discriminator.update(float(error))
        if discriminator.is_boundary:
            found.append(Boundary(time + 0.02, time, time + 0.04, discriminator.z))
        names = ("mean", "std", "z", "threshold", "is_boundary", "ready")
        values = (getattr(discriminator, each) for each in names)
        decisions.append(Decision(index, time, float(error), *values))
    return MethodTrace.of(name, Detection(found, decisions, LENGTH), StreamConfig(head=head, min_std=0.01))


def scene_of(
    *methods: MethodTrace, count: int = 8, raters: int = 3, shape: tuple[int, int] = (90, 160), **more: object
) -> Scene:
    pictures = tuple(np.full((*shape, 3), 12 * number, np.uint8) for number in range(count))
    marks = [[1.0 + 0.2 * rater, 5.0, 9.5] for rater in range(raters)]
    return Scene(labels_of(*marks), methods, pictures, **({"start": 0.0, "end": LENGTH} | more))  # type: ignore[arg-type]


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


@given(st.lists(seconds, min_size=1, max_size=4), st.floats(0.05, 3.0), st.floats(0.001, LENGTH - 0.001))
def test_the_shade_says_how_many_annotators_are_near(
    annotators: list[list[float]], tolerance: float, moment: float
) -> None:
    edges, share = agreement(labels_of(*annotators), tolerance)
    assert edges[0] == 0
    assert edges[-1] == LENGTH
    assert (np.diff(edges) > 0).all()
    if np.abs(edges - moment).min() < 1e-9:
        return
    near = [any(abs(mark - moment) < tolerance for mark in times) for times in annotators]
    assert share[np.searchsorted(edges, moment) - 1] == pytest.approx(np.mean(near))


def test_boundaries_outside_the_labelled_part_are_not_judge() -> None:
    result = judge(np.array([-0.1, 1.0, 10.5]), labels_of([1.0]), 0.5)
    assert result.times.tolist() == [1.0]
    assert str(result) == "1 right, 0 false, 0 missed"


def test_a_part_counts_what_it_shows_and_is_judged_in_the_whole() -> None:
    whole = judge(np.array([1.0, 4.0, 9.0]), labels_of([1.2, 5.9, 9.0]), 0.5)
    assert str(whole.between(3.0, 7.0)) == "0 right, 1 false, 1 missed"
    assert str(whole.between(8.0, 10.0)) == "1 right, 0 false, 0 missed"


def test_z_is_that_of_the_stream_and_its_threshold_is_tau() -> None:
    stream = watched("window-mean")
    assert stream.z is not None
    ready = np.isfinite(stream.z.score)
    assert 200 < ready.sum() < len(ready)
    assert np.isnan(stream.score.threshold[~ready]).all()
    assert stream.z.threshold[ready] == pytest.approx(2.0)
    above = stream.z.time[stream.z.score > stream.z.threshold]
    assert above.tolist() == stream.times("onset").tolist()


def test_a_long_curve_keeps_its_peaks_and_its_gaps() -> None:
    stream = watched("long", frames=9000)
    assert stream.z is not None
    drawn = stream.z.pooled()
    assert len(drawn.time) <= 2000
    assert np.nanmax(drawn.score) == np.nanmax(stream.z.score)
    assert np.isnan(drawn.score[0])
    part = stream.score.between(4.0, 6.0)
    assert part.time[0] < 4.0 <= part.time[1]
    assert part.time[-2] <= 6.0 < part.time[-1]


LONG = "a method with a name so long that nobody would want to read all of it above a panel"


@pytest.mark.parametrize("width", INCHES)
@pytest.mark.parametrize(
    "scene",
    [
        pytest.param(lambda: scene_of(watched("ours"), watched("baseline", "threshold", seed=1)), id="two"),
        pytest.param(lambda: scene_of(watched(LONG), raters=1, title=LONG + LONG), id="long names"),
        pytest.param(lambda: scene_of(watched("ours"), count=16, raters=12, shape=(160, 90)), id="upright"),
        pytest.param(lambda: scene_of(watched("ours"), start=2.0, end=2.5, title="part"), id="part"),
        pytest.param(lambda: scene_of(watched("_$x$_"), title="_hidden_"), id="marks of matplotlib"),
        pytest.param(lambda: scene_of(watched("still", frames=1)), id="one frame"),
    ],
)
def test_all_letters_can_be_read(
    scene: Callable[[], Scene], width: Width, check_letters: Callable[[Figure], None]
) -> None:
    figure = qualitative(scene(), width=width)
    check_letters(figure)
    assert figure.get_figwidth() == INCHES[width]


def test_the_axis_is_called_by_what_is_drawn(texts_of: Callable[[Figure], list[str]]) -> None:
    scene = scene_of(watched("ours"), watched("other", "threshold"))
    assert {"error ε", "score", "time (s)"} <= set(texts_of(qualitative(scene)))
    assert "ζ" in texts_of(qualitative(scene_of(watched("ours")), curve="z"))
    long = VideoLabels("long", 600.0, (np.array([300.0]),))
    assert "time (min:s)" in texts_of(qualitative(replace(scene, labels=long, end=600.0)))


def test_onsets_or_centres_are_judged_as_asked() -> None:
    stream = watched("ours")
    assert (stream.times("centre") - stream.times("onset")) == pytest.approx(0.02)


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
