"""A folder of small videos."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest


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
