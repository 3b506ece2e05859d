"""An experiment as a definition: data, rows and columns. Nothing in it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ongebd.lab.paper import PRINTED, PrintedTable

SetName = Literal["kinetics", "tapos", "inria", "tsn-sthv2", "tsn-kinetics"]
"""The paper's data sets, or composites in their place. The last two are Kinetics-GEBD by TSN's features."""

PAPER_SETS: Mapping[SetName, str] = {
    "kinetics": "Kinetics-GEBD",
    "tapos": "TAPOS",
    "inria": "YouTube-INRIA-Instructional",
    "tsn-sthv2": "Kinetics-GEBD",
    "tsn-kinetics": "Kinetics-GEBD",
}
TSN: Mapping[SetName, str] = {"tsn-sthv2": "Something-Something V2", "tsn-kinetics": "Kinetics"}
"""What each TSN backbone was trained on."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method, or one setting of it.

    Attributes:
        name: In the table.
        kind: `trained` here; an `untrained` anticipator on features; `watched`: a method of `ongebd.load` on
            the videos; `given`: the predictions of another system in a file; `printed`: only in the paper.
        method: Of a trained row, as in `TrainConfig.method`; the file of a given one; else a name from
            `ongebd models`.
        training: Training settings that differ from the scale's.
        deciding: Settings of the discriminator that differ from the paper's (`TrainConfig`).
        obd: Whether the discriminator decides, or a fixed threshold on the error or probability.
        tau: τ, the paper's; None means the best one on the validation videos. A fixed threshold is always
            chosen there.
        printed: The row of the printed table; by default the one with the same name, if any.
        at: In a grid: the headings of row and column.
        why: Why a printed one is not run.
    """

    name: str
    kind: Literal["trained", "untrained", "watched", "given", "printed"] = "trained"
    method: str = "estimator"
    training: Mapping[str, Any] = field(default_factory=dict)
    deciding: Mapping[str, Any] = field(default_factory=dict)
    obd: bool = True
    tau: float | None = 1.5
    printed: str | None = None
    at: tuple[str, str] | None = None
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table.

    Attributes:
        asks: The question it answers, one sentence.
        columns: Names of `ongebd.lab.experiments.scores.SCORES`, or of speed and cost.
        data: The set whose test videos are scored.
        printed: Key of the paper's table; by default the experiment's name.
        average_column: The paper's name for the column `average`.
        grid: Names of the two axes, if each row is a cell of a grid.
        speed: Whether it is about speed and cost instead of scores.
    """

    name: str
    title: str
    asks: str
    rows: tuple[Row, ...]
    columns: tuple[str, ...] = ("average", "relative 0.05", "absolute 0.25", "absolute 0.5")
    data: SetName = "kinetics"
    printed: str = ""
    average_column: str = "avg"
    grid: tuple[str, str] | None = None
    speed: bool = False

    @property
    def trained_on(self) -> SetName:
        """The set whose training videos are used; nothing is trained on INRIA."""
        return "kinetics" if self.data == "inria" else self.data

    @property
    def paper(self) -> PrintedTable | None:
        """The paper's table, if it has one."""
        return PRINTED.get(self.printed or self.name)

    def printed_values(self, row: Row) -> dict[str, float]:
        """The values that the paper prints in a row, by column."""
        name = row.printed or row.name
        if self.paper is None or name not in self.paper.rows:
            return {}
        if row.at is not None:
            names = {"average": row.at[1]}
        else:
            names = {column: column.removeprefix("relative ") for column in self.columns}
            names |= {f"{score} 0.05": score for score in ("precision", "recall", "f1")}
            names |= {"average": self.average_column}
            if "fps" in self.paper.columns:
                names |= {"overall": "fps"}
        values = {column: self.paper.value(name, names[column]) for column in self.columns if column in names}
        return {column: value for column, value in values.items() if value is not None}
