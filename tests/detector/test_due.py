"""`due`: a camera of any rate gives the frames, and so the boundaries, that `detect` takes of a file."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ongebd
from ongebd.baselines.pictures import Pictures
from ongebd.detector import StreamConfig, load
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
