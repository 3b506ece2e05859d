"""From boundaries to segments, as many and as long as people want, and a sharp picture of each."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Annotated

import numpy as np

from ongebd.common.settings import Range, check_fields
from ongebd.errors import ConfigError
from ongebd.types import Boundary, Decision, ImageU8
from ongebd.video import VideoReader


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Which of the boundaries that were found are wanted. Fewer are always a part of more.

    Raises:
        ConfigError: A value is of the wrong type or out of range.
    """

    min_length: Annotated[float, Range(least=0)] | None = None
    """Shortest segment, in seconds. Weaker boundaries are dropped."""

    max_per_minute: Annotated[float, Range(above=0)] | None = None
    """Maximum boundaries a minute: a file's strongest; in a live stream, those stronger than recent ones."""

    chapters: Annotated[int, Range(least=1)] | None = None
    """Maximum number of segments. The strongest boundaries divide the file."""

    def __post_init__(self) -> None:
        check_fields(self)

    def __bool__(self) -> bool:
        return self != Selection()


def strength(boundary: Boundary) -> float:
    """What boundaries are ranked by: their peak; before it is known, cuts first, then by their score."""
    return boundary.score + (boundary.kind == "cut") if boundary.peak is None else boundary.peak


def selected(boundaries: Iterable[Boundary], start: float, end: float, wanted: Selection) -> list[Boundary]:
    """The wanted boundaries of a file, by time; `start` and `end` are its own, in seconds.

    First, segments that are too short are merged; with `chapters` alone, those of less than a second. Then
    the strongest boundaries are taken. `max_per_minute` always allows one.
    """
    shortest = wanted.min_length
    if shortest is None:
        shortest = 0.0 if wanted.chapters is None else 1.0
    kept = merged(sorted(boundaries, key=lambda one: one.time), start, end, shortest)
    most = len(kept)
    if wanted.max_per_minute is not None:
        most = min(most, max(1, int(wanted.max_per_minute * (end - start) / 60)))
    if wanted.chapters is not None:
        most = min(most, wanted.chapters - 1)
    strongest = sorted(kept, key=lambda one: (-strength(one), one.time))[:most]
    return sorted(strongest, key=lambda one: one.time)


def merged(boundaries: Sequence[Boundary], start: float, end: float, shortest: float) -> list[Boundary]:
    """The boundaries left when no segment is shorter than `shortest` seconds.

    As long as the shortest segment is too short, the weaker of its two boundaries goes. The order in which
    they go doesn't depend on `shortest`, so a larger one only removes more.

    Args:
        boundaries: By time.
        start: Where the first segment begins.
        end: Where the last one ends.
        shortest: Seconds.
    """
    times = [start, *(one.time for one in boundaries), end]
    last = len(times) - 1
    strengths = [inf, *map(strength, boundaries), inf]
    before, after = [place - 1 for place in range(last + 1)], [place + 1 for place in range(last + 1)]
    gone = [False] * (last + 1)
    heap = [(times[place + 1] - times[place], place, place + 1) for place in range(last)]
    heapq.heapify(heap)
    while heap:
        length, left, right = heapq.heappop(heap)
        if gone[left] or gone[right] or after[left] != right:
            continue
        if length >= shortest or (left == 0 and right == last):
            break
        weaker = left if strengths[left] < strengths[right] or right == last else right
        gone[weaker] = True
        left, right = before[weaker], after[weaker]
        after[left], before[right] = right, left
        heapq.heappush(heap, (times[right] - times[left], left, right))
    return [one for one, out in zip(boundaries, gone[1:-1], strict=True) if not out]


class Pace:
    """Which boundaries of a stream are reported, decided at once.

    Each boundary gets a *distance*: to the nearest told one before it that could object. It is told if the
    distance is at least `seconds`. One that could object is itself at a larger distance, so what is told with
    more seconds is always a part of what is told with fewer, and two that are told are never closer.

    Args:
        seconds: Distance that is wanted.
        start: Where the stream begins; the first segment has its length too.
        ranked: Only boundaries that are at least as strong object. A stronger one is then told immediately.

    >>> pace = Pace(10)
    >>> [time for time in (3, 11, 12, 20, 30) if pace.tells(time, 1)]
    [11, 30]
    >>> pace = Pace(10, ranked=True)
    >>> [time for time, score in ((3, 1), (5, 2), (11, 1), (22, 1)) if pace.tells(time, score)]
    [3, 5, 22]
    """

    def __init__(self, seconds: float, start: float = 0.0, *, ranked: bool = False) -> None:
        self._seconds = seconds
        self._recent: deque[tuple[float, float, float]] = deque()  # time, distance, strength
        if not ranked:
            self._recent.append((start, inf, inf))
        self._ranked = ranked

    def tells(self, time: float, strength: float) -> bool:
        """Whether the boundary at this time is reported; times never decrease."""
        while self._recent and time - self._recent[0][0] >= self._seconds:
            self._recent.popleft()
        distance = min(
            (
                time - earlier
                for earlier, reach, score in self._recent
                if reach > time - earlier and (score >= strength or not self._ranked)
            ),
            default=inf,
        )
        self._recent.append((time, distance, strength))
        return distance >= self._seconds


class Told:
    """Which boundaries of a stream are reported: those that keep every `Pace` of a selection."""

    def __init__(self, wanted: Selection, start: float = 0.0) -> None:
        self._paces = [Pace(wanted.min_length, start)] if wanted.min_length else []
        if wanted.max_per_minute is not None:
            # Stronger ones that come early add two fifths in a busy stream: measured on random strengths.
            self._paces.append(Pace(90 / wanted.max_per_minute, ranked=True))

    def __call__(self, time: float, strength: float) -> bool:
        """Whether the boundary at this time is reported; times never decrease."""
        told = [pace.tells(time, strength) for pace in self._paces]  # each must see every boundary
        return all(told)


class Choice:
    """A selection at work on one source, whose boundaries come one at a time.

    Args:
        wanted: The selection.
        start: Where the source begins, in seconds.
        stream: The name of a source without a known end, of which boundaries are told at once; None: a file,
            whose selection is known at its end.

    Attributes:
        found: Boundaries so far.

    Raises:
        ConfigError: A stream can't be divided into chapters.
    """

    def __init__(self, wanted: Selection, start: float, stream: str | None) -> None:
        if stream is not None and wanted.chapters is not None:
            raise ConfigError(f"{stream}: chapters need a file, whose end is known; use --max-per-minute")
        self.found = 0
        self._wanted, self._start = wanted, start
        self._told = None if stream is None else Told(wanted, start)
        self._held: list[Boundary] = []

    def take(self, boundary: Boundary) -> list[Boundary]:
        """The next boundary that was found, if it is wanted and that is known already."""
        self.found += 1
        if self._told is None:
            self._held.append(boundary)
            return []
        told = [boundary] if self._told(boundary.time, strength(boundary)) else []
        self._held += told
        return told

    def closes(self, boundary: Boundary) -> bool:
        """Take a boundary again, once its peak is known; whether it was given before."""
        for place in reversed(range(len(self._held))):  # one or two may have come since
            if self._held[place].onset == boundary.onset:
                if self._told is None:
                    self._held[place] = boundary
                    return False
                del self._held[: place + 1]
                return True
        return False

    def rest(self, end: float) -> list[Boundary]:
        """The source ended: the wanted boundaries that were not given."""
        return [] if self._told else selected(self._held, self._start, end, self._wanted)


@dataclass(frozen=True, slots=True)
class Segment:
    """The video between two boundaries. All times are in seconds.

    Attributes:
        start: Where it begins.
        end: Where it ends.
        boundary: The boundary at its start; None for the first segment.
        keyframe: Time of a frame that represents it: the calmest one, away from the ends.
    """

    start: float
    end: float
    boundary: Boundary | None
    keyframe: float


def segments_of(
    boundaries: Iterable[Boundary], decisions: Sequence[Decision], start: float, end: float
) -> list[Segment]:
    """The segments between boundaries, which may come in any order; together they cover the video."""
    edges: list[tuple[float, Boundary | None]] = [(start, None)]
    for boundary in sorted(boundaries, key=lambda one: one.time):
        if edges[-1][0] < boundary.time < end:
            edges.append((boundary.time, boundary))
    times = [decision.time for decision in decisions]
    found = []
    for (begin, first), (until, _) in zip(edges, [*edges[1:], (end, None)], strict=True):
        middle, margin = (begin + until) / 2, (until - begin) / 5
        inner = decisions[bisect_left(times, begin + margin) : bisect_left(times, until - margin)]
        calm = min(inner, key=lambda one: (one.error, abs(one.time - middle)), default=None)
        found.append(Segment(begin, until, first, middle if calm is None else calm.time))
    return found


_AROUND = 0.5
"""Seconds on either side of the calmest moment in which the sharpest picture is looked for."""
_FPS = 12


def keyframes(
    reader: Callable[..., VideoReader], segments: Iterable[Segment]
) -> Iterator[tuple[Segment, ImageU8]]:
    """Each segment with the sharpest picture about its `keyframe`, which then says when that is.

    Args:
        reader: Opens the source from `start` to `end` seconds, at `fps` frames a second.
        segments: Of the source.
    """
    for segment in segments:
        around = min(_AROUND, (segment.end - segment.start) / 5)
        # A picture that is shown for long may begin before those seconds.
        for begin, end in (
            (segment.keyframe - around, segment.keyframe + around),
            (segment.start, segment.end),
        ):
            best, time, picture = -1.0, segment.keyframe, None
            start = max(Fraction(0), Fraction(begin))
            with reader(fps=_FPS, start=start, end=Fraction(end)) as video:
                for frame in video:
                    if (sharp := sharpness(frame.rgb)) > best:
                        best, time, picture = sharp, float(frame.time), frame.rgb
            if picture is not None:
                yield replace(segment, keyframe=time), picture
                break


def sharpness(rgb: ImageU8) -> float:
    """How much detail a picture has: the mean square of the Laplacian of its green."""
    green = rgb[..., 1].astype(np.float32)
    across = np.diff(green, 2, axis=1)
    down = np.diff(green, 2, axis=0)
    return float(np.square(across).sum() + np.square(down).sum()) / max(1, green.size)
