"""The best picture of an incident."""

from __future__ import annotations

from collections import deque
from math import inf

import numpy as np
import numpy.typing as npt

from ongebd.detector.segments import sharpness
from ongebd.types import ImageU8
from ongebd.watch.incidents import Look

_STEP = 0.15
"""Seconds between two pictures that are compared."""
_BEFORE = 1.5
"""How many seconds before its start an incident's pictures are compared with."""


def look_of(rgb: ImageU8) -> ImageU8:
    """A few hundred points of a picture's green: enough to see how much of it changed."""
    step = max(1, min(rgb.shape[:2]) // 32)
    return rgb[step // 2 :: step, step // 2 :: step, 1].copy()


class Album:
    """Judges the pictures of a stream: a good one is sharp, and differs from before the incident.

    Attributes:
        best: The best picture of the incident that isn't published.
    """

    def __init__(self) -> None:
        self._looks: deque[tuple[float, ImageU8]] = deque()
        self._changes: list[npt.NDArray[np.float32]] = []
        self._before: ImageU8 | None = None
        self._due = 0.0
        self.best: ImageU8 | None = None

    def add(self, time: float, look: ImageU8) -> None:
        """The next frame's look."""
        if self._looks and (time < self._looks[-1][0] or look.shape != self._looks[-1][1].shape):
            self._looks.clear()
        self._looks.append((time, look))
        while time - self._looks[0][0] > _BEFORE:
            self._looks.popleft()

    def begin(self) -> None:
        """An incident starts with the next frame."""
        self._before, self._due, self.best = self._looks[0][1] if self._looks else None, -inf, None
        self._changes = []

    def judge(self, picture: ImageU8 | None) -> tuple[float, Look] | None:
        """Judge the newest frame.

        Returns:
            How good its picture is, and where the pictures of the incident differ from before; None if one
            was judged just before, or there is nothing to compare it with.
        """
        time, look = self._looks[-1]
        if time < self._due or self._before is None or self._before.shape != look.shape:
            return None
        self._due = time + _STEP
        change = np.abs(np.subtract(look, self._before, dtype=np.float32))
        self._changes.append(change)
        quality = 0.0 if picture is None else float((1 + sharpness(picture)) * (1 + change.mean()))
        return quality, _where(np.mean(self._changes, axis=0))


def _where(change: npt.NDArray[np.float32]) -> Look:
    """Which squares of 4 × 4 points changed, as a vector of length 1; None if nothing did."""
    height, width = (max(4, side // 4 * 4) for side in change.shape)
    padded = np.resize(change, (height, width)) if change.shape < (4, 4) else change[:height, :width]
    squares = padded.reshape(height // 4, 4, width // 4, 4).mean(axis=(1, 3)).ravel()
    squares = np.maximum(squares - np.median(squares), 0)
    length = float(np.linalg.norm(squares))
    return squares / length if length > 1 else None
