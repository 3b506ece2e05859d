"""The ordinary way on the CPU: each stream's `OnlineDetector`, fed by threads that compute features."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from ongebd.detector.config import StreamConfig
from ongebd.detector.detector import OnlineDetector
from ongebd.detector.models import Model
from ongebd.errors import ConfigError
from ongebd.pool.runtime.base import Outcome, Window, Work, check_picture
from ongebd.types import Boundary, Decision, Feature, ImageU8


class CpuLane:
    """A stream's detector."""

    def __init__(self, detector: OnlineDetector) -> None:
        self.detector = detector
        self.config = detector.config

    @property
    def latency(self) -> float:
        """The detector's."""
        return self.detector.latency

    @property
    def state_bytes(self) -> int:
        """The detector's."""
        return self.detector.state_bytes

    def drain(self) -> list[Decision]:
        """The detector's."""
        return self.detector.drain()

    def flush(self) -> Boundary | None:
        """The detector's."""
        return self.detector.flush()

    def break_off(self) -> None:
        """Nothing: a detector hears of it in `new_epoch`."""

    def new_epoch(self) -> Boundary | None:
        """The detector's."""
        return self.detector.new_epoch()

    def retune_ahead(self, config: StreamConfig) -> None:
        """Nothing: a detector hears of it in `retune`."""

    def retune(self, config: StreamConfig) -> None:
        """The detector's."""
        self.detector.retune(config)
        self.config = config


Given = ImageU8 | tuple[Feature]
"""A picture, or a feature in a tuple of its own."""


class CpuStep:
    """Features that threads compute; the detectors take them in order."""

    def __init__(self, work: Sequence[Work[CpuLane]], features: list[Future[Feature]]) -> None:
        self._work = work
        self._features = features

    def finish(self) -> list[Outcome]:
        """Wait for each feature and hand it to its detector."""
        return [self._decide(work, done) for work, done in zip(self._work, self._features, strict=True)]

    @staticmethod
    def _decide(work: Work[CpuLane], done: Future[Feature]) -> Outcome:
        try:
            return work.lane.detector.update_feature(done.result(), work.time)
        except Exception as problem:  # noqa: BLE001 - handed over: it is that stream's, and no other's
            return problem


class CpuRuntime:
    """Runs streams on the CPU. Decisions are those of `model.stream(…)` fed the same frames, to the bit.

    Args:
        model: A loaded model, of any kind.
        workers: Frames that the backbone works on at once; None takes the processors, at most four.
        max_batch: The most frames in one step.

    Raises:
        ConfigError: A number is out of range.
    """

    device = "cpu"
    precision = "float32"
    depth = 2

    def __init__(self, model: Model, *, workers: int | None = None, max_batch: int = 32) -> None:
        if workers is not None and workers < 1:
            raise ConfigError(f"workers must be at least 1, not {workers}")
        if max_batch < 1:
            raise ConfigError(f"max_batch must be at least 1 frame, not {max_batch}")
        self._model = model
        self.max_batch = max_batch
        self._threads = ThreadPoolExecutor(
            workers or min(4, os.cpu_count() or 1), thread_name_prefix="ongebd-backbone"
        )

    def open(self, config: StreamConfig) -> CpuLane:
        """A new detector."""
        return CpuLane(self._model.stream(config))

    def release(self, lane: CpuLane) -> None:
        """Nothing is to be given back."""

    def accept(self, picture: ImageU8, copy: bool = True) -> Given:
        """The picture, checked."""
        picture = check_picture(picture)
        return picture.copy() if copy else picture

    def window(self, height: int, width: int) -> Window:
        """All of it: the backbone cuts."""
        return 0, height, 0, width

    def pin(self, memory: npt.NDArray[np.uint8]) -> None:
        """Nothing: memory is read as it is."""

    def accept_window(self, pixels: ImageU8, height: int, width: int, pinned: None = None) -> Given:
        """The picture, checked."""
        return check_picture(pixels)

    def accept_feature(self, feature: Feature) -> Given:
        """A copy of the feature; the detector checks it."""
        return (np.array(feature),)

    def begin(self, work: Sequence[Work[CpuLane]]) -> CpuStep:
        """Let the threads compute the features."""
        return CpuStep(work, [self._threads.submit(self._feature, item.given) for item in work])

    def close(self) -> None:
        """Join the threads."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _feature(self, given: Given) -> Feature:
        """One frame's feature, by itself: a batch would give other bits."""
        if isinstance(given, tuple):
            return given[0]
        backbone = self._model.backbone
        feature: Feature = backbone.embed(backbone.crop(given)[np.newaxis])[0]
        return feature
