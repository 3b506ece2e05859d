"""What runs the streams of one model: the same for the CPU and the GPU.

A runtime takes frames of many streams at once, each stream's in order, and gives the decision on each. It
owns the memory in which the streams' states lie; a *lane* is one stream's place in it. `begin` starts the
work on some frames, at most one of each lane, and returns at once; `finish` waits for it. Steps are begun in
order by one thread and finished in the same order by one thread, which may be another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ongebd.backbones import FrameError
from ongebd.detector.config import StreamConfig
from ongebd.types import Boundary, Decision, Feature, ImageU8

L = TypeVar("L", bound="Lane")

Outcome = Decision | Exception
"""What became of a frame: the decision on it, or why there is none; the stream is then as before it."""


@dataclass(frozen=True, slots=True)
class Work(Generic[L]):
    """One frame of one lane.

    Attributes:
        lane: Whose.
        given: What `accept` or `accept_feature` made of the frame.
        time: Seconds.
    """

    lane: L
    given: Any
    time: float


class Lane(Protocol):
    """One stream in a runtime. What it does to the stream happens in the order of `Step.finish`.

    Attributes:
        config: Its settings, every one filled in.
    """

    config: StreamConfig

    @property
    def latency(self) -> float:
        """Seconds of future that a verdict waits for, as in `OnlineDetector`."""

    @property
    def state_bytes(self) -> int:
        """Bytes that the method keeps of the stream, wherever they lie."""

    def drain(self) -> list[Decision]:
        """The decisions that a look-ahead still held back; see `OnlineDetector.drain`."""

    def flush(self) -> Boundary | None:
        """The boundary still open; see `OnlineDetector.flush`."""

    def break_off(self) -> None:
        """A new epoch begins with the next frame that is begun. Called in the order of `Runtime.begin`."""

    def new_epoch(self) -> Boundary | None:
        """The same in the order of `Step.finish`; returns what `flush` would."""

    def retune_ahead(self, config: StreamConfig) -> None:
        """Other settings, by `check_retuning`, for what is begun from now on. In the order of `begin`."""

    def retune(self, config: StreamConfig) -> None:
        """The same in the order of `Step.finish`."""


class Step(Protocol):
    """Work that was begun."""

    def finish(self) -> list[Outcome]:
        """Wait for it; the outcomes in the order of the work."""


class Runtime(Protocol[L]):
    """Runs the streams of one model.

    Attributes:
        device: "cpu", or a torch device.
        precision: In what backbone and method compute: "float32", "bfloat16" or "float16".
        max_batch: The most frames in one step.
        depth: How many steps may be under way at once.
    """

    device: str
    precision: str
    max_batch: int
    depth: int

    def open(self, config: StreamConfig) -> L:
        """A place for a new stream.

        Args:
            config: Every setting filled in.

        Raises:
            ConfigError: There is no place left, or a setting cannot be had here.
        """

    def release(self, lane: L) -> None:
        """Give a stream's place back, after its last step was finished."""

    def accept(self, picture: ImageU8, copy: bool = True) -> Any:
        """Check a picture and keep what is needed of it. May be called from any thread.

        Args:
            picture: Upright, RGB, uint8, (height, width, 3).
            copy: Keep a copy; otherwise the picture must stay as it is until its outcome is there.

        Raises:
            FrameError: It is no such picture.
        """

    def window(self, height: int, width: int) -> Window:
        """The part of pictures of a size that is looked at."""

    def pin(self, memory: npt.NDArray[np.uint8]) -> Any:
        """Prepare memory, (bytes,), of which many pictures will be parts, for `accept_window`."""

    def accept_window(self, pixels: ImageU8, height: int, width: int, pinned: Any = None) -> Any:
        """Keep that part of a picture, not a copy; what `accept` of the whole picture with no copy keeps.

        Args:
            pixels: The part.
            height: Of the whole picture.
            width: Likewise.
            pinned: What `pin` made of the memory in which it lies.
        """

    def accept_feature(self, feature: Feature) -> Any:
        """The same for a feature, (D,), in place of a picture."""

    def begin(self, work: Sequence[Work[L]]) -> Step:
        """Start a step: at most `max_batch` frames, at most one of each lane."""

    def close(self) -> None:
        """Give threads and memory back. All steps must be finished."""


Window = tuple[int, int, int, int]
"""Of a picture: first and last + 1 of some rows, first and last + 1 of some columns."""


def check_picture(picture: ImageU8) -> ImageU8:
    """An upright RGB picture, or an error that says what was given.

    Raises:
        FrameError: It is not uint8 of shape (height, width, 3), or empty.
    """
    picture = np.asarray(picture)
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or 0 in picture.shape:
        wanted = "uint8 of shape (height, width, 3), RGB"
        raise FrameError(f"the frame is {picture.dtype} of shape {picture.shape}, wanted {wanted}")
    return picture
