"""Frames that stay: slides, screen recordings by change, slow sources, and `fps` below the model's rate."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import ongebd
from ongebd.backbones.pipeline import LUMA_DIM
from ongebd.baselines.naive import Persistence
from ongebd.detector import Model
from ongebd.detector.detector import AnticipationScorer
from ongebd.estimator.anticipation import cosine_error
from ongebd.video import VideoReader

CHANGES = [4.0, 8.0, 12.0]


@pytest.fixture(scope="module")
def slides(make_scene):
    return [make_scene(seed, 160, 120) for seed in range(4)]


@pytest.fixture
def screencast(tmp_path, make_video, slides):
    """A frame when the picture changes, and none between."""
    pts = [0, 4000, 8000, 12000, 16000]
    return make_video(
        tmp_path / "slides.mkv",
        [*slides, slides[3]],
        pts=pts,
        time_base=Fraction(1, 1000),
        options={"g": "1"},
    )


def boundaries(stream, features, times):
    found = [
        stream.update_feature(feature, time).boundary for feature, time in zip(features, times, strict=True)
    ]
    found += [decision.boundary for decision in stream.drain()]
    while (last := stream.flush()) is not None:
        found.append(last)
    return [boundary.time for boundary in found if boundary is not None]


@pytest.mark.parametrize("name", ["immediate", "window-mean"])
def test_a_change_of_slide_is_found_at_its_time_at_any_rate(name, slides):
    model = ongebd.load(name)
    features = [model.backbone.embed(model.backbone.crop(slide)[np.newaxis])[0] for slide in slides]
    assert boundaries(model.stream(), features, [0.0, *CHANGES]) == CHANGES  # a frame for each change
    for rate in (6, 5, 2, 1):
        times = [n / rate for n in range(16 * rate)]
        shown = [features[int(time // 4)] for time in times]
        assert boundaries(model.stream(), shown, times) == CHANGES, rate


@pytest.mark.parametrize("rate", [None, 24])
def test_a_change_that_is_no_cut_is_found_after_a_slide_that_stayed(slides, rate):
    model = ongebd.load("immediate")
    features = [model.backbone.embed(model.backbone.crop(slide)[np.newaxis])[0] for slide in slides]
    towards = [features[1] + share * (features[2] - features[1]) for share in np.linspace(0, 1, 201)]
    error = [float(cosine_error(one[:-LUMA_DIM], features[1][:-LUMA_DIM])) for one in towards]
    small = towards[int(np.searchsorted(error, 0.135))]  # too little for a cut
    shown = [features[0], features[1], small.astype(np.float32)]
    times = [0.0, 4.0, 8.0] if rate is None else [n / rate for n in range(12 * rate)]
    found = boundaries(model.stream(), [shown[int(time // 4)] for time in times], times)
    assert found == [4.0, 8.0]


def test_batch_and_stream_agree_on_frames_that_stay_and_each_has_one_decision(screencast, slides):
    model = ongebd.load("immediate")
    found = ongebd.detect(screencast, model)
    assert [boundary.time for boundary in found.boundaries] == CHANGES
    assert [decision.index for decision in found.decisions] == [0, 1, 2, 3, 4]
    assert [decision.time for decision in found.decisions] == [0.0, *CHANGES, 16.0]
    stream, again = model.stream(), []
    with VideoReader(screencast, view=model.backbone.view) as video:
        again.extend(stream.update(frame.rgb, frame.time).boundary for frame in video)
    again += [decision.boundary for decision in stream.drain()]
    assert [boundary for boundary in again if boundary] == found.boundaries


def test_fps_below_the_rate_of_the_model_still_finds_cuts(tmp_path, make_video, slides):
    path = make_video(tmp_path / "cuts.mp4", [slides[n // 48] for n in range(192)], rate=24)
    found = [boundary.time for boundary in ongebd.detect(path, fps=2).boundaries]
    assert len(found) == 3
    assert np.abs(np.array(found) - [2, 4, 6]).max() < 0.5  # frames are half a second apart


class Counting(AnticipationScorer):
    calls = 0

    def update(self, feature, time):
        self.calls += 1
        return super().update(feature, time)


def counted(stub, stub_model, times) -> int:
    scorer = Counting(Persistence(), cosine_error, stub.dim)
    model = Model("stub", "for tests", stub, stub_model.defaults, lambda _config: scorer)
    stream = model.stream()
    for time in times:
        stream.update_feature(np.float32([1, 0, 0, 0]), time)
    return scorer.calls


def test_a_frame_that_stays_for_an_hour_costs_little(stub, stub_model):
    assert counted(stub, stub_model, [0, 3600, 7200]) < 250


def test_frames_of_an_ordinary_source_are_judged_once(stub, stub_model):
    assert counted(stub, stub_model, [n / 12 for n in range(100)]) == 100
    assert counted(stub, stub_model, [0, 1 / 24, 0.4, 0.45]) == 4  # a few were lost
