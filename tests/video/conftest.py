from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ongebd.types import Frame
from ongebd.video import Source, VideoReader


@pytest.fixture(scope="session")
def read() -> Callable[..., tuple[VideoReader, list[Frame]]]:
    """Read a source to its end: the closed reader, and its frames."""

    def read_all(
        source: Source, fps: float | None = None, **settings: Any
    ) -> tuple[VideoReader, list[Frame]]:
        with VideoReader(source, fps, **settings) as video:
            frames = list(video)
        return video, frames

    return read_all


@pytest.fixture
def clip(tmp_path: Path, make_video: Callable[..., Path], make_numbered: Callable[..., Any]) -> Path:
    """Ten numbered frames at 25 frames/s, 96 × 64, H.264 in MP4."""
    return make_video(tmp_path / "clip.mp4", make_numbered(10))
