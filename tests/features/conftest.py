"""A backbone that computes nothing to speak of, and a folder of small videos."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ongebd.backbones import Features, FramesU8
from ongebd.backbones.preprocess import resize_and_crop
from ongebd.common.geometry import Fit


class MeanColours:
    """Mean colour of each of sixteen squares: 48 numbers a frame."""

    name = "mean-colours"
    identity = "mean-colours@1"
    dim = 48
    input_size = 32
    resize_size = 36
    view = Fit(36)

    def __init__(self) -> None:
        self.calls: list[int] = []

    def crop(self, rgb: np.ndarray) -> np.ndarray:
        return resize_and_crop(rgb, self.resize_size, self.input_size)

    def embed(self, frames: FramesU8) -> Features:
        self.calls.append(len(frames))
        squares = frames.reshape(len(frames), 4, 8, 4, 8, 3).astype(np.float32)
        return squares.mean(axis=(2, 4)).reshape(len(frames), self.dim) + 1.0


@pytest.fixture
def backbone() -> MeanColours:
    return MeanColours()


@pytest.fixture
def make_clips(
    tmp_path: Path, make_video: Callable[..., Path], make_numbered: Callable[..., list[np.ndarray]]
) -> Callable[..., list[tuple[str, Path]]]:
    """Several videos of a few frames each, at 24 fps, with their ids."""

    def make(count: int, frames: int = 5) -> list[tuple[str, Path]]:
        folder = tmp_path / "videos"
        folder.mkdir(exist_ok=True)
        pictures = make_numbered(count + frames)
        return [
            (f"v{i:03d}", make_video(folder / f"v{i:03d}.mp4", pictures[i : i + frames], rate=24))
            for i in range(count)
        ]

    return make
