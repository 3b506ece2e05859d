"""Cues: a few numbers a frame that tell how much, and in what way, a stream has just changed.

They are errors of many horizons and motion. None tells what is seen, so what is learned on them learns
nothing of appearance.

**The start of a stream.** One rule holds for all: the frames before the first do not exist. A mean is over
those of its frames that exist; a frame, or a mean of frames, that lies wholly before the first one is the
first frame.

All of it is arithmetic on arrays of fixed shape with a fixed history, without a branch on a value: a batch of
streams is the same with one more axis in front.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

from ongebd.backbones.pipeline import LUMA_DIM
from ongebd.errors import ConfigError
from ongebd.estimator.appearance import TINY, AppearanceCues, RecentFeatures
from ongebd.estimator.motion import SIDE, MotionCues, MotionMemory
from ongebd.types import Feature

Floats = npt.NDArray[np.float32]

CONTEXT = (0, 3, 6, 12)
"""Frames ago."""
LEAST_WEIGHT = 1 - 0.5 ** (1 / 24.0)  # of the newest frame in the running mean: a half-life of 24 frames


class CueStream:
    """The cues of one stream, whose state it owns.

    Args:
        dim: D, numbers in a feature, luma included: those of the backbone `efficientnet_lite0_whole`.

    Attributes:
        cut: Whether a hard cut lies before the last frame: see `CutDetector`.
    """

    names = (*AppearanceCues.names, *MotionCues.names)

    def __init__(self, dim: int) -> None:
        if dim <= LUMA_DIM:
            raise ConfigError(f"cues: features of {dim} numbers have no luma of {SIDE} × {SIDE} at their end")
        self._network_dim = dim - LUMA_DIM
        self._appearance = AppearanceCues(self._network_dim)
        self._motion = MotionCues()
        self._cuts = CutDetector()
        self.cut = False
        self.state_bytes = sum(part.state_bytes for part in (self._appearance, self._motion, self._cuts))

    def reset(self) -> None:
        """Forget everything."""
        self._appearance.reset()
        self._motion.reset()
        self._cuts.reset()

    def update(self, feature: Feature, sudden: bool = True) -> Floats:
        """Take the next frame's feature, float32, (D,), and what a `Glance` says; the cues, float32, (C,)."""
        appearance = self._appearance.update(feature[: self._network_dim])
        self.cut = self._cuts.update(self._appearance.recent, sudden)
        return np.concatenate([appearance, self._motion.update(feature[self._network_dim :])])


CUT_FRAMES = 4  # before a cut, from which the first one after it differs
CUT_MEMORY, CUT_WARMUP = 24, 8  # frames
CUT_ERROR, CUT_FLOOR, CUT_MOST = 0.21, 0.01, 4.0
"""Set on 113 cuts, 22 composites and 3,000 pairs of frames from our clips; CUT_ERROR, on 336 cuts too."""


class CutDetector:
    """Says of each frame of one stream, when it comes, whether a hard cut lies before it.

    After a cut the picture is unlike each of the last four, by more than any two neighbours of the last
    second, and its luma changes suddenly, by more than the light: see `Glance`.
    """

    state_bytes = 8 * CUT_MEMORY

    def __init__(self) -> None:
        self._errors = deque[float](maxlen=CUT_MEMORY)  # of neighbours between which no cut lies

    def reset(self) -> None:
        """Forget everything."""
        self._errors.clear()

    def update(self, recent: RecentFeatures, sudden: bool) -> bool:
        """Take the next frame: its feature and earlier ones, and whether its luma changed as at a cut."""
        length = min(recent.count, CUT_FRAMES + 1)
        if length < 2:
            return False
        gram = recent.gram[:length, :length]
        lengths = np.sqrt(gram[0, 0] * gram.diagonal()[1:])
        errors = (1.0 - gram[0, 1:] / np.maximum(lengths, TINY)) / 2.0
        if sudden and len(self._errors) >= CUT_WARMUP:
            least = float(errors.min())
            stands_out = min(max(least / max(*self._errors, CUT_FLOOR), 1.0), CUT_MOST)
            if least * stands_out**0.25 > CUT_ERROR:
                return True
        self._errors.append(float(errors[0]))
        return False


INPUTS = len(CueStream.names) * (len(CONTEXT) + 1) + MotionMemory.size
"""How many numbers the trees see."""


class Context:
    """What the trees see of one stream.

    The cues now, 3, 6 and 12 frames ago, now less their mean before this frame, and the memory of motion.
    Before there are so many frames, the first one's are used. The mean is exponential, with a half-life of 24
    frames; it begins with the first cues, and weighs the early ones evenly.

    Args:
        cues: C, how many there are; the last ones are those of motion.
    """

    def __init__(self, cues: int) -> None:
        self._past: Floats = np.empty((max(CONTEXT) + 1, cues), np.float32)
        self._mean: Floats = np.empty(cues, np.float32)
        self._memory = MotionMemory()
        self.state_bytes = self._past.nbytes + self._mean.nbytes + self._memory.state_bytes
        self._seen = 0

    def reset(self) -> None:
        """Forget everything."""
        self._seen = 0
        self._memory.reset()

    def update(self, cues: Floats) -> Floats:
        """Take the next frame's, float32, (C,); what the trees see, (5 C + 6,)."""
        now = self._seen
        self._seen += 1
        self._past[now % len(self._past)] = cues
        if not now:
            self._mean[:] = cues
        above = cues - self._mean
        weight = np.float32(max(LEAST_WEIGHT, 1 / (now + 2)))
        self._mean += weight * above
        lagged = self._past.take([max(now - lag, 0) % len(self._past) for lag in CONTEXT], axis=0)
        memory = self._memory.update(cues[-len(MotionCues.names) :])
        return np.concatenate([lagged.reshape(-1), above, memory])
