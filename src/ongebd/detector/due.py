"""Which frames of a faster source make up a stream's rate, and what a frame's time may be."""

from __future__ import annotations

from fractions import Fraction
from math import isfinite

from ongebd.errors import ConfigError, a_number
from ongebd.video.timing import Sampler


class Due:
    """The answers of `OnlineDetector.due`, at a rate in frames a second."""

    def __init__(self, rate: Fraction) -> None:
        self._sampler = Sampler(rate)
        self._asked: Fraction | None = None

    def __call__(self, time: float | Fraction, frame: int | None = None) -> bool:
        """Whether a frame shown at this time is one of them; ask once about each, in order.

        Args:
            time: Seconds; a float is taken for the simple fraction that it stands for.
            frame: Its number, for messages.
        """
        seconds = in_seconds(time, frame)
        exact = time if isinstance(time, Fraction) else Fraction(seconds).limit_denominator(1_000_000)
        if self._asked is not None and exact < self._asked:
            self._sampler.restart()
        self._asked = exact
        return self._sampler.take(exact)

    def restart(self) -> None:
        """Take the next frame, whatever its time."""
        self._sampler.restart()
        self._asked = None


def in_seconds(time: float | Fraction, frame: int | None = None) -> float:
    """A frame's time in seconds; ConfigError, with the frame's number, where it is no finite number."""
    if isinstance(time, float) and isfinite(time):  # as most are, and this is called for each frame
        return time
    if isinstance(time, Fraction):
        return float(time)
    what = "a frame's time" if frame is None else f"frame {frame}: its time"
    seconds = a_number(what, time)
    if not isfinite(seconds):
        raise ConfigError(f"{what} must be a number of seconds, not {seconds}")
    return seconds
