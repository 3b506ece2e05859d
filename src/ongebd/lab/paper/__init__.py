"""Every table of the paper as data (`tables.json`): the values as printed, the paper's errors included.

Nothing here was measured by this project. `doubts` and `notes` say which values are wrong or unlikely.

>>> PRINTED["online-kinetics"].value("ESTimator", "avg")
0.748
>>> PRINTED["offline-tapos"].doubts[0].computed
0.278
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

_ORDER = (
    *("tab:online_only", "tab:offline_online_comp", "tab:ablation", "tab:loss_ablation", "tab:fps"),
    *("tab:vidfeat", "tab:obd_outlier_ablation", "tab:obd_ablation", "tab:windowsize_ablation"),
    *("tab:length_comparison", "tab:supp_offline_online_comp", "tab:batchloss", "tab:inria_dataset"),
    "tab:comp_cost",
)
"""The labels of all tables, as the paper numbers them."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Printed cells that are wrong or unlikely.

    Attributes:
        row: The row.
        columns: The cells in it.
        why: Half a sentence.
        computed: The value that the paper's other figures give, if they give one.
    """

    row: str
    columns: tuple[str, ...]
    why: str
    computed: float | None

    def __str__(self) -> str:
        many = len(self.columns) > 5
        columns = f"{self.columns[0]} to {self.columns[-1]}" if many else ", ".join(self.columns)
        return f"{self.row}, {columns}: {self.why}."


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """A table of the paper.

    Attributes:
        caption: What it shows, in our words.
        source: Its label in the paper's LaTeX.
        columns: Names; `0.05` to `0.5` are F1 at that relative distance, `avg` is their mean.
        rows: Values of each row, one per column; None where the paper prints a dash.
        settings: How each row's method ran, if the table says so: `online`, `supervised`, `trained_on`.
        doubts: Cells not to rely on.
        notes: Other remarks, one or two sentences each.
    """

    caption: str
    source: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[float | None, ...]]
    settings: Mapping[str, Mapping[str, Any]]
    doubts: tuple[Doubt, ...]
    notes: tuple[str, ...]

    @property
    def named(self) -> str:
        """Its number in the paper; the supplement's Table 11 has all rows of Table 2."""
        number = 1 + _ORDER.index(self.source)
        return "Tables 2 and 11" if number == 11 else f"Table {number}"

    def value(self, row: str, column: str) -> float | None:
        """One cell; None for a dash, and where the table has no such column."""
        return self.rows[row][self.columns.index(column)] if column in self.columns else None


def _table(content: dict[str, Any]) -> PrintedTable:
    rows = {row.pop("name"): (tuple(row.pop("values")), row) for row in content["rows"]}
    return PrintedTable(
        content["caption"],
        content["source"],
        tuple(content["columns"]),
        {name: values for name, (values, _) in rows.items()},
        {name: settings for name, (_, settings) in rows.items()},
        tuple(Doubt(each.pop("row"), tuple(each.pop("columns")), **each) for each in content["doubts"]),
        tuple(content["notes"]),
    )


_TEXT = (files("ongebd.lab.paper") / "tables.json").read_text(encoding="utf-8")

PRINTED: Mapping[str, PrintedTable] = {key: _table(content) for key, content in json.loads(_TEXT).items()}
"""The tables by name, in the paper's order."""
