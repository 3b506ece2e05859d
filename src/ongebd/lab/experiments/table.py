"""What an experiment is: data, rows and columns, with nothing in it that runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ongebd.lab.experiments.printed import PRINTED

Which = Literal["main", "second", "zero-shot", "tsn-sthv2", "tsn-kinetics"]
"""Which set: Kinetics-GEBD, TAPOS or YouTube-INRIA-Instructional; or the composites in their places. The last
two are Kinetics-GEBD with features of these backbones."""

TSN: Mapping[Which, str] = {"tsn-sthv2": "Something-Something V2", "tsn-kinetics": "Kinetics"}
"""Sets with features of TSN, by the backbone's name: on what it was trained."""

PAPERS: Mapping[Which, str] = {
    "main": "Kinetics-GEBD",
    "second": "TAPOS",
    "zero-shot": "YouTube-INRIA-Instructional",
    "tsn-sthv2": "Kinetics-GEBD",
    "tsn-kinetics": "Kinetics-GEBD",
}
"""On which set the paper's values were measured."""

Kind = Literal["trained", "untrained", "watched", "printed"]
"""`trained` here; `untrained` anticipators, which take features; `watched`: methods that `ongebd.load` names,
fed with features or videos; `printed`: a row that only the paper has."""

LITERAL: Mapping[str, float] = {
    "min_gap": 0.0,
    "min_error": 0.0,
    "min_std": 1e-6,
    "warmup": 8,
    "max_run": 10.0,
}
"""The discriminator as the paper states it: no floors, no gap. (It is silent on the start of a stream.)"""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One way of doing it.

    Attributes:
        name: What it is called in the table.
        kind: How it comes about.
        method: Of a trained one, as `TrainConfig.method`; else its name in `ongebd models`.
        training: Settings of its training that differ from the scale's.
        deciding: Settings of the discriminator that differ from `LITERAL` and Δ = 21.
        obd: Whether the discriminator decides, or a fixed threshold on the error or probability.
        tau: τ; None takes the one that is best on the validation videos. A fixed threshold always is.
        printed: The row of the printed table.
        at: Of a grid: the row's and the column's heading.
    """

    name: str
    kind: Kind = "trained"
    method: str = "estimator"
    training: Mapping[str, Any] = field(default_factory=dict)
    deciding: Mapping[str, Any] = field(default_factory=dict)
    obd: bool = True
    tau: float | None = None
    printed: str | None = None
    at: tuple[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table.

    Attributes:
        name: On the command line.
        title: Above the table.
        asks: What it is to tell, one sentence.
        rows: In order.
        columns: Names of figures (`ongebd.lab.experiments.columns`).
        data: On which set the rows are scored.
        trained_on: On which they are trained.
        printed: Key of the paper's values; None where the paper has no such table.
        printed_columns: Names that columns have there, where they are not the usual ones.
        grid: Names of the two axes, where each row is a cell of a grid.
        speed: Whether it is about speed and cost, and not about scores.
    """

    name: str
    title: str
    asks: str
    rows: tuple[Row, ...]
    columns: tuple[str, ...] = ("average", "relative 0.05", "absolute 0.25", "absolute 0.5")
    data: Which = "main"
    trained_on: Which = "main"
    printed: str | None = None
    printed_columns: Mapping[str, str] = field(default_factory=dict)
    grid: tuple[str, str] | None = None
    speed: bool = False

    def printed_value(self, row: Row, column: str) -> float | None:
        """What the paper prints in a cell; None where it prints nothing."""
        if self.printed is None or row.printed is None:
            return None
        table = PRINTED[self.printed]
        usual = _PRINTED_COLUMNS.get(column, column.removeprefix("relative "))
        name = row.at[1] if row.at is not None else self.printed_columns.get(column, usual)
        if row.at is not None and column != "average":
            return None
        return table.value(row.printed, name) if name in table.columns else None


_PRINTED_COLUMNS = {"average": "avg", "precision 0.05": "precision", "recall 0.05": "recall", "f1 0.05": "f1"}
