"""CSV: one row a boundary, written as it is found."""

from __future__ import annotations

import csv

from ongebd.output.base import QuietSink, RunEnd, RunHeader, Target, TextOut, rounded
from ongebd.types import Boundary

COLUMNS = ("time", "onset", "decided", "score")


class CsvSink(QuietSink):
    """Writes a table with the columns of `COLUMNS`; times in seconds, rounded to the microsecond."""

    def __init__(self, target: Target, header: RunHeader) -> None:
        self._out = TextOut(target)
        self._rows = csv.writer(self._out, lineterminator="\n")  # one write a row
        self._rows.writerow(COLUMNS)

    def boundary(self, boundary: Boundary) -> None:
        """Write a row."""
        self._rows.writerow(rounded(getattr(boundary, column)) for column in COLUMNS)

    def close(self, end: RunEnd) -> None:
        """Close the file."""
        self._out.close()
