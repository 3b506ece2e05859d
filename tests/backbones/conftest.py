"""Pictures to embed: real ones where the sample clips are at hand, made ones always."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import pytest

from ongebd.backbones import registry

CLIPS = Path(__file__).resolve().parents[3] / "shared" / "clips" / "open"
FIRST_AND_LATER = (0, 30)


@pytest.fixture(autouse=True)
def _no_network_outlives_its_test() -> Iterator[None]:
    """The registry keeps what it made; networks of 94 MB that only one test wants would fill the memory."""
    before = dict(registry._made)
    yield
    registry._made.clear()
    registry._made.update(before)


@pytest.fixture(scope="session")
def real_pictures() -> list[np.ndarray]:
    """Two frames of each sample clip, RGB, at the clip's size."""
    clips = sorted(CLIPS.glob("*.mp4"))
    if not clips:
        pytest.skip("the sample clips are not beside this repository")
    return [picture for clip in clips for picture in _decode(clip)]


def _decode(clip: Path) -> list[np.ndarray]:
    pictures = []
    with av.open(str(clip)) as container:
        for i, frame in enumerate(container.decode(video=0)):
            if i in FIRST_AND_LATER:
                pictures.append(frame.to_ndarray(format="rgb24"))
            if i >= max(FIRST_AND_LATER):
                break
    return pictures


@pytest.fixture(scope="session")
def made_picture() -> np.ndarray:
    """A soft landscape with a bright disc, 360 × 640."""
    y, x = np.mgrid[0:360, 0:640].astype(np.float32)
    disc = 120 * (np.hypot(x - 400, y - 120) < 60)
    waves = 40 * np.sin(x / 23) * np.cos(y / 17)
    channels = [100 + waves + disc, 90 + y / 4 + disc, 160 - y / 3 + waves]
    return np.clip(np.stack(channels, axis=-1), 0, 255).astype(np.uint8)
