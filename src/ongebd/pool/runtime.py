"""What runs many streams of one model: the same for the CPU, which is here, and a GPU.

A runtime takes frames of many streams together, each stream's in order, and gives the decision on each.
`begin` starts a step: some frames, at most one of each stream. It returns immediately; what it returns waits
for the step. One thread begins steps, and one thread, which may be another, finishes them in the same order.

>>> import numpy as np, ongebd
>>> from ongebd.pool.runtime import CpuRuntime, Work
>>> model = ongebd.load("persistence")
>>> runtime = CpuRuntime(model)
>>> slot = runtime.open(model.configured())
>>> picture = runtime.accept(np.zeros((120, 160, 3), np.uint8))
>>> finish = runtime.begin([Work(slot, picture, time=0.0)])
>>> finish()[0].is_boundary
False
>>> runtime.close()
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Annotated, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ongebd.backbones.base import check_picture
from ongebd.backbones.pipeline import Glance
from ongebd.common.settings import Range, read_as
from ongebd.detector.config import StreamConfig
from ongebd.detector.detector import OnlineDetector
from ongebd.detector.models import Model
from ongebd.types import Boundary, Decision, Feature, ImageU8

AtLeastOne = Annotated[int, Range(least=1)]

Outcome = Decision | Exception
"""The decision on a frame, or why there is none; the stream is then as it was before the frame."""

Finish = Callable[[], list[Outcome]]
"""Waits for a step that was begun; the outcomes in the order of the work."""

Pixels = npt.NDArray[np.uint8]

Window = tuple[int, int, int, int]
"""Part of a picture: first row, last row + 1, first column, last column + 1."""


class StreamSlot(Protocol):
    """A stream's place in a runtime, as it is after the last step that finished; see `OnlineDetector`."""

    config: StreamConfig
    latency: float

    def drain(self) -> list[Decision]:
        """See `OnlineDetector.drain`."""

    def flush(self) -> Boundary | None:
        """See `OnlineDetector.flush`."""

    def closed(self) -> list[Boundary]:
        """See `OnlineDetector.closed`."""

    def new_epoch(self) -> Boundary | None:
        """See `OnlineDetector.new_epoch`."""

    def retune(self, config: StreamConfig, /) -> None:
        """See `OnlineDetector.retune`."""


class Work(NamedTuple):
    """One frame of one stream: what `accept` or `accept_feature` returned, and its time in seconds."""

    slot: Any
    given: Any
    time: float


class Runtime:
    """Runs the streams of one model.

    Steps begin before others have finished, so epochs and other knobs come in two parts: `restart_ahead` and
    `retune_ahead` are called in the order of `begin`, the slot's functions in the order of finishing.

    Attributes:
        max_batch: The most frames in one step.
        depth: How many steps may be under way together.
    """

    max_batch: int
    depth = 2

    def open(self, config: StreamConfig) -> StreamSlot:
        """A slot for a new stream, whose settings are all filled in.

        Raises:
            ConfigError: No slot is free, or the runtime doesn't support a setting.
        """
        raise NotImplementedError

    def release(self, slot: Any) -> None:
        """Free a slot after its last step has finished."""

    def restart_ahead(self, slot: Any) -> None:
        """The next frame that is begun starts a new epoch."""

    def retune_ahead(self, slot: Any, config: StreamConfig) -> None:
        """Use other knobs for the frames that are begun from now on."""

    def accept(self, picture: ImageU8, copy: bool = True) -> Any:
        """Check a picture and keep what is needed of it; any thread may call this.

        Without a copy, the picture must not change until its outcome is known.

        Raises:
            FrameError: It is not uint8 of shape (height, width, 3).
        """
        raise NotImplementedError

    def accept_feature(self, feature: Feature) -> Any:
        """Keep a feature, (D,), instead of a picture."""
        raise NotImplementedError

    def window(self, height: int, width: int) -> Window:
        """The part of a picture of that size that the backbone looks at."""
        return 0, height, 0, width

    def accept_windows(self, height: int, width: int, windows: Pixels, memory: Pixels) -> list[list[Any]]:
        """Keep arrays that will hold the `window` of many pictures of that size, without a copy.

        The windows are (N, M, rows, columns, 3), and lie in the memory, (bytes,). The result is N lists of M.
        """
        return [list(several) for several in windows]

    def begin(self, work: Sequence[Work]) -> Finish:
        """Start a step: at most `max_batch` frames, at most one of each slot."""
        raise NotImplementedError

    def close(self) -> None:
        """Release threads and memory once all steps have finished. A second call does nothing."""


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
