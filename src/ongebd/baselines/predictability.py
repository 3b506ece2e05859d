"""Predictability assessment, the unsupervised method of the paper that defined the task, made to stream.

Shou, Lei, Wang, Ghadiyaram and Feiszli: Generic Event Boundary Detection: A Benchmark for Event Segmentation.
ICCV 2021. A moment is predictable if the mean feature of the frames before it is close to that of the frames
after it; boundaries are where this distance peaks. The original looks for peaks over the whole video, with a
Laplacian of Gaussian: `ongebd.offline.predictability`. Here a frame's score is the distance itself, known a
few frames later, and a head decides on it.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

from ongebd.types import Feature


class Predictability:
    """A scorer (`ongebd.detector.detector.Scorer`): ‖mean before − mean after‖² / 4, of unit features.

    The frame itself is the first of those after. At the end of a stream there are fewer.

    >>> scorer = Predictability(before=2, after=2)
    >>> east, north = np.float32([1, 0]), np.float32([0, 3])
    >>> [scorer.update(feature, 0.0) for feature in (east, east, east, north, north)]
    [None, None, 0.0, 0.125, 0.5]
    >>> scorer.flush()
    [0.125]

    Args:
        before: Frames before.
        after: Frames after; one less is the latency.
    """

    name: str = "predictability"

    def __init__(self, before: int = 8, after: int = 5) -> None:
        self.before = before
        self.after = after
        self.latency = after - 1
        self._unit: deque[npt.NDArray[np.float64]] = deque(maxlen=before + after)
        self.reset()

    @property
    def state_bytes(self) -> int:
        """Of the last directions."""
        return sum(direction.nbytes for direction in self._unit)

    def reset(self) -> None:
        """Forget everything seen."""
        self._unit.clear()
        self._left = self.latency  # frames until the first score

    def update(self, feature: Feature, time: float) -> float | None:
        """The score of the frame `latency` frames before this one, whose feature is (D,)."""
        del time
        exact = feature.astype(np.float64)  # squares in float32 overflow from 1e19 on, and vanish under 1e-23
        self._unit.append(exact / np.linalg.norm(exact))
        if self._left:
            self._left -= 1
            return None
        return self._score(self.after)

    def flush(self) -> list[float | None]:
        """The scores of the last frames, from what there is after them."""
        held = min(self.latency, self.latency - self._left)
        return [self._score(after) for after in range(held, 0, -1)]

    def _score(self, after: int) -> float | None:
        """Of the frame that has `after` frames from itself to the newest."""
        frames = np.stack(self._unit)  # (≤ before + after, D)
        earlier = frames[max(0, len(frames) - after - self.before) : len(frames) - after]
        if not len(earlier):
            return None
        apart = earlier.mean(axis=0) - frames[len(frames) - after :].mean(axis=0)
        return float(np.clip(apart @ apart / 4, 0.0, 1.0))
