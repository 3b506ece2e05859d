"""Which frames of a faster source make up a stream's rate."""

from __future__ import annotations

from fractions import Fraction

from ongebd.streaming.runtime.base import in_seconds
from ongebd.video.sampling import Sampler


class Due:
    """The answers of `OnlineDetector.due`, for a stream whose detector is elsewhere.

    Args:
        rate: Frames a second.
    """

    def __init__(self, rate: Fraction) -> None:
        self._sampler = Sampler(rate)
        self._asked: Fraction | None = None

    def __call__(self, time: float | Fraction) -> bool:
        """Whether a frame shown at this time is one of them; ask once about each, in order.

        Raises:
            ConfigError: The time is no number.
        """
        seconds = in_seconds(time)
        exact = time if isinstance(time, Fraction) else Fraction(seconds).limit_denominator(1_000_000)
        if self._asked is not None and exact < self._asked:
            self._sampler.restart()
        self._asked = exact
        return self._sampler.take(exact)

    def restart(self) -> None:
        """Take the next frame, whatever its time."""
        self._sampler.restart()
        self._asked = None
