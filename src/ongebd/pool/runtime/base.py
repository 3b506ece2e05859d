"""What runs the streams of one model: the same for the CPU and the GPU.

A runtime takes frames of many streams together, each stream's in order, and gives the decision on each.
`begin` starts the work on some frames, at most one of each stream, and returns immediately; `Step.finish`
waits for it. One thread begins steps, and one thread, which may be another, finishes them in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ongebd.detector.config import StreamConfig
from ongebd.types import Boundary, Decision, Feature, ImageU8

Outcome = Decision | Exception
"""The decision on a frame, or why there is none; the stream is then as it was before the frame."""

Window = tuple[int, int, int, int]
"""Part of a picture: first row, last row + 1, first column, last column + 1."""


class SlotDetector(Protocol):
    """What a slot knows of its stream after the last step finished; `OnlineDetector` is one."""

    config: StreamConfig
    latency: float

    @property
    def state_bytes(self) -> int:
        """Bytes that the method keeps of the stream, wherever they lie."""

    def drain(self) -> list[Decision]:
        """See `OnlineDetector.drain`."""

    def flush(self) -> Boundary | None:
        """See `OnlineDetector.flush`."""

    def new_epoch(self) -> Boundary | None:
        """See `OnlineDetector.new_epoch`."""

    def retune(self, config: StreamConfig, /) -> None:
        """See `OnlineDetector.retune`."""


class StreamSlot:
    """A stream's place in a runtime.

    Steps begin before others have finished, so epochs and other knobs come in two parts: the functions here
    are called in the order of `Runtime.begin`, those of `detector` in the order of `Step.finish`.
    """

    def __init__(self, detector: SlotDetector) -> None:
        self.detector = detector

    def restart_ahead(self) -> None:
        """The next frame that is begun starts a new epoch."""

    def retune_ahead(self, config: StreamConfig) -> None:
        """Use other knobs for the frames that are begun from now on."""


@dataclass(frozen=True, slots=True)
class Work:
    """One frame of one stream: what `accept` or `accept_feature` returned, and its time in seconds."""

    slot: Any
    given: Any
    time: float


class Step(Protocol):
    """Work that was begun."""

    def finish(self) -> Sequence[Outcome]:
        """Wait for it; the outcomes in the order of the work."""


class Runtime:
    """Runs the streams of one model.

    Attributes:
        device: "cpu", or a torch device.
        precision: Of backbone and method: "float32", "bfloat16" or "float16".
        max_batch: The most frames in one step.
        depth: How many steps may be under way together.
    """

    device = "cpu"
    precision = "float32"
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

    def pin(self, memory: npt.NDArray[np.uint8]) -> Any:
        """Prepare memory, (bytes,), that will hold many pictures, for `accept_window`."""
        return None

    def accept_window(self, pixels: ImageU8, height: int, width: int, pinned: Any = None) -> Any:
        """Keep the `window` of a picture of that size without a copy; `pinned` is what `pin` returned."""
        return pixels

    def begin(self, work: Sequence[Work]) -> Step:
        """Start a step: at most `max_batch` frames, at most one of each slot."""
        raise NotImplementedError

    def close(self) -> None:
        """Release threads and memory once all steps have finished. A second call does nothing."""
