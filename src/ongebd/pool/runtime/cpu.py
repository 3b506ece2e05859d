"""The runtime on the CPU: each stream has its `OnlineDetector`, and threads compute the features."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import numpy as np

from ongebd.backbones.base import check_picture
from ongebd.backbones.pipeline import Glance
from ongebd.common.settings import read_as
from ongebd.detector.config import StreamConfig
from ongebd.detector.detector import OnlineDetector
from ongebd.detector.models import Model
from ongebd.pool.runtime.base import AtLeastOne, Finish, Outcome, Runtime, Work
from ongebd.types import Feature, ImageU8

Given = ImageU8 | tuple[Feature]
"""A picture, or a feature in a tuple."""


class CpuRuntime(Runtime):
    """Runs streams on the CPU. Decisions equal those of `model.stream(…)` on the same frames, to the bit.

    Args:
        model: A loaded model, of any kind.
        workers: Frames that the backbone works on in parallel; by default one per processor, at most four.
        max_batch: The most frames in one step.

    Raises:
        ConfigError: A number is out of range.
    """

    def __init__(
        self, model: Model, *, workers: int = min(4, os.cpu_count() or 1), max_batch: int = 32
    ) -> None:
        model.check_online()
        self._model = model
        self.max_batch = read_as(max_batch, AtLeastOne, "max_batch")
        workers = read_as(workers, AtLeastOne, "workers")
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="ongebd-backbone")
        self._glances: dict[OnlineDetector, Glance | None] = {}

    def open(self, config: StreamConfig) -> OnlineDetector:
        """A new detector, which sees frames when steps finish, and what glances at them ahead."""
        slot = self._model.begin(config)
        self._glances[slot] = slot.glance()
        return slot

    def release(self, slot: OnlineDetector) -> None:
        """See `Runtime`."""
        del self._glances[slot]

    def restart_ahead(self, slot: OnlineDetector) -> None:
        """See `Runtime`."""
        self._glances[slot] = slot.glance()

    def accept(self, picture: ImageU8, copy: bool = True) -> Given:
        """The picture, checked."""
        picture = check_picture(picture)
        return picture.copy() if copy else picture

    def accept_feature(self, feature: Feature) -> Given:
        """A copy of the feature; the detector checks it."""
        return (np.array(feature),)

    def begin(self, work: Sequence[Work]) -> Finish:
        """Let the threads compute the features; the detectors take them in order."""
        return partial(_finish, work, [self._begun(item) for item in work])

    def close(self) -> None:
        """Join the threads."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _begun(self, item: Work) -> Future[Feature]:
        """One frame's feature, or its luma where the network needn't look."""
        given, glance = item.given, self._glances[item.slot]
        known: Feature | None = given[0] if isinstance(given, tuple) else None
        if glance is not None:
            size = self._model.backbone.input_size
            if known is None and given.shape[:2] == (size, size):  # as readers give it; others take long
                known = glance.unseen(given, item.time)
            else:
                glance.reset()
        if known is None:
            return self._threads.submit(self._feature, given)
        there = Future[Feature]()
        there.set_result(known)
        return there

    def _feature(self, picture: ImageU8) -> Feature:
        """One frame's feature. Batches would change its last bits."""
        backbone = self._model.backbone
        feature: Feature = backbone.embed(backbone.crop(picture)[np.newaxis])[0]
        return feature


def _finish(work: Sequence[Work], features: Sequence[Future[Feature]]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for item, feature in zip(work, features, strict=True):
        try:
            outcomes.append(item.slot.take(feature.result(), item.time))
        except Exception as problem:  # noqa: BLE001 - it concerns this stream alone
            outcomes.append(problem)
    return outcomes
