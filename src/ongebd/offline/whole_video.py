"""One whole video through an offline system: from its features to the score of each frame."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ongebd.types import Feature

Scores = npt.NDArray[np.float64]
ScoreVideo = Callable[[npt.NDArray[np.float32], float], Scores]
"""From an unbroken video's features (T, D) and its frames a second to the scores of its frames, (T,)."""


class WholeVideo:
    """A scorer (`ongebd.detector.detector.Scorer`) that waits for the end: it gives all scores at once.

    Args:
        name: Of the system.
        score: The system.
    """

    latency: int = sys.maxsize
    """Longer than any video."""

    def __init__(self, name: str, score: ScoreVideo) -> None:
        self.name = name
        self._score = score
        self._features: list[Feature] = []
        self._times: list[float] = []

    @property
    def state_bytes(self) -> int:
        """Of the features so far: this grows with the video."""
        return sum(feature.nbytes for feature in self._features)

    def reset(self) -> None:
        """Forget everything seen."""
        self._features.clear()
        self._times.clear()

    def update(self, feature: Feature, time: float) -> float | None:
        """Keep the next frame's feature, (D,)."""
        self._features.append(np.asarray(feature, np.float32))
        self._times.append(time)
        return None

    def flush(self) -> list[float | None]:
        """The scores of all frames; none for the first, which ends nothing, and for a frame shown again."""
        if not self._features:
            return []
        times = np.array(self._times)
        new = np.diff(times, prepend=-np.inf) > 0
        frames = [self._features[place] for place in np.flatnonzero(new)]
        scores = iter(self._score(np.stack(frames), rate_of(times[new])))
        found = [float(next(scores)) if each else None for each in new]
        return [None, *found[1:]]


def rate_of(times: npt.NDArray[np.float64]) -> float:
    """Frames a second, from the times of an unbroken video's frames; 1 where there is one frame.

    >>> rate_of(np.arange(5) / 24)
    24.0
    """
    if len(times) < 2 or times[-1] <= times[0]:
        return 1.0
    return 1.0 / float(np.median(np.diff(times)))


def stride_of(fps: float, wanted: float) -> int:
    """Every how many frames of a video at `fps` a system looks that wants about `wanted` frames a second.

    >>> stride_of(24.0, 8.0), stride_of(6.0, 8.0)
    (3, 1)
    """
    return max(1, round(fps / wanted))


def spread(scores: Scores, frames: int, stride: int, scope: int | None) -> Scores:
    """The scores of all frames from those of every `stride`-th.

    Args:
        scores: Of frames 0, stride, 2 · stride, …
        frames: T.
        stride: See above.
        scope: None: scores change evenly between those frames. A number: a frame that is higher than so many
            known ones on either side keeps its score; all others have 0.

    >>> spread(np.array([0.0, 0.4, 0.8]), 5, 2, None)
    array([0. , 0.2, 0.4, 0.6, 0.8])
    >>> spread(np.array([0.1, 0.8, 0.4]), 5, 2, scope=1)
    array([0. , 0. , 0.8, 0. , 0. ])
    """
    places = stride * np.arange(len(scores))
    if scope is None:
        return np.asarray(np.interp(np.arange(frames), places, scores))
    out = np.zeros(frames)
    for number, (place, score) in enumerate(zip(places, scores, strict=True)):
        near = scores[max(0, number - scope) : number + scope + 1]
        if score > 0 and score == near.max() and (near == score).sum() == 1:
            out[place] = score
    return out
