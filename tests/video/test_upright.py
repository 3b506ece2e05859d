"""Frames are upright whatever the display matrix says, before anything looks at them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from ongebd.video.picture import Squash

# As FFmpeg writes them: (a, b, c, d) maps (x, y) to (a·x + c·y, b·x + d·y); and what that does to an array.
TURNS = {
    "as it is": ((1, 0, 0, 1), lambda rgb: rgb),
    "quarter clockwise": ((0, 1, -1, 0), lambda rgb: np.rot90(rgb, -1)),
    "half": ((-1, 0, 0, -1), lambda rgb: np.rot90(rgb, 2)),
    "quarter anticlockwise": ((0, -1, 1, 0), lambda rgb: np.rot90(rgb, 1)),
    "mirrored": ((-1, 0, 0, 1), lambda rgb: rgb[:, ::-1]),
    "upside down": ((1, 0, 0, -1), lambda rgb: rgb[::-1]),
    "transposed": ((0, 1, 1, 0), lambda rgb: rgb.transpose(1, 0, 2)),
    "transposed and turned over": ((0, -1, -1, 0), lambda rgb: np.rot90(rgb, 2).transpose(1, 0, 2)),
}


@pytest.fixture
def corners() -> np.ndarray:
    """64 × 96, each corner of another colour: no two turns of it are alike."""
    rgb = np.empty((64, 96, 3), np.uint8)
    rgb[:32, :48], rgb[:32, 48:] = (200, 40, 40), (40, 200, 40)
    rgb[32:, :48], rgb[32:, 48:] = (40, 40, 200), (220, 220, 220)
    return rgb


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize(
    ("settings", "size"),
    [({}, None), ({"short_side": 32}, "half"), ({"view": Squash(40, 24)}, (24, 40))],
    ids=["full size", "resized", "squashed"],
)
def test_a_turned_video_comes_upright(
    tmp_path, make_video, set_display_matrix, read, corners, turn, settings, size
):
    matrix, turned = TURNS[turn]
    path = make_video(tmp_path / "phone.mp4", [corners] * 3)
    set_display_matrix(path, *matrix)
    _, frames = read(path, **settings)
    wanted = turned(corners)
    height, width, _ = wanted.shape
    rows, columns = {None: (height, width), "half": (height // 2, width // 2)}.get(size, size)
    assert len(frames) == 3
    for frame in frames:
        assert frame.rgb.shape == (rows, columns, 3)
        assert frame.size == (width, height)
        assert frame.rgb.flags.c_contiguous or size == (24, 40)  # such rows have padding
        for down, right in product((0.25, 0.75), repeat=2):
            found = frame.rgb[int(rows * down), int(columns * right)].astype(int)
            assert np.abs(found - wanted[int(height * down), int(width * right)]).max() < 20


@pytest.mark.parametrize(
    ("degrees", "like"),
    [(3, "as it is"), (88, "quarter clockwise"), (185, "half"), (272, "quarter anticlockwise")],
)
def test_an_angle_in_between_goes_to_the_nearest_quarter(
    tmp_path, make_video, set_display_matrix, read, corners, degrees, like
):
    cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    tilted = make_video(tmp_path / "tilted.mp4", [corners])
    set_display_matrix(tilted, cosine, sine, -sine, cosine)
    straight = make_video(tmp_path / "straight.mp4", [corners])
    set_display_matrix(straight, *TURNS[like][0])
    assert np.array_equal(read(tilted)[1][0].rgb, read(straight)[1][0].rgb)
