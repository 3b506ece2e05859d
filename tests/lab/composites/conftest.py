"""Small clips to compose videos of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="session")
def moving_scene(make_scene: Callable[..., Any]) -> Callable[..., list[Any]]:
    """Pictures of a scene in which a bright or dark block runs to and fro, at a steady pace."""

    def make(scene: int, frames: int, *, path: int = 0, width: int = 96, height: int = 72) -> list[Any]:
        random = np.random.default_rng((scene, path))
        background = make_scene(scene, width, height)
        side = height // 3
        colour = random.permutation([250, 10, 128 + int(random.integers(-60, 60))])
        room = np.array([width - side, height - side])
        place, pace = random.uniform(0, 1, 2) * room, np.array([2.3, 1.7]) * random.choice([-1, 1], 2)
        pictures = []
        for _ in range(frames):
            picture = background.copy()
            x, y = place.astype(int)
            picture[y : y + side, x : x + side] = colour
            pictures.append(picture)
            place = place + pace
            pace = np.where((place < 0) | (place > room), -pace, pace)
            place = np.clip(place, 0, room)
        return pictures

    return make


@pytest.fixture(scope="session")
def clip_folder(
    tmp_path_factory: pytest.TempPathFactory,
    make_video: Callable[..., Path],
    moving_scene: Callable[..., list[Any]],
) -> Path:
    """Six clips of 4 to 6 seconds; two of them show one room. Not to be written to."""
    folder = tmp_path_factory.mktemp("clips")
    make_video(folder / "solo.mp4", moving_scene(11, 120), rate=24)
    make_video(folder / "wide.mp4", moving_scene(12, 130, width=128), rate=25)
    make_video(folder / "tall.mp4", moving_scene(13, 150, width=64, height=96), rate=30)
    make_video(folder / "other.mkv", moving_scene(14, 144), rate=24)
    make_video(folder / "room_1.mp4", moving_scene(15, 120, path=1), rate=24)
    make_video(folder / "room_2.mp4", moving_scene(15, 120, path=2), rate=24)
    return folder
