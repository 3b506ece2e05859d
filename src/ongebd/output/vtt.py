"""WebVTT chapters: one cue an event, written as soon as its end is known."""

from __future__ import annotations

from ongebd.common.text import spoken_name
from ongebd.output.base import QuietSink, RunEnd, RunHeader, Target, TextOut
from ongebd.output.naming import clock, printable, public_name
from ongebd.types import Boundary


class VttSink(QuietSink):
    """Writes the events between the boundaries as cues that follow each other without gap or overlap.

    A boundary that does not lie behind the one before it (the source's clock stepped back, or both fall
    into one millisecond) starts no cue, and a NOTE says so.
    """

    def __init__(self, target: Target, header: RunHeader) -> None:
        self._out = TextOut(target)
        self._start = 0  # of the cue that is open, in milliseconds
        self._events = 0
        self._out.write(
            "WEBVTT\n\n"
            f"NOTE Events of {_plain(spoken_name(header.source))}\n"
            f"found by ongebd {_plain(header.version)}, model {_plain(public_name(header.model))}.\n"
            "A cue starts at the centre of an event boundary and ends at the centre of the next one.\n\n"
        )

    def boundary(self, boundary: Boundary) -> None:
        """Close the open cue at the boundary's centre."""
        end = round(boundary.time * 1000)
        if end > self._start:
            self._cue(end)
        else:
            self._out.write(
                f"NOTE The boundary at {_stamp(end)} starts no event: it is not behind the last one.\n\n"
            )

    def close(self, end: RunEnd) -> None:
        """Write the last cue, which ends with the video."""
        duration = round(end.duration * 1000)
        if duration > self._start:
            self._cue(duration)
        self._out.close()

    def _cue(self, end: int) -> None:
        self._events += 1
        self._out.write(f"{_stamp(self._start)} --> {_stamp(end)}\nEvent {self._events}\n\n")
        self._start = end


def _stamp(milliseconds: int) -> str:
    return clock(milliseconds / 1000, hours=2)


def _plain(text: str) -> str:
    return printable(text).replace("-->", "->")  # the arrow would make a cue of a note
