"""Lines for people: one a boundary, for a terminal or a pipe."""

from __future__ import annotations

from ongebd.output.base import QuietSink, RunEnd, Target, TextOut
from ongebd.output.naming import clock, printable, public_name
from ongebd.types import Boundary, Epoch


class LineSink(QuietSink):
    """Writes a line for each boundary as it is found, and one that starts with `#` for a break in the source.

    Example:
        >>> import sys
        >>> LineSink(sys.stdout).boundary(Boundary(time=3.25, onset=3.167, decided=3.375, score=6.08))
        0:00:03.250  onset 0:00:03.167  decided 0:00:03.375  score 6.1
    """

    def __init__(self, target: Target, prefix: str = "") -> None:
        self._out = TextOut(target)
        self._prefix = prefix

    def boundary(self, boundary: Boundary) -> None:
        """Write the centre, the onset, the moment of the decision, and the score."""
        self._line(
            f"{clock(boundary.time)}  onset {clock(boundary.onset)}  decided {clock(boundary.decided)}"
            f"  score {boundary.score:.{1 if abs(boundary.score) >= 1 else 2}f}"
        )

    def epoch(self, epoch: Epoch) -> None:
        """Write that the source broke and the detector started anew."""
        self._line(f"# {clock(epoch.time)}  {printable(public_name(epoch.reason))}")

    def close(self, end: RunEnd) -> None:
        """Close the file, if it is one."""
        self._out.close()

    def _line(self, text: str) -> None:
        self._out.write(f"{self._prefix}{text}\n")
