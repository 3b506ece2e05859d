"""The pictures of a stream's news: as JPEG, and the best one of an incident."""

from __future__ import annotations

import io
from collections import deque
from math import inf

import numpy as np

from ongebd.detector.keyframes import sharpness
from ongebd.types import ImageU8

_STEP = 0.15
"""Seconds between two pictures that are compared."""
_BEFORE = 1.5
"""How many seconds before its start an incident's pictures are compared with."""


def jpeg(picture: ImageU8) -> bytes:
    """A picture as a JPEG file."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "JPEG", quality=82)
    return buffer.getvalue()


def look_of(rgb: ImageU8) -> ImageU8:
    """A few hundred points of a picture's green: enough to see how much of it changed."""
    step = max(1, min(rgb.shape[:2]) // 32)
    return rgb[step // 2 :: step, step // 2 :: step, 1].copy()


class Album:
    """Judges the pictures of a stream: a good one is sharp, and differs from before the incident."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, ImageU8]] = deque()
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

    def quality(self, picture: ImageU8) -> float:
        """How good the newest frame's picture is, above 0; 0 if one was judged just before."""
        time, look = self._looks[-1]
        if time < self._due:
            return 0.0
        self._due = time + _STEP
        before = look if self._before is None or self._before.shape != look.shape else self._before
        change = np.abs(look.astype(np.int16) - before).mean()
        return float((1 + sharpness(picture)) * (1 + change))
