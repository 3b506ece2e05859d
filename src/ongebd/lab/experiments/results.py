"""What came of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ongebd.lab.experiments.statistics import Cell
from ongebd.lab.experiments.table import Experiment, Row


@dataclass(frozen=True)
class RowResult:
    """A row of a table.

    Attributes:
        row: Its definition.
        cells: By column; a column without a figure is not in it.
        printed: What the paper prints, by column.
        thresholds: Of each seed.
        failure: Why there is no figure.
        missing: What is not at hand, so that it was left out.
    """

    row: Row
    cells: Mapping[str, Cell] = field(default_factory=dict)
    printed: Mapping[str, float] = field(default_factory=dict)
    thresholds: tuple[float, ...] = ()
    failure: str | None = None
    missing: str | None = None


@dataclass(frozen=True)
class Limit:
    """A floor, or the annotators: what figures stand between.

    Attributes:
        name: What it is.
        cells: By column.
        detail: How it was set.
    """

    name: str
    cells: Mapping[str, float]
    detail: str = ""


@dataclass(frozen=True)
class TableResult:
    """A table.

    Attributes:
        experiment: Its definition.
        data: What the rows were scored on, in words.
        rows: In order.
        limits: Floors, then annotators.
        best: The row that is ahead of all others beyond the noise, by column.
        videos: How many were scored.
        boundaries: Of the first annotator, in all of them.
        seeds: Of every training.
        notes: For below the table.
        missing: Why the table was not run at all.
    """

    experiment: Experiment
    data: str = ""
    rows: tuple[RowResult, ...] = ()
    limits: tuple[Limit, ...] = ()
    best: Mapping[str, str] = field(default_factory=dict)
    videos: int = 0
    boundaries: int = 0
    seeds: int = 0
    notes: tuple[str, ...] = ()
    missing: str | None = None

    @property
    def failures(self) -> list[str]:
        """What went wrong, row by row."""
        return [f"{self.experiment.name}, {row.row.name}: {row.failure}" for row in self.rows if row.failure]
