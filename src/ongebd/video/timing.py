"""When each frame is shown, and which frames make up a wanted rate. Both use timestamps alone."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from math import floor, isfinite

from ongebd.errors import ConfigError, a_number, shown

DEFAULT_RATE = Fraction(25)
"""Frames a second of a source without timestamps, unless the user gives a rate (FFmpeg's default too)."""
_WRAP = 2**33
# Slots begin early: a file's clock may tick in whole milliseconds, and a camera's frames jitter.
_EARLY = Fraction(1, 4)
_LEAP = 10  # seconds ahead that are no frame held for long, but another clock
# Distances between frames are counted in units of 1/_TICKS s, up to a second.
_TICKS = 100_000


@dataclass(frozen=True, slots=True)
class Tick:
    """A frame's time since the first frame and how long it is shown, exact seconds; why an epoch broke."""

    time: Fraction
    duration: Fraction
    broke: str | None = None


class Unwrapped:
    """Undoes the wrap of MPEG's 33-bit timestamps, which start again at 0 after 26.5 hours.

    Each becomes the value nearest to the one before it. So a wrap goes on counting, and a step back that
    FFmpeg took for a wrap (it does for any of more than a minute) is a step back again.

    >>> unwrapped = Unwrapped()
    >>> [unwrapped(stamp) - 2**33 for stamp in (2**33 - 2, 0, 3, 1, 2**33 - 1)]
    [-2, 0, 3, 1, -1]
    """

    def __init__(self) -> None:
        self._last: int | None = None

    def __call__(self, stamp: int | None) -> int | None:
        """The next timestamp."""
        if stamp is None:
            return None
        if self._last is not None:
            stamp = self._last + (stamp - self._last + _WRAP // 2) % _WRAP - _WRAP // 2
        self._last = stamp
        return stamp


class Clock:
    """The time of each decoded frame, from 0 on. The rate that a file declares isn't used; it is often wrong.

    A clock that steps back breaks the epoch: the new epoch continues where the old one ended, so time never
    decreases. The clock of a transport stream may leap ahead, too (a joined file, an encoder that restarted);
    in other files a long distance between two frames means that the first one is shown for long.

    Some files (any AVI with B-frames, some MP4) call the order of decoding presentation time. If presentation
    stamps step back and decoding stamps don't, the clock reads those, as FFmpeg's tools do.

    Args:
        untimed_rate: Frames a second for sources without any timestamps.
        trust_pts: False for containers that hold no presentation times (AVI).
        wraps: Whether the timestamps come from a 33-bit counter.
        leaps: Whether a leap ahead (more than ten seconds, and four times the longest step before) breaks the
            epoch.

    >>> clock = Clock()
    >>> [str(clock.tick(pts, None, 0, Fraction(1, 10)).time) for pts in (100, 104, 104, 106)]
    ['0', '2/5', '2/5', '3/5']
    >>> clock.tick(100, None, 0, Fraction(1, 10))
    Tick(time=Fraction(4, 5), duration=Fraction(1, 5), broke='the clock stepped back by 0.6 s')
    """

    def __init__(
        self,
        untimed_rate: Fraction = DEFAULT_RATE,
        *,
        trust_pts: bool = True,
        wraps: bool = False,
        leaps: bool = False,
    ) -> None:
        self._untimed_step = 1 / untimed_rate
        self._unwrapped = (Unwrapped(), Unwrapped()) if wraps else None  # presentation, decoding
        self._trust_pts, self._leaps = trust_pts, leaps
        self._longest = Fraction(0)  # the longest distance between two frames
        self._last: Fraction | None = None
        self._step: Fraction | None = None  # the last distance between two frames
        # Within an epoch, time = stamp + shift.
        self._pts_shift: Fraction | None = None
        self._dts_shift: Fraction | None = None
        self._last_pts: Fraction | None = None
        self._newest_dts: Fraction | None = None
        self.untimed = 0
        """Frames timed by the assumed rate because no timestamp had come yet."""
        self.reordered = False
        """Whether presentation stamps turned out to be in decoding order."""

    def tick(self, pts: int | None, dts: int | None, duration: int, time_base: Fraction) -> Tick:
        """Read one frame's time from its timestamps and declared duration, in units of `time_base` seconds.

        A timestamp may be None, the duration 0. `dts` is the packet's.
        """
        if self._unwrapped is not None:
            pts, dts = self._unwrapped[0](pts), self._unwrapped[1](dts)
        presented = None if pts is None else pts * time_base
        decoded = None if dts is None else dts * time_base
        shown = duration * time_base
        went_back = _before(decoded, self._newest_dts)
        if self._trust_pts and _before(presented, self._last_pts) and decoded is not None and not went_back:
            self._trust_pts, self.reordered = False, True

        by_pts = self._trust_pts and presented is not None
        stamp, shift = (presented, self._pts_shift) if by_pts else (decoded, self._dts_shift)
        self.untimed += stamp is None and self._pts_shift is None and self._dts_shift is None
        time = self._next(shown) if stamp is None or shift is None else stamp + shift

        broke = None
        if self._last is not None and time < self._last:
            if by_pts or went_back:
                broke = f"the clock stepped back by {float(self._last - time):.3g} s"
                time = self._next(shown)
            else:  # decoding stamps lag by a few frames when they take over
                time = self._last
        if self._last is not None and time > self._last and not broke:
            ahead = time - self._last
            if self._leaps and self._step is not None and ahead > max(Fraction(_LEAP), 4 * self._longest):
                broke = f"the clock jumped ahead by {float(ahead):.3g} s"
                time = self._next(shown)
            else:
                self._step, self._longest = ahead, max(self._longest, ahead)
        self._last, self._last_pts = time, presented
        if presented is not None and (broke or self._pts_shift is None):
            self._pts_shift = time - presented
        if decoded is not None and (broke or self._dts_shift is None):
            self._dts_shift = time - decoded
        if decoded is not None and (broke or not went_back):
            self._newest_dts = decoded
        return Tick(time, shown or self._step or Fraction(0), broke)

    def skip(self) -> None:
        """Frames are left out: the next one may be shown at any time."""
        self._last = self._last_pts = self._newest_dts = None

    def restart(self) -> None:
        """Another video follows: its first frame comes after the last one, whatever its timestamps."""
        if self._unwrapped is not None:
            self._unwrapped = (Unwrapped(), Unwrapped())
        self._pts_shift = self._dts_shift = self._last_pts = self._newest_dts = None

    def _next(self, shown: Fraction) -> Fraction:
        """The time of a frame that follows the last one and has no usable timestamp."""
        if self._last is None:
            return Fraction(0)
        return self._last + (self._step or shown or self._untimed_step)


def _before(stamp: Fraction | None, other: Fraction | None) -> bool:
    return stamp is not None and other is not None and stamp < other


def exact_rate(fps: float | Fraction, name: str = "fps") -> Fraction:
    """A rate in frames a second as a fraction; a float near an NTSC rate (29.97, 23.976, …) becomes that.

    >>> exact_rate(29.97), exact_rate(6.0), exact_rate(12.5)
    (Fraction(30000, 1001), Fraction(6, 1), Fraction(25, 2))

    Raises:
        ConfigError: The rate isn't a number above 0.
    """
    number = a_number(name, fps)
    if not (isfinite(number) and number > 0):
        raise ConfigError(f"{name} must be a number above 0, not {number:g}")
    rate = fps if isinstance(fps, Fraction) else Fraction(float(fps))
    if isinstance(fps, Fraction) or rate.denominator == 1:
        return rate
    ntsc = Fraction(round(rate * 1001 / 1000) * 1000, 1001)
    return ntsc if ntsc and abs(ntsc - rate) < Fraction(6, 1000) else rate


Moment = float | Fraction | str
"""A time in a video: seconds, or text, as people write it: 90, 1:30, 0:01:30.5."""

_MOMENT = re.compile(r"(?:(?:(\d+):)?([0-5]?\d):(?=[0-5]?\d(?:\.|$)))?(\d+(?:\.\d+)?)", re.ASCII)


def seconds_of(moment: Moment, name: str) -> Fraction:
    """A time in a video, in seconds, exact.

    >>> seconds_of("90", "start"), seconds_of("1:02:03.5", "start"), seconds_of(0.1, "start")
    (Fraction(90, 1), Fraction(7447, 2), Fraction(1, 10))

    Raises:
        ConfigError: It isn't one, or is below 0.
    """
    if isinstance(moment, str):
        if len(moment) < 40 and (parts := _MOMENT.fullmatch(moment.strip())):
            return int(parts[1] or 0) * 3600 + int(parts[2] or 0) * 60 + Fraction(parts[3])
        raise ConfigError(f"{name} must be seconds or h:mm:ss, such as 90 or 0:01:30, not {shown(moment)}")
    number = a_number(name, moment)
    if not (isfinite(number) and number >= 0):
        raise ConfigError(f"{name} must be a time of at least 0, not {number:g}")
    return moment if isinstance(moment, Fraction) else Fraction(repr(number))


def part_of(
    start: Moment | None, end: Moment | None, duration: Moment | None
) -> tuple[Fraction, Fraction | None]:
    """Where a part of a video begins and ends, in seconds; None: with the video.

    Raises:
        ConfigError: A time isn't one, or the part is empty.
    """
    begin = Fraction(0) if start is None else seconds_of(start, "start")
    if end is not None and duration is not None:
        raise ConfigError("use either end or duration, not both")
    if duration is not None:
        until: Fraction | None = begin + seconds_of(duration, "duration")
    else:
        until = None if end is None else seconds_of(end, "end")
    if until is not None and until <= begin:
        raise ConfigError(
            f"no video is left between {float(begin):g} s and {float(until):g} s; give a later end"
        )
    return begin, until


class Sampler:
    """Thins frames to a steady rate: the first one in each slot of 1/fps s. Slots begin a quarter early.

    Below the wanted rate it takes every frame, and `shortfall` is true.

    >>> sampler = Sampler(Fraction(24))
    >>> [n for n in range(11) if sampler.take(Fraction(n, 30))]
    [0, 1, 3, 4, 5, 6, 8, 9, 10]

    Args:
        fps: Frames a second, above 0.
    """

    def __init__(self, fps: Fraction) -> None:
        self.fps = fps
        self._slot: int | None = None
        self._before: Fraction | None = None  # the last frame seen, taken or not
        self._steps: Counter[int] = Counter()  # how often two frames were so far apart, in ticks

    def take(self, time: Fraction) -> bool:
        """Whether the sample includes the frame shown at `time` (seconds, never decreasing)."""
        if self._before is not None and time > self._before:
            self._steps[min(round((time - self._before) * _TICKS), _TICKS)] += 1
        self._before = time
        slot = floor(time * self.fps + _EARLY)
        if self._slot is not None and slot <= self._slot:
            return False
        self._slot = slot
        return True

    def restart(self) -> None:
        """Take the next frame, whatever its time: a new epoch begins."""
        self._slot = self._before = None

    @property
    def rate(self) -> float | None:
        """Frames a second of the source, from the median distance between frames; None before there are two.

        Gaps left by lost frames don't count.
        """
        seen, middle = 0, (self._steps.total() + 1) // 2
        for ticks, often in sorted(self._steps.items()):
            seen += often
            if seen >= middle:
                return _TICKS / max(ticks, 1)
        return None

    @property
    def shortfall(self) -> bool:
        """Whether the source has clearly fewer frames than wanted (judged from 24 frames on).

        Both the mean and the median distance must be too large: gaps raise only the mean, and frames that
        come in pairs only the median.
        """
        count, wanted = self._steps.total(), 0.97 * float(self.fps)
        if count < 23 or self.rate is None:
            return False
        mean = count * _TICKS / sum(ticks * often for ticks, often in self._steps.items())
        return mean < wanted and self.rate < wanted
