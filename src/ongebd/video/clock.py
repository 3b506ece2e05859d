"""Turns a stream's timestamps into exact seconds that start at 0 and never go back."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

DEFAULT_RATE = Fraction(25)
"""Frames a second of a source that has no timestamps, where the user gives no rate (as FFmpeg has it)."""
_WRAP = 2**33


@dataclass(frozen=True, slots=True)
class Tick:
    """What the clock says of one frame.

    Attributes:
        time: Seconds since the first frame, exact.
        duration: How long the frame is shown, as well as is known; seconds.
        broke: Why a new epoch begins with this frame, or None.
    """

    time: Fraction
    duration: Fraction
    broke: str | None = None


class Unwrapped:
    """Timestamps of a counter of 33 bits, as MPEG's are: it begins again at 0 after 26.5 hours of 90 kHz.

    Each is taken for the one nearest to that before it, so a wrap goes on, and what FFmpeg took for a wrap
    (any step back by more than a minute) is the step back that it was.

    >>> unwrapped = Unwrapped()
    >>> [unwrapped(stamp) - 2**33 for stamp in (2**33 - 2, 0, 3, 1, 2**33 - 1)]
    [-2, 0, 3, 1, -1]
    """

    def __init__(self) -> None:
        self._last: int | None = None

    def __call__(self, stamp: int | None) -> int | None:
        """The next one, in ticks; None where there is none."""
        if stamp is None:
            return None
        if self._last is not None:
            stamp = self._last + (stamp - self._last + _WRAP // 2) % _WRAP - _WRAP // 2
        self._last = stamp
        return stamp


class Clock:
    """The time of each decoded frame, from its timestamps alone.

    Time starts at 0 whatever the first timestamp is. A clock that steps back breaks the epoch: the new one
    goes on where the old one ended, so that time never decreases. The frame rate that a file declares is
    never used; it is often wrong.

    Some files (any AVI with B-frames, some MP4) number their frames in the order of decoding and call that
    presentation time. There the presentation stamps step back while the decoding stamps do not; from then on
    the decoding stamps are read, as FFmpeg's own tools do.

    Args:
        untimed_rate: Frames a second where there are no timestamps at all.
        trust_pts: False for containers that hold no presentation times (AVI).
        wraps: Whether stamps are those of a counter of 33 bits.

    >>> clock = Clock()
    >>> [str(clock.tick(pts, None, 0, Fraction(1, 10)).time) for pts in (100, 104, 104, 106)]
    ['0', '2/5', '2/5', '3/5']
    >>> clock.tick(100, None, 0, Fraction(1, 10))
    Tick(time=Fraction(4, 5), duration=Fraction(1, 5), broke='the clock stepped back by 0.6 s')
    """

    def __init__(
        self, untimed_rate: Fraction = DEFAULT_RATE, *, trust_pts: bool = True, wraps: bool = False
    ) -> None:
        self._untimed_step = 1 / untimed_rate
        self._unwrapped = (Unwrapped(), Unwrapped()) if wraps else None  # presentation, decoding
        self._trust_pts = trust_pts
        self._last: Fraction | None = None
        self._step: Fraction | None = None  # the last distance between two frames
        # Within an epoch, time = stamp + shift.
        self._pts_shift: Fraction | None = None
        self._dts_shift: Fraction | None = None
        self._last_pts: Fraction | None = None
        self._newest_dts: Fraction | None = None
        self.untimed = 0
        """Frames timed by the assumed rate, for no timestamp was seen yet."""
        self.reordered = False
        """Whether presentation stamps were found to be in the order of decoding."""

    def tick(self, pts: int | None, dts: int | None, duration: int, time_base: Fraction) -> Tick:
        """Read one frame's time.

        Args:
            pts: Its presentation timestamp, in units of `time_base`; None where it has none.
            dts: The decoding timestamp of the packet that brought it; None where there is none.
            duration: Its declared duration in the same units, 0 where unknown.
            time_base: Seconds a unit.
        """
        if self._unwrapped is not None:
            pts, dts = (
                unwrapped(stamp) for unwrapped, stamp in zip(self._unwrapped, (pts, dts), strict=True)
            )
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
            else:  # decoding stamps lag by a few frames where they take over
                time = self._last
        self._remember(time, presented, decoded, afresh=broke is not None)
        return Tick(time, shown or self._step or Fraction(0), broke)

    def _next(self, shown: Fraction) -> Fraction:
        """The time of a frame that follows the last one with no timestamp to say when."""
        if self._last is None:
            return Fraction(0)
        return self._last + (self._step or shown or self._untimed_step)

    def _remember(
        self, time: Fraction, presented: Fraction | None, decoded: Fraction | None, *, afresh: bool
    ) -> None:
        if self._last is not None and time > self._last and not afresh:
            self._step = time - self._last
        self._last, self._last_pts = time, presented
        if presented is not None and (afresh or self._pts_shift is None):
            self._pts_shift = time - presented
        if decoded is not None:
            if afresh or self._dts_shift is None:
                self._dts_shift = time - decoded
            if afresh or not _before(decoded, self._newest_dts):
                self._newest_dts = decoded


def _before(stamp: Fraction | None, other: Fraction | None) -> bool:
    return stamp is not None and other is not None and stamp < other
