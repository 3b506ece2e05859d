from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ongebd.baselines.naive import WindowMean
from ongebd.detector import Model, OnlineDetector, StreamConfig
from ongebd.detector.models import load
from ongebd.video.picture import Fit


class StubBackbone:
    """Reads the feature out of the picture's first row: a test decides what the detector sees."""

    name = identity = "stub"
    dim = 4
    input_size = resize_size = 8
    view = Fit(8)

    def crop(self, rgb: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(rgb[:8, :8])

    def embed(self, frames: np.ndarray) -> np.ndarray:
        return frames[:, 0, :4, 0].astype(np.float32)


@pytest.fixture
def stub() -> StubBackbone:
    return StubBackbone()


@pytest.fixture
def stub_model(stub: StubBackbone) -> Model:
    """The default model's settings on the stub."""
    return Model(
        "stub", "for tests", stub, load("window-mean").defaults, lambda config: WindowMean(config.window)
    )


@pytest.fixture
def detector(stub_model: Model) -> Callable[..., OnlineDetector]:
    def make(**settings: Any) -> OnlineDetector:
        return stub_model.stream(StreamConfig(**settings))

    return make
