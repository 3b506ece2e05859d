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


class HysteresisHead:
    """A threshold that holds on: positive above it, and from then on until the score is well below it.

    So a score that trembles about the threshold makes one boundary. All it remembers is whether the last
    frame was positive.

    >>> head = HysteresisHead(0.4, rearm=0.5)
    >>> [head.update(score).is_boundary for score in (0.3, 0.5, 0.3, 0.19, 0.3)]
    [False, True, True, False, False]

    Args:
        threshold: A frame is positive where its score is above; above 0.
        rearm: The part of the threshold under which the score must fall to be negative again, in (0, 1].

    Raises:
        ConfigError: One is out of its range.
    """

    def __init__(self, threshold: float, rearm: float) -> None:
        if not (isfinite(threshold) and threshold > 0):
            raise ConfigError(f"threshold must be a number above 0, not {threshold}")
        if not 0 < rearm <= 1:
            raise ConfigError(f"rearm must be a number above 0 and at most 1, not {rearm}")
        self.threshold = float(threshold)
        self.rearm = float(rearm)
        self.mean = self.std = 0.0
        self.reset()

    def reset(self) -> None:
        """Forget the last score."""
        self.is_boundary = self.ready = False
        self.z = 0.0

    def update(self, score: float, /) -> Self:
        """Take the next score; `z` is the score itself."""
        self.z = float(score)
        if self.is_boundary:
            self.is_boundary = not self.z < self.rearm * self.threshold
        else:
            self.is_boundary = self.z > self.threshold
        self.ready = True
        return self


OBD, THRESHOLD, HYSTERESIS = "obd", "threshold", "hysteresis"
HEADS = (OBD, THRESHOLD, HYSTERESIS)
"""The names of all heads."""


def make_head(
    name: str, discriminator: Callable[[], Head], threshold: float | None, rearm: float | None = None
) -> Head:
    """A new head.

    Args:
        name: One of `HEADS`.
        discriminator: Makes the paper's.
        threshold: Of the two with a fixed one.
        rearm: Of the one with hysteresis.

    Raises:
        ConfigError: There is no such head, or a setting is missing or out of range.
    """
    if name == OBD:
        return discriminator()
    if name in (THRESHOLD, HYSTERESIS):
        if threshold is None:
            raise ConfigError(f"head {name} needs a value: set threshold")
        if name == THRESHOLD:
            return ThresholdHead(threshold)
        if rearm is None:
            raise ConfigError(f"head {name} needs a value: set rearm")
        return HysteresisHead(threshold, rearm)
    raise ConfigError(f"unknown head {name!r}; there are {', '.join(HEADS)}")
