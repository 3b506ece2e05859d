"""What a method says of each frame of one stream: a score that is high where an event ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ongebd.estimator.anticipation import Anticipator, ErrorFunction
from ongebd.types import Feature


class Scorer(Protocol):
    """A method at work on one stream, whose state it owns. A head decides on the scores."""

    @property
    def name(self) -> str:
        """The method's name."""

    @property
    def latency(self) -> int:
        """Frames of future that the score of a frame waits for; 0 for an online method."""

    @property
    def state_bytes(self) -> int:
        """Bytes that it keeps of the stream; they do not grow with it."""

    def update(self, feature: Feature, time: float) -> float | None:
        """Take the next frame.

        Args:
            feature: Of the frame, float32, (D,).
            time: Seconds.

        Returns:
            The score of the frame `latency` frames before this one; None where that frame has none, because
            there is no such frame or nothing to compare it with.
        """

    def flush(self) -> Sequence[float | None]:
        """The stream is over: the scores of the last `latency` frames, or of those that there were."""

    def reset(self) -> None:
        """Forget everything seen."""


class AnticipationScorer:
    """The paper's score: how wrong an anticipator was about a frame.

    Args:
        anticipator: It keeps no state.
        error: From a feature and its anticipation to ε.
        dim: D.
    """

    latency: int = 0

    def __init__(self, anticipator: Anticipator, error: ErrorFunction, dim: int) -> None:
        self.name = anticipator.name
        self._anticipator = anticipator
        self._error = error
        self._past: npt.NDArray[np.float32] = np.empty((anticipator.window, dim), np.float32)
        self._seen = 0

    @property
    def state_bytes(self) -> int:
        """Of the last L features."""
        return self._past.nbytes

    def update(self, feature: Feature, time: float) -> float | None:
        """ε of this frame; None for the first, which nothing predicts."""
        del time
        seen = min(self._seen, len(self._past))
        error = self._error(feature, self._anticipator.anticipate(self._past[-seen:])) if seen else None
        self._past[:-1] = self._past[1:]
        self._past[-1] = feature
        self._seen += 1
        return error

    def flush(self) -> list[float | None]:
        """Nothing is held back."""
        return []

    def reset(self) -> None:
        """Forget the past features."""
        self._seen = 0
