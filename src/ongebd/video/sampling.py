"""Thins a stream of frames to a wanted rate, on their times alone."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import floor, isfinite

from ongebd.errors import ConfigError, a_number

# Slots begin early: a file's clock may tick in whole milliseconds, and a camera's frames jitter.
_EARLY = Fraction(1, 4)
# Distances between frames are counted in units of 1/_TICKS s, up to a second.
_TICKS = 100_000


def exact_rate(fps: float | Fraction, name: str = "fps") -> Fraction:
    """A rate in frames a second as a fraction.

    A float that stands for one of NTSC's rates (29.97, 23.976, …) becomes that: a whole number × 1000/1001.

    >>> exact_rate(29.97), exact_rate(6.0), exact_rate(12.5)
    (Fraction(30000, 1001), Fraction(6, 1), Fraction(25, 2))

    Raises:
        ConfigError: The rate is not a number above 0.
    """
    number = a_number(name, fps)
    if not (isfinite(number) and number > 0):
        raise ConfigError(f"{name} must be a number above 0, not {number:g}")
    rate = fps if isinstance(fps, Fraction) else Fraction(float(fps))
    if isinstance(fps, Fraction) or rate.denominator == 1:
        return rate
    ntsc = Fraction(round(rate * 1001 / 1000) * 1000, 1001)
    return ntsc if ntsc and abs(ntsc - rate) < Fraction(6, 1000) else rate


class Sampler:
    """Chooses the frames of a stream that come nearest to a steady rate, each at most once.

    Time is cut into slots of 1/fps seconds, each beginning a quarter of a slot early, and the first frame
    in a slot is taken. No frame is invented: below the wanted rate every frame is taken, and `shortfall`
    says so.

    >>> sampler = Sampler(Fraction(24))
    >>> [n for n in range(11) if sampler.take(Fraction(n, 30))]
    [0, 1, 3, 4, 5, 6, 8, 9, 10]

    Args:
        fps: Frames a second, above 0.
    """

    def __init__(self, fps: Fraction) -> None:
        self.fps = fps
        self._slot: int | None = None
        self._first: Fraction | None = None
        self._last = Fraction(0)
        self._taken = 0
        self._before: Fraction | None = None  # the last frame seen, taken or not
        self._steps: Counter[int] = Counter()  # how often two frames lay so far apart, in ticks

    def take(self, time: Fraction) -> bool:
        """Whether the frame shown at `time` (seconds, never decreasing) is one of the sample."""
        if self._before is not None and time > self._before:
            self._steps[min(round((time - self._before) * _TICKS), _TICKS)] += 1
        self._before = time
        slot = floor(time * self.fps + _EARLY)
        if self._slot is not None and slot <= self._slot:
            return False
        self._slot = slot
        self._first = time if self._first is None else self._first
        self._last = time
        self._taken += 1
        return True

    def restart(self) -> None:
        """Take the next frame, whatever its time: a new epoch begins."""
        self._slot = self._before = None

    @property
    def rate(self) -> float | None:
        """Frames a second of the source, by the usual distance between two; None before there are two.

        Frames that were lost to damage make gaps, which do not count.
        """
        seen, middle = 0, (self._steps.total() + 1) // 2
        for ticks, often in sorted(self._steps.items()):
            seen += often
            if seen >= middle:
                return _TICKS / max(ticks, 1)
        return None

    @property
    def shortfall(self) -> bool:
        """Whether the source gives clearly fewer frames than were asked for (judged from 24 frames on).

        It does where both the mean and the usual distance of its frames are too large: the mean alone is so
        of a source with gaps, the usual one of frames that come in pairs.
        """
        if self._taken < 24 or self._first is None or self._last == self._first:
            return False
        wanted = 0.97 * float(self.fps)
        mean = float((self._taken - 1) / (self._last - self._first))
        return mean < wanted and (self.rate or 0.0) < wanted
