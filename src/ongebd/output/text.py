"""Lines for people, a CSV table, and WebVTT chapters."""

from __future__ import annotations

import csv
from math import floor

from ongebd.common.text import printable, public_name, spoken_name
from ongebd.output.writer import RunEnd, RunHeader, Target, TextFile, Writer, rounded
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
    ticks = max(0, _ticks(seconds, digits))
    whole, fraction = divmod(ticks, 10**digits)
    minutes, second = divmod(whole, 60)
    text = f"{minutes // 60:0{hours}d}:{minutes % 60:02d}:{second:02d}"
    return f"{text}.{fraction:0{digits}d}" if digits else text


def _ticks(seconds: float, digits: int = 3) -> int:
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


class VttWriter(Writer):
    """Writes the events between boundaries as WebVTT cues, each as soon as its end is known.

    Cues follow each other without gap or overlap. A boundary that is not after the previous one (the source's
    clock stepped back, or both fall into one millisecond) starts no cue; a NOTE says so.
    """

    def __init__(self, target: Target, header: RunHeader) -> None:
        self._out = TextFile(target)
        self._start = 0  # of the open cue, milliseconds
        self._events = 0
        self._out.write(
            f"{vtt_start(header.source)} {_note(header.version)}, model {_note(public_name(header.model))}.\n"
            "A cue starts at the centre of an event boundary and ends at the centre of the next one.\n\n"
        )

    def boundary(self, boundary: Boundary) -> None:
        """Close the open cue at the boundary's centre."""
        end = _ticks(boundary.time)
        if end > self._start:
            self._cue(end)
        else:
            self._out.write(
                f"NOTE The boundary at {_stamp(end)} starts no event: it is not after the previous one.\n\n"
            )

    def close(self, end: RunEnd) -> None:
        """Write the last cue, which ends with the video."""
        duration = _ticks(end.duration)
        if duration > self._start:
            self._cue(duration)
        self._out.close()

    def _cue(self, end: int) -> None:
        self._events += 1
        self._out.write(f"{_stamp(self._start)} --> {_stamp(end)}\nEvent {self._events}\n\n")
        self._start = end


def vtt_start(source: str) -> str:
    """How a file of chapters begins; it says whose they are."""
    return f"WEBVTT\n\nNOTE Events of {_note(spoken_name(source))}\nfound by ongebd"


def picture_title(source: str) -> str:
    """What a picture's file says of its source."""
    return f"ongebd, events of {public_name(source)!a}"


def _stamp(milliseconds: int) -> str:
    return clock(milliseconds / 1000, hours=2)


def _note(text: str) -> str:
    return printable(text).replace("-->", "->")  # the arrow would turn the note into a cue
