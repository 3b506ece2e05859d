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

import numpy as np
import numpy.typing as npt

from ongebd.errors import ConfigError
from ongebd.estimator.appearance import AppearanceCues
from ongebd.estimator.motion import SIDE, MotionCues
from ongebd.types import Feature

Floats = npt.NDArray[np.float32]

LUMA_DIM = SIDE * SIDE
"""Numbers of a feature that are luma: the last ones."""

CONTEXT = (0, 3, 6, 12)
"""Frames ago."""
LEAST_WEIGHT = 1 - 0.5 ** (1 / 24.0)  # of the newest frame in the running mean: a half-life of 24 frames


class CueStream:
    """The cues of one stream, whose state it owns.

    Args:
        dim: D, numbers in a feature, luma included: those of the backbone `efficientnet_lite0_whole`.
    """

    names = (*AppearanceCues.names, *MotionCues.names)

    def __init__(self, dim: int) -> None:
        if dim <= LUMA_DIM:
            raise ConfigError(f"cues: features of {dim} numbers have no luma of {SIDE} × {SIDE} at their end")
        self._network_dim = dim - LUMA_DIM
        self._appearance = AppearanceCues(self._network_dim)
        self._motion = MotionCues()
        self.state_bytes = self._appearance.state_bytes + self._motion.state_bytes

    def reset(self) -> None:
        """Forget everything."""
        self._appearance.reset()
        self._motion.reset()

    def update(self, feature: Feature) -> Floats:
        """Take the next frame's feature, float32, (D,); the cues, float32, (C,)."""
        appearance = self._appearance.update(feature[: self._network_dim])
        return np.concatenate([appearance, self._motion.update(feature[self._network_dim :])])


class Context:
    """The cues of one stream now, 3, 6 and 12 frames ago, and now less their mean before this frame.

    Before there are so many frames, the first one's are used. The mean is exponential, with a half-life of 24
    frames; it begins with the first cues, and weighs the early ones evenly.

    Args:
        cues: C, how many there are.
    """

    def __init__(self, cues: int) -> None:
        self._past: Floats = np.empty((max(CONTEXT) + 1, cues), np.float32)
        self._mean: Floats = np.empty(cues, np.float32)
        self.state_bytes = self._past.nbytes + self._mean.nbytes
        self._seen = 0

    def reset(self) -> None:
        """Forget everything."""
        self._seen = 0

    def update(self, cues: Floats) -> Floats:
        """Take the next frame's, float32, (C,); what the trees see, (5 C,)."""
        now = self._seen
        self._seen += 1
        self._past[now % len(self._past)] = cues
        if not now:
            self._mean[:] = cues
        above = cues - self._mean
        weight = np.float32(max(LEAST_WEIGHT, 1 / (now + 2)))
        self._mean += weight * above
        lagged = self._past[[max(now - lag, 0) % len(self._past) for lag in CONTEXT]]
        return np.concatenate([lagged.reshape(-1), above])
