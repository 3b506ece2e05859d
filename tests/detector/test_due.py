"""Frames of fast sources that are due, and frames of slow sources that stay."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ongebd
from ongebd.backbones.pipeline import LUMA_DIM
from ongebd.baselines.naive import Persistence
from ongebd.baselines.pictures import Pictures
from ongebd.detector import Model, StreamConfig, load
from ongebd.detector.detector import AnticipationScorer
from ongebd.estimator.anticipation import cosine_error
from ongebd.video import VideoReader
from ongebd.video.timing import Sampler

MODEL = replace(load("window-mean"), backbone=Pictures(16, 12))


@pytest.fixture(scope="module")
def scenes(make_scene):
    return [make_scene(seed, 400, 240) for seed in (11, 12, 13)]


def filmed(scenes, rate, seconds=1):
    """A second of each scene, with a camera that pans."""
    count = round(rate * seconds)
    return [
        np.ascontiguousarray(scene[:, (shift := 60 * n // count) : shift + 320])
        for scene in scenes
        for n in range(count)
    ]


def by_camera(path, as_time=float, **settings):
    """The loop of a user who gets every frame."""
    detector = MODEL.stream(**settings)
    decisions, boundaries, epoch = [], [], 0
    with VideoReader(path, view=MODEL.backbone.view) as video:
        for frame in video:
            if frame.epoch != epoch:
                epoch = frame.epoch
                boundaries.append(detector.new_epoch())
            seconds = as_time(frame.time)
            if detector.due(seconds):
                decisions.append(detector.update(frame.rgb, seconds))
                boundaries.append(decisions[-1].boundary)
    boundaries.append(detector.flush())
    return decisions, [boundary for boundary in boundaries if boundary is not None]


@pytest.mark.parametrize("rate", [12, 25, 30, Fraction(30000, 1001), 50, 60, 96])
def test_a_camera_of_any_rate_gives_what_detect_gives(tmp_path, make_video, scenes, rate):
    path = make_video(tmp_path / "film.mp4", filmed(scenes, float(rate)), rate=rate)
    detection = ongebd.detect(path, MODEL)
    assert by_camera(path) == (detection.decisions, detection.boundaries)
    assert by_camera(path, Fraction) == (detection.decisions, detection.boundaries)
    assert detection.boundaries


def test_another_rate_and_a_break_give_the_same(tmp_path, make_video, scenes):
    part = make_video(tmp_path / "part.ts", filmed(scenes, 30, 0.7), rate=30)
    joined = tmp_path / "joined.ts"
    joined.write_bytes(part.read_bytes() * 2)
    detection = ongebd.detect(joined, MODEL, fps=7)
    assert by_camera(joined, fps=7) == (detection.decisions, detection.boundaries)
    assert len(detection.epochs) == 1


@given(st.sampled_from([24, 25, 30, 50, 60, 90, 96, 120, 144, 240]), st.integers(1, 60))
def test_times_may_be_floats(rate, fps):
    detector, sampler = _detector(fps), Sampler(Fraction(fps))
    for n in range(300):
        assert detector.due(n / rate) == sampler.take(Fraction(n, rate))


def test_a_step_back_of_the_clock_starts_a_new_epoch_as_in_update(detector):
    stream = detector(fps=10)
    feature = np.float32([1, 0, 0, 0])
    taken = []
    for n in [*range(60), *range(1, 60)]:
        if stream.due(n / 60):
            taken.append(n)
            stream.update_feature(feature, n / 60)
    slots = [0, *range(5, 60, 6)]
    # The first frame of the new epoch is taken, and the one after it is not taken too.
    assert taken == [*slots, 1, *slots[1:]]


def test_a_new_epoch_or_stream_takes_its_first_frame_always(detector):
    stream = detector(fps=1)
    assert [stream.due(time) for time in (0, 0.1)] == [True, False]
    stream.new_epoch()
    assert [stream.due(time) for time in (0.2, 0.3)] == [True, False]
    stream.reset()
    assert [stream.due(time) for time in (0.0, 0.1)] == [True, False]


def _detector(fps):
    from ongebd.baselines.naive import Persistence
    from ongebd.detector import OnlineDetector

    class Blind:
        name = identity = "blind"
        dim = input_size = resize_size = 4

    return OnlineDetector(Blind(), Persistence(), StreamConfig(fps=fps).filled(load("window-mean").defaults))


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
