"""Scores from what the views of a method say, each of a frame some way back; on the host."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Views:
    """How a frame's score is made: the mean of what each view says of it, at its own time.

    Attributes:
        delays: Of each view, the d for which it speaks, at frame t, of frame t − d.
        latency: Frames of future that a score waits for; no delay is longer.
        cold: The first frames of a stream, which have no score.
    """

    delays: tuple[int, ...]
    latency: int
    cold: int

    @property
    def state_bytes(self) -> int:
        """What `Said` keeps of a stream."""
        return 8 * len(self.delays) * (self.latency + 1)


@runtime_checkable
class SpeaksInViews(Protocol):
    """A `BatchedScorer` whose scores, (B, V), are what its views say; each stream's host part joins them.

    Its `step` says of each frame that it has a score; which ones have one in the end is told by `views`.
    """

    views: Views


class Said:
    """What the views have said of the last frames of one stream; as in `LearnedScorer`.

    Args:
        views: Which there are.
    """

    def __init__(self, views: Views) -> None:
        self.latency = views.latency
        self._views = views
        self._said: deque[Sequence[float]] = deque(maxlen=views.latency + 1)
        self._seen = 0

    def add(self, said: Sequence[float]) -> float | None:
        """Take what is said at the next frame, (V,); the score of the one `latency` before, if it has one."""
        self._said.append(said)
        self._seen += 1
        return self._score_of(self._seen - 1 - self._views.latency)

    def flush(self) -> list[float | None]:
        """The scores of the last `latency` frames, or of those that there were, by what is said now."""
        return [self._score_of(frame) for frame in range(max(0, self._seen - self.latency), self._seen)]

    def reset(self) -> None:
        """Forget everything."""
        self._said.clear()
        self._seen = 0

    def _score_of(self, frame: int) -> float | None:
        if frame < self._views.cold:
            return None
        oldest = self._seen - len(self._said)
        said = [
            self._said[frame + delay - oldest][view]
            for view, delay in enumerate(self._views.delays)
            if frame + delay < self._seen
        ]
        return sum(said) / len(said) if said else None
