"""Lines for people, a CSV table, and lists of segments, which are written as they are found."""

from __future__ import annotations

import csv
from collections.abc import Callable
from fractions import Fraction
from math import floor
from typing import NamedTuple

from ongebd.common.text import printable, public_name
from ongebd.output.writer import Frames, RunEnd, RunHeader, Target, TextFile, Writer, mark, rounded
from ongebd.types import Boundary, Epoch


def clock(seconds: float, *, digits: int = 3, hours: int = 1) -> str:
    """Write a time as hours, minutes and seconds, rounded down; a time below 0 as 0.

    Args:
        seconds: The time.
        digits: Digits of the fraction of a second, 0 to 9.
        hours: Minimum number of digits of the hours.

    Example:
        >>> clock(3.25), clock(360_000, digits=0), clock(59.9996, hours=2)
        ('0:00:03.250', '100:00:00', '00:00:59.999')
    """
    whole, fraction = divmod(max(0, ticks(seconds, digits)), 10**digits)
    minutes, second = divmod(whole, 60)
    text = f"{minutes // 60:0{hours}d}:{minutes % 60:02d}:{second:02d}"
    return f"{text}.{fraction:0{digits}d}" if digits else text


def ticks(seconds: float, digits: int = 3) -> int:
    """Whole ticks, rounded down: who cuts or seeks there gets the first frame that is not before this time.

    Rounded up, that would be the frame after it. (The millionth makes up for binary fractions: 1.001 s.)
    """
    return floor(seconds * float(10**digits) + 1e-6)


class LineWriter(Writer):
    """Writes a line for each boundary, and one that starts with `#` for a break in the source.

    Onset and decision are named where they differ from the time.

    Example:
        >>> import sys
        >>> LineWriter(sys.stdout).boundary(Boundary(time=3.25, onset=3.167, decided=3.375, score=6.08))
        0:00:03.250  onset 0:00:03.167  decided 0:00:03.375  score 6.1
        >>> LineWriter(sys.stdout).boundary(Boundary(time=3.25, onset=3.25, decided=3.25, score=0.62))
        0:00:03.250  score 0.62
    """

    def __init__(self, target: Target, prefix: str = "") -> None:
        self._out = TextFile(target)
        self._prefix = printable(prefix)

    def boundary(self, boundary: Boundary) -> None:
        time = clock(boundary.time)
        others = {"onset": clock(boundary.onset), "decided": clock(boundary.decided)}
        named = "".join(f"  {name} {other}" for name, other in others.items() if other != time)
        self._out.write(
            f"{self._prefix}{time}{named}  score {boundary.score:.{1 if abs(boundary.score) >= 1 else 2}f}\n"
        )

    def epoch(self, epoch: Epoch) -> None:
        self._out.write(f"{self._prefix}# {clock(epoch.time)}  {printable(public_name(epoch.reason))}\n")

    def close(self, end: RunEnd) -> None:
        self._out.close()


COLUMNS = ("time", "onset", "decided", "score", "peak", "kind")
_MOST_OPEN = 32
"""Boundaries whose peak may be awaited at a time; each is known within a second."""


class CsvWriter(Writer):
    """Writes a table with one row per boundary; times in seconds, rounded to the microsecond."""

    def __init__(self, target: Target, header: RunHeader) -> None:
        self._out = TextFile(target)
        self._rows = csv.writer(self._out, lineterminator="\n")  # one write per row
        self._rows.writerow(COLUMNS)
        self._open: list[Boundary] = []  # their peaks aren't known yet

    def boundary(self, boundary: Boundary) -> None:
        self._open.append(boundary)
        if len(self._open) > _MOST_OPEN:
            self._write(self._open.pop(0))

    def closed(self, boundary: Boundary) -> None:
        place = next((place for place, one in enumerate(self._open) if one.onset == boundary.onset), None)
        if place is not None:
            del self._open[place]
            self._write(boundary)

    def close(self, end: RunEnd) -> None:
        for boundary in self._open:
            self._write(boundary)
        self._out.close()

    def _write(self, row: Boundary) -> None:
        numbers = [rounded(getattr(row, column)) for column in COLUMNS[:4]]
        self._rows.writerow([*numbers, "" if row.peak is None else rounded(row.peak), row.kind])


SCENES = (
    "Scene Number,Start Frame,Start Timecode,Start Time (seconds),End Frame,End Timecode,End Time (seconds),"
    "Length (frames),Length (timecode),Length (seconds),Start SMPTE,End SMPTE\n"
)


class Row(NamedTuple):
    """How a list of segments is written."""

    digits: int | None
    """Of a second, in a tick; None: a tick is a frame."""

    head: str
    text: Callable[[int, int, int, Fraction], str]
    """A segment's, of its number, start and end in ticks, and ticks a second."""

    skipped: str = ""
    """What is said of a boundary that starts no segment."""


def _arrow(start: int, end: int) -> str:
    return f"{clock(start / 1000, hours=2)} --> {clock(end / 1000, hours=2)}"


def _scene(number: int, start: int, end: int, rate: Fraction) -> str:
    """Frames count from 1; SMPTE time codes drop no numbers."""
    cells: list[object] = [number]
    for frame, first in ((start, start + 1), (end, end), (end - start, end - start)):
        seconds = float(frame / rate)
        cells += [first, clock(seconds, hours=2), f"{seconds:.3f}"]
    codes = (divmod(frame, round(rate)) for frame in (start, end))
    cells += [f"{clock(second, digits=0, hours=2)}:{frame:02d}" for second, frame in codes]
    return ",".join(map(str, cells)) + "\n"


ROWS = {
    "vtt": Row(
        3,
        "WEBVTT\n\nNOTE {mark}\n"
        "A cue starts at the centre of an event boundary and ends at the centre of the next one.\n\n",
        lambda number, start, end, _: f"{_arrow(start, end)}\nEvent {number}\n\n",
        "NOTE The boundary at {time} starts no event: it is not after the previous one.\n\n",
    ),
    "srt": Row(
        3,
        "",
        lambda number, start, end, _: f"{number}\n{_arrow(start, end)}\nEvent {number}\n\n".replace(".", ","),
    ),
    "ffmetadata": Row(
        6,
        ";FFMETADATA1\n; {mark}\n",
        lambda number, start, end, _: (
            f"[CHAPTER]\nTIMEBASE=1/1000000\nSTART={start}\nEND={end}\ntitle=Event {number}\n"
        ),
    ),
    "youtube": Row(
        0, "", lambda number, start, end, _: f"{clock(start, digits=0).removeprefix('0:')} Event {number}\n"
    ),
    "qp": Row(None, "", lambda number, start, end, _: f"{start} I -1\n"),
    "scenes": Row(None, SCENES, _scene),
}


class SegmentWriter(Writer):
    """Writes the segments between boundaries, each as soon as its end is known.

    They follow each other without gap or overlap. A boundary that is not after the previous one (the source's
    clock stepped back, or both fall into one tick) starts none.
    """

    def __init__(self, name: str, target: Target, header: RunHeader) -> None:
        self._row = ROWS[name]
        self._frames = Frames(header) if self._row.digits is None else None
        self._rate = self._frames.rate if self._frames else Fraction(10 ** (self._row.digits or 0))
        self._out = TextFile(target)
        self._start = self._at(float(header.settings.get("start") or 0))  # of the open segment
        self._count = 0
        if self._row.head:
            self._out.write(self._row.head.format(mark=mark(header.source)))

    def _at(self, seconds: float) -> int:
        return self._frames(seconds) if self._frames else max(0, ticks(seconds, self._row.digits or 0))

    def boundary(self, boundary: Boundary) -> None:
        """Close the open segment at the boundary's centre."""
        if not self._closed(boundary.time) and self._row.skipped:
            self._out.write(self._row.skipped.format(time=clock(boundary.time, hours=2)))

    def close(self, end: RunEnd) -> None:
        """Write the last segment, which ends with the video."""
        self._closed(end.duration)
        self._out.close()
        end.warnings.extend(self._frames.note() if self._frames else ())

    def _closed(self, seconds: float) -> bool:
        if (end := self._at(seconds)) <= self._start:
            return False
        self._count += 1
        start, self._start = self._start, end
        self._out.write(self._row.text(self._count, start, end, self._rate))
        return True
