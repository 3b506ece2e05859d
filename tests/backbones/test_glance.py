"""When the network looks at a picture of a stream, and that nothing depends on the pictures that it skips."""

from __future__ import annotations

import numpy as np
import pytest

import ongebd
from ongebd.backbones.onnx_backbone import WholePicture
from ongebd.backbones.pipeline import Glance
from ongebd.video import VideoReader

DARK = np.zeros(56 * 56, np.float32)


def looks(lumas, rate=24.0):
    glance = Glance()
    return [glance(luma, n / rate) for n, luma in enumerate(lumas)]


def rolling(count, by=9.0):
    """A spot of light that grows by some levels with each frame."""
    return [np.where(np.arange(DARK.size) < 9, by * n, 0).astype(np.float32) for n in range(count)]


@pytest.mark.parametrize(
    ("rate", "share"), [(24.0, 1 / 6), (25.0, 1 / 7), (60.0, 1 / 15), (12.0, 1 / 3), (4.0, 1.0)]
)
def test_it_looks_four_times_a_second_at_what_moves(rate, share):
    assert np.mean(looks(rolling(120), rate)) == pytest.approx(share, abs=0.02)


def test_it_looks_once_while_nothing_moves_and_again_when_it_has_moved_enough():
    assert looks([DARK] * 50) == [True] + [False] * 49
    assert sum(looks(rolling(120, by=0.5))) == 120 // 13 + 1  # 13 steps are more than 6 levels


def test_it_looks_at_another_picture_at_once():
    lumas = rolling(24)
    lumas[14:] = [luma + 100 * (np.arange(luma.size) % 2) for luma in lumas[14:]]
    assert looks(lumas)[12:16] == [True, False, True, False]


STRIPES = np.where(np.arange(DARK.size) % 8 < 4, 20, 60).astype(np.float32)


@pytest.mark.parametrize(("frames", "looked"), [(1, []), (3, []), (5, [9, 11])])
def test_it_does_not_look_at_a_flash_of_up_to_three_frames(frames, looked):
    lumas = [STRIPES + 100 * (6 <= n < 6 + frames) for n in range(20)]
    assert np.flatnonzero(looks(lumas)).tolist() == [0, *looked]


def test_the_picture_before_a_flash_stands_for_it():
    glance, feature = Glance(), np.append(np.float32(1), STRIPES)
    counted = [glance.counted(feature + add, n / 24) for n, add in enumerate([0, 0, 100])]
    assert (counted[2] == feature).all()


@pytest.mark.parametrize("picture", [STRIPES, DARK + 20])
def test_it_looks_at_once_at_darkness_and_at_a_flat_picture_that_becomes_another(picture):
    assert looks([picture + 100] * 3 + [picture] * 3 + [picture + 20])[3]
    assert looks([DARK] * 3 + [DARK + 100])[3]


def test_it_looks_no_more_often_while_the_whole_picture_goes_on_changing():
    assert np.mean(looks([DARK + 8 * n for n in range(30)])) < 0.25


def test_it_looks_after_a_reset_and_when_time_goes_back():
    glance = Glance()
    assert [glance(DARK, time) for time in (1.0, 2.0, 0.5, 0.6)] == [True, False, True, False]
    glance.reset()
    assert glance(DARK, 0.7)


@pytest.fixture
def film(make_video, make_scene, tmp_path):
    """Two moving shots with a cut, and a still one."""
    shots = [make_scene(n, 320, 224) for n in range(3)]
    pictures = [np.roll(shots[n // 48], 4 * n, axis=1) for n in range(96)] + [shots[2]] * 48
    return make_video(tmp_path / "film.mp4", pictures, rate=24)


def test_the_network_sees_a_sixth_of_what_moves_and_the_same_boundaries_come_from_all_features(
    film, monkeypatch
):
    model, asked = ongebd.load("immediate"), []
    embed = model.backbone.embed
    with VideoReader(film, 24, view=model.backbone.view) as video:
        frames = list(video)
    every = [embed(model.backbone.crop(frame.rgb)[np.newaxis])[0] for frame in frames]

    def counted(self, pictures):
        asked.append(len(pictures))
        return WholePicture._embed(self, pictures)

    monkeypatch.setattr(model.backbone, "_embed", lambda pictures: counted(model.backbone, pictures))
    batch = ongebd.detect(film, model)
    assert 17 <= sum(asked) <= 22 < len(frames) == 144
    stream, given = model.stream(), model.stream()
    for frame, feature, decision in zip(frames, every, batch.decisions, strict=True):
        assert stream.update(frame.rgb, frame.time) == decision == given.update_feature(feature, frame.time)
    assert any(boundary.time == 2.0 for boundary in batch.boundaries)
