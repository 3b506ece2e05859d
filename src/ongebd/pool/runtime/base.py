"""What runs the streams of one model: the same for the CPU and the GPU.

A runtime takes frames of many streams together, each stream's in order, and gives the decision on each.
`begin` starts a step: some frames, at most one of each stream. It returns immediately; what it returns waits
for the step. One thread begins steps, and one thread, which may be another, finishes them in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ongebd.common.settings import Range
from ongebd.detector.config import StreamConfig
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
