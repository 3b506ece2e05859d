"""Any picture becomes the square that the network looks at."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ongebd import backbones
from ongebd.errors import FeatureError, FrameError, OngebdError
from ongebd.video.picture import fit_short_side

BACKBONE = backbones.get()


def centre(rgb: np.ndarray, size: int = 224) -> np.ndarray:
    top, left = (rgb.shape[0] - size) // 2, (rgb.shape[1] - size) // 2
    return rgb[top : top + size, left : left + size]


def by_pillow(rgb: np.ndarray) -> np.ndarray:
    image = pytest.importorskip("PIL.Image")
    size = fit_short_side(rgb.shape[1], rgb.shape[0], 256)
    return centre(np.asarray(image.fromarray(rgb).resize(size, image.Resampling.BICUBIC)))


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


@pytest.mark.parametrize(
    ("height", "width"),
    [(1, 1), (1, 2), (2, 1), (3, 5), (101, 77), (255, 257), (1, 500), (16, 4000), (4000, 16), (4320, 7680)],
    ids=lambda n: str(n),
)
def test_every_size_and_its_colour_survives(height: int, width: int) -> None:
    square = BACKBONE.crop(np.full((height, width, 3), (200, 90, 30), np.uint8))
    assert square.shape == (224, 224, 3)
    assert square.dtype == np.uint8
    assert square.flags.c_contiguous
    np.testing.assert_allclose(square, np.broadcast_to((200, 90, 30), square.shape), atol=2)


@settings(max_examples=200)
@given(st.integers(1, 20_000), st.integers(1, 20_000))
def test_the_size_that_the_reader_gives_is_not_resized_again(width: int, height: int) -> None:
    size = fit_short_side(width, height, BACKBONE.resize_size)
    assert fit_short_side(*size, BACKBONE.resize_size) == size


@pytest.mark.parametrize("shape", [(256, 455), (455, 256), (256, 256), (257, 256)])
def test_a_picture_of_the_right_size_is_only_cut(shape: tuple[int, int]) -> None:
    rgb = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    before = rgb.copy()
    square = BACKBONE.crop(rgb)
    np.testing.assert_array_equal(square, centre(rgb))
    assert not np.shares_memory(square, rgb)  # the reader may reuse its buffer
    np.testing.assert_array_equal(rgb, before)


@pytest.mark.parametrize("view", [np.s_[::2, ::3], np.s_[:, ::-1], np.s_[3:-4, 5:-6]])
def test_views_give_what_their_copies_give(made_picture: np.ndarray, view: tuple[slice, slice]) -> None:
    rgb = made_picture[view]
    assert not rgb.flags.c_contiguous
    np.testing.assert_array_equal(BACKBONE.crop(rgb), BACKBONE.crop(rgb.copy()))


def test_the_cut_is_the_centre() -> None:
    left_dark = np.zeros((360, 640, 3), np.uint8)
    left_dark[:, 320:] = 255
    square = BACKBONE.crop(left_dark).astype(float)
    assert square[:, :100].max() == 0
    assert square[:, -100:].min() == 255


def test_pixels_agree_with_pillow(made_picture: np.ndarray) -> None:
    difference = np.abs(BACKBONE.crop(made_picture).astype(int) - by_pillow(made_picture))
    assert difference.mean() < 0.5  # measured: 0.09


def test_features_agree_with_pillow_on_real_pictures(real_pictures: list[np.ndarray]) -> None:
    ours = BACKBONE.embed(np.stack([BACKBONE.crop(p) for p in real_pictures]))
    theirs = BACKBONE.embed(np.stack([by_pillow(p) for p in real_pictures]))
    assert cosines(ours, theirs).min() >= 0.995  # measured: 0.9977, mean 0.9994


@pytest.mark.parametrize(
    ("wrong", "given"),
    [
        (np.zeros((10, 10, 3), np.float32), "float32 of shape (10, 10, 3)"),
        (np.zeros((10, 10, 3), np.uint16), "uint16 of shape (10, 10, 3)"),
        (np.zeros((10, 10), np.uint8), "uint8 of shape (10, 10)"),
        (np.zeros((10, 10, 4), np.uint8), "uint8 of shape (10, 10, 4)"),
        (np.zeros((3, 10, 10), np.uint8), "uint8 of shape (3, 10, 10)"),
        (np.zeros((1, 10, 10, 3), np.uint8), "uint8 of shape (1, 10, 10, 3)"),
        (np.zeros((0, 10, 3), np.uint8), "uint8 of shape (0, 10, 3)"),
        (None, "object of shape ()"),
    ],
    ids=str,
)
def test_what_is_not_a_picture_is_refused_in_one_line(wrong: np.ndarray, given: str) -> None:
    with pytest.raises(FrameError) as refusal:
        BACKBONE.crop(wrong)
    assert str(refusal.value) == f"the frame is {given}, wanted uint8 of shape (height, width, 3), RGB"
    assert isinstance(refusal.value, OngebdError)
    assert isinstance(refusal.value, FeatureError)
    assert isinstance(refusal.value, ValueError)
