"""What a notebook shows of a detection: one line, or HTML that is small, whole and safe; and a table."""

from __future__ import annotations

import copy
import pickle
import re
import sys
from dataclasses import fields, replace
from html.parser import HTMLParser
from time import monotonic

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ongebd
from ongebd.data.label_set import LabelSet, VideoLabels
from ongebd.data.prediction_set import PredictionSet, VideoPrediction
from ongebd.detector.trace import Album, thumbnail
from ongebd.errors import ConfigError, MissingExtraError
from ongebd.types import Boundary, Decision


@pytest.fixture(scope="module")
def film(tmp_path_factory, make_video, make_scene):
    scenes = [make_scene(seed, 160, 120) for seed in (11, 12, 13)]
    return make_video(tmp_path_factory.mktemp("film") / "film.mp4", np.repeat(scenes, 50, axis=0))


@pytest.fixture(scope="module")
def detection(film):
    return ongebd.detect(film, "window-mean", fps=8)


class Tags(HTMLParser):
    """The tags of a text, whose ends must match."""

    def __init__(self, text):
        super().__init__()
        self.seen, self.open, self.sources = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.sources += [value for name, value in attrs if name == "src"]
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag != "img":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


TAGS = {"div", "p", "b", "svg", "path", "text", "figure", "img", "figcaption", "table", "tr", "th", "td"}


def test_a_detection_and_all_that_is_public_print_as_one_line(detection):
    assert re.fullmatch(
        r"<Detection: 2 boundaries in 6\.0 s of \S+film\.mp4, model window-mean>", repr(detection)
    )
    model = ongebd.load("window-mean")
    frame = ongebd.Frame(0, 0, np.zeros((720, 1280, 3), np.uint8))
    for value in (detection, detection.decisions, model, frame, model.stream(), detection._album):
        assert "\n" not in repr(value)
        assert len(repr(value)) < 1000
    with ongebd.StreamPool(model) as pool:
        assert len(repr(pool)) + len(repr(pool.add())) < 300


def test_the_html_has_the_curve_the_pictures_and_the_table(detection):
    html = detection._repr_html_()
    tags = Tags(html)
    assert set(tags.seen) == TAGS
    assert tags.seen.count("img") == 2
    assert tags.seen.count("tr") == 3
    assert all(source.startswith("data:image/jpeg;base64,/9j/") for source in tags.sources)
    assert len(html) < 60_000
    for boundary in detection.boundaries:
        assert f">{boundary.time:.2f} s<" in html
    known = replace(detection.boundaries[0], peak=9.25, kind="cut")
    html = replace(detection, boundaries=[known])._repr_html_()
    assert ">9.25</td><td" in html
    assert ">cut</td>" in html


def test_the_pictures_are_those_after_the_cuts(detection, make_scene):
    for shot, seed in zip(detection._album.snapshots(detection.boundaries), (12, 13), strict=True):
        scene = thumbnail(make_scene(seed, 160, 120)).astype(int)
        assert np.abs(shot.picture - scene).mean() < 12


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>.mp4", "a' onload='x\".mp4", "a\n\x1b[1m\udcff\u202e"]
)
def test_text_from_outside_stays_text(detection, hostile):
    shown = replace(detection, source=hostile, model=hostile, warnings=[hostile * 100] * 50)
    tags = Tags(shown._repr_html_())
    assert set(tags.seen) == TAGS
    shown._repr_html_().encode()
    assert "\n" not in repr(shown)
    assert len(repr(shown)) < 300
    assert len(shown._repr_html_()) < len(detection._repr_html_()) + 5000


def test_a_file_object_is_named_and_can_be_pickled(film):
    with film.open("rb") as file:
        detection = ongebd.detect(file, "clock")
    assert pickle.loads(pickle.dumps(detection)) == detection
    assert "film.mp4" in repr(detection)


numbers = st.floats(allow_nan=True, allow_infinity=True)
boundaries = st.builds(Boundary, numbers, numbers, numbers, numbers)
decisions = st.builds(
    Decision, st.integers(), *[numbers] * 6, st.booleans(), ready=st.booleans(), onset=st.booleans()
)


@given(
    st.lists(boundaries, max_size=20),
    st.lists(decisions, max_size=20),
    numbers,
    st.text(max_size=20),
    st.tuples(st.integers(1, 40), st.integers(1, 40)),
)
@example([], [Decision(0, 1.797693134862316e307, *[0.0] * 5, False)], 0.0, "", (1, 1))
@settings(max_examples=50)
def test_anything_can_be_shown(found, judged, duration, text, size):
    album = Album()
    for one in found:
        album.onset(one.onset, np.zeros((*size, 3), np.uint8))
        album.boundary(one)
    names = {"source": text, "model": text, "warnings": [text], "complete": False}
    detection = ongebd.Detection(found, judged, duration, start=duration, _album=album, **names)
    assert set(Tags(detection._repr_html_()).seen) <= TAGS
    assert "\n" not in repr(detection)
    assert len(detection.to_dataframe()) == len(found)


def test_sets_of_labels_and_predictions_print_as_one_line():
    labels = LabelSet({str(n): VideoLabels(str(n), 10.0, (np.arange(9.0),)) for n in range(1000)})
    predictions = PredictionSet({str(n): VideoPrediction(np.arange(9.0)) for n in range(1000)})
    assert len(repr(labels)) + len(repr(predictions)) < 500


def test_a_selection_shows_its_own_boundaries_and_pictures(detection):
    chosen = detection.selected(chapters=2)
    assert repr(chosen).startswith("<Detection: 1 boundary in 6.0 s of ")
    assert Tags(chosen._repr_html_()).seen.count("img") == 1
    assert len(chosen.to_dataframe()) == 1


def test_the_html_of_a_day_stays_small(detection):
    judged = [replace(detection.decisions[0], time=n / 24) for n in range(100_000)]
    found = [Boundary(float(n), float(n), float(n), 1.0) for n in range(4000)]
    html = replace(detection, decisions=judged, boundaries=found)._repr_html_()
    assert len(html) < 100_000
    assert "1:00:00" in html
    assert 'M864 0v10"' in html, "the last boundary has its mark"


def test_boundaries_become_a_dataframe_also_where_there_are_none(detection):
    names = [one.name for one in fields(Boundary)]
    for each in (detection, replace(detection, boundaries=[])):
        frame = each.to_dataframe()
        assert list(frame.columns) == names
        assert frame["time"].tolist() == [boundary.time for boundary in each.boundaries]


def test_a_missing_pandas_is_told_with_the_way_to_install_it(detection, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r'^pandas is not installed: .*install "pandas"$'):
        detection.to_dataframe()


def test_progress_reaches_the_end_and_may_stop_the_work(film):
    told, began = [], monotonic()
    ongebd.detect(film, "window-mean", fps=8, progress=lambda *seconds: told.append(seconds))
    assert 2 <= len(told) <= 10 * (monotonic() - began) + 2
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1] == pytest.approx((6, 6), abs=0.1)

    def stop(_done, _expected):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ongebd.detect(film, "window-mean", fps=8, progress=stop)
    with pytest.raises(ConfigError, match="progress must be a function of two numbers of seconds, not True"):
        ongebd.detect(film, "window-mean", fps=8, progress=True)


def test_a_detection_can_be_copied_pickled_and_compared(detection, film):
    again = ongebd.detect(film, "window-mean", fps=8)
    for other in (again, copy.deepcopy(detection), pickle.loads(pickle.dumps(detection))):
        assert other == detection
    assert detection.decisions == list(detection.decisions)
