"""What decides on a stream of scores, whatever gave them: the paper's discriminator, or another head."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Protocol, Self

from ongebd.errors import ConfigError


class Head(Protocol):
    """Takes a score at a time and says whether it is a boundary's; `BoundaryDiscriminator` is one.

    Attributes:
        is_boundary: Whether the last score was a boundary's.
        z: How far it stood out, in the head's own measure.
        mean: Of the scores that it was compared with; 0 where a head has none.
        std: Likewise their standard deviation.
        threshold: The score above which it would have been a boundary's; for a head without such a value, the
            score itself.
        ready: Whether the head could decide.
    """

    is_boundary: bool
    z: float
    mean: float
    std: float
    threshold: float
    ready: bool

    def update(self, score: float, /) -> Self:
        """Take the next score."""

    def reset(self) -> None:
        """Forget everything."""


class ThresholdHead:
    """A fixed threshold: a boundary wherever the score lies above it. It remembers nothing.

    >>> head = ThresholdHead(0.5)
    >>> [head.update(score).is_boundary for score in (0.2, 0.5, 0.7)]
    [False, False, True]

    Args:
        threshold: Any number.

    Raises:
        ConfigError: It is none.
    """

    def __init__(self, threshold: float) -> None:
        if not isfinite(threshold):
            raise ConfigError(f"threshold must be a number, not {threshold}")
        self.threshold = float(threshold)
        self.mean = self.std = 0.0
        self.reset()

    def reset(self) -> None:
        """Forget the last score."""
        self.is_boundary = self.ready = False
        self.z = 0.0

    def update(self, score: float, /) -> Self:
        """Take the next score; `z` is the score itself."""
        self.z = float(score)
        self.is_boundary = self.z > self.threshold
        self.ready = True
        return self


OBD, THRESHOLD = "obd", "threshold"
DRIFT_HEADS = ("adwin", "page-hinkley", "kswin")
HEADS = (OBD, THRESHOLD, *DRIFT_HEADS)
"""The names of all heads; a drift detector's may be followed by its settings, `adwin:delta=0.01`."""


def make_head(name: str, discriminator: Callable[[], Head], threshold: float | None) -> Head:
    """A new head.

    Args:
        name: One of `HEADS`.
        discriminator: Makes the paper's.
        threshold: Of the fixed one.

    Raises:
        ConfigError: There is no such head, or a setting is missing or out of range.
        MissingExtraError: A drift detector is asked for, and `river` is not installed.
    """
    kind, _, settings = name.partition(":")
    if kind in DRIFT_HEADS:
        from ongebd.streaming.drift import make_drift_head

        return make_drift_head(kind, settings)
    if name == OBD:
        return discriminator()
    if name == THRESHOLD:
        if threshold is None:
            raise ConfigError("head threshold needs a value: set threshold")
        return ThresholdHead(threshold)
    raise ConfigError(f"unknown head {name!r}; there are {', '.join(HEADS)}")
