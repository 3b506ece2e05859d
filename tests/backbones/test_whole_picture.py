"""The whole picture, squashed, and its luma behind the network's feature."""

from __future__ import annotations

import numpy as np
import pytest

from ongebd import backbones
from ongebd.errors import ConfigError, FrameError
from ongebd.features.extract import sampling_identity
from ongebd.video.picture import Fit, Squash

WHOLE, CENTRE = backbones.get("efficientnet_lite0_whole"), backbones.get("efficientnet_lite0")


def pictures(count, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, 224, 224, 3)).astype(np.uint8)


def test_the_feature_is_the_networks_and_the_luma():
    frames = pictures(2)
    features = WHOLE.embed(frames)
    assert features.shape == (2, WHOLE.dim) == (2, 1280 + 56 * 56)
    assert features.dtype == np.float32
    np.testing.assert_array_equal(features[:, :1280], WHOLE.network.embed(frames))
    means = frames.reshape(2, 56, 4, 56, 4, 3).mean((2, 4)) @ [0.299, 0.587, 0.114]
    np.testing.assert_allclose(features[:, 1280:], means.reshape(2, -1), atol=1e-3)


def test_a_picture_gets_the_same_bits_alone_and_among_others():
    frames = pictures(3)
    luma = WHOLE.embed(frames)[:, 1280:]
    for frame, expected in zip(frames, luma, strict=True):
        np.testing.assert_array_equal(WHOLE.embed(frame[None])[0, 1280:], expected)


def test_the_sides_are_seen():
    wide = np.zeros((90, 320, 3), np.uint8)
    wide[:, :40] = 255
    left = WHOLE.crop(wide)
    assert left.shape == (224, 224, 3)
    assert left[:, :20].min() > 200
    assert left[:, 40:].max() < 50
    assert not CENTRE.crop(wide).any()


def test_a_picture_of_the_right_size_is_copied():
    frame = pictures(1)[0]
    cropped = WHOLE.crop(frame)
    np.testing.assert_array_equal(cropped, frame)
    assert not np.shares_memory(cropped, frame)


def test_it_is_the_same_network_in_int8():
    assert WHOLE.network.name == CENTRE.name
    assert CENTRE.identity == "efficientnet_lite0@93756ab5d121"  # of people's feature stores
    assert WHOLE.identity == CENTRE.identity.replace("@", "_whole@") + "-int8"


def test_readers_are_told_how_each_looks():
    assert (WHOLE.view, CENTRE.view) == (Squash(224, 224), Fit(256))
    assert sampling_identity(CENTRE).endswith("; bicubic to a shorter side of 256, centre 224")
    assert sampling_identity(WHOLE).endswith("; the whole picture, bicubic to 224 × 224")


def test_what_it_cannot_take_is_refused():
    with pytest.raises(FrameError, match="the frame is"):
        WHOLE.crop(np.zeros((4, 4), np.uint8))
    with pytest.raises(FrameError, match="embed: frames are"):
        WHOLE.embed(np.zeros((1, 56, 56, 3), np.uint8))
    with pytest.raises(ConfigError, match="its weights are in the package"):
        backbones.get("efficientnet_lite0_whole", weights="w.pth")
    assert WHOLE.embed(np.zeros((0, 224, 224, 3), np.uint8)).shape == (0, WHOLE.dim)
