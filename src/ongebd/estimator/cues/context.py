"""What a learned head sees: the cues of now and of a moment ago, and how they stand out from their mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

CONTEXT = (0, 3, 6, 12)
"""Frames ago."""
LEAST_WEIGHT = 1 - 0.5 ** (1 / 24.0)  # of the newest frame in the running mean: a half-life of 24 frames


def context_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names of a head's inputs, from those of the cues."""
    lagged = (f"{name}, {lag} ago" if lag else name for lag in CONTEXT for name in names)
    return (*lagged, *(f"{name}, above its mean" for name in names))


class Context:
    """The cues of one stream now, 3, 6 and 12 frames ago, and now less their mean before this frame.

    Before there are so many frames, the first one's stand in. The mean is exponential, with a half-life of 24
    frames; it begins with the first cues, and weighs the early ones evenly.

    Args:
        cues: C, how many there are.
    """

    def __init__(self, cues: int) -> None:
        self._past: Floats = np.empty((max(CONTEXT) + 1, cues), np.float32)
        self._mean: Floats = np.empty(cues, np.float32)
        self._seen = 0

    @property
    def state_bytes(self) -> int:
        """Of past cues and their mean."""
        return self._past.nbytes + self._mean.nbytes

    def reset(self) -> None:
        """Forget everything."""
        self._seen = 0

    def update(self, cues: Floats) -> Floats:
        """Take the next frame's, float32, (C,); what the head sees, (5 C,), named by `context_names`."""
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
