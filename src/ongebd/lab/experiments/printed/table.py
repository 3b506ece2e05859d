"""One printed table: its values, the setting of its rows, and what is doubtful in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ongebd.errors import ConfigError


@dataclass(frozen=True, slots=True)
class RowSetting:
    """In what setting a row's method was run. None: the table does not say.

    Attributes:
        online: Whether it saw no future.
        supervised: Whether it learned from labels of boundaries.
        trained_on: The data set.
    """

    online: bool | None = None
    supervised: bool | None = None
    trained_on: str | None = None


@dataclass(frozen=True, slots=True)
class Doubt:
    """Printed cells that are wrong, or cannot be right, or are marked as what they are not.

    Attributes:
        row: The row.
        columns: The cells in it.
        why: Half a sentence.
        computed: What the paper's other figures give for the cell; None where they give nothing.
    """

    row: str
    columns: tuple[str, ...]
    why: str
    computed: float | None = None

    def __str__(self) -> str:
        return f"{self.row}, {_some(self.columns)}: {self.why}."


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """A table of the paper.

    Attributes:
        key: Its name in `PRINTED`.
        caption: What it shows, in our words.
        source: Its label in the paper's LaTeX.
        columns: Names of the columns; `0.05` to `0.5` are F1 at that relative distance, `avg` their mean.
        rows: By the row's name, a value for each column as printed; None where a dash is printed.
        settings: Of the rows whose setting the table tells.
        doubts: Cells that are not to be relied on.
        notes: One sentence or two each: first the doubts, then what else a reader ought to know.
    """

    key: str
    caption: str
    source: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[float | None, ...]]
    settings: Mapping[str, RowSetting]
    doubts: tuple[Doubt, ...]
    notes: tuple[str, ...]

    def value(self, row: str, column: str) -> float | None:
        """One cell; None where a dash is printed.

        Raises:
            ConfigError: There is no such row or column; the message names those that there are.
        """
        return self.rows[self._row(row)][self._column(column)]

    def setting(self, row: str) -> RowSetting:
        """A row's setting, as far as the table tells it.

        Raises:
            ConfigError: There is no such row.
        """
        return self.settings.get(self._row(row), RowSetting())

    def doubt(self, row: str, column: str) -> Doubt | None:
        """What is doubtful about a cell, the first if there are several; None where nothing is.

        Raises:
            ConfigError: There is no such row or column.
        """
        self._row(row), self._column(column)
        return next((doubt for doubt in self.doubts if doubt.row == row and column in doubt.columns), None)

    def _row(self, row: str) -> str:
        if row not in self.rows:
            raise ConfigError(f"printed table {self.key} has no row {row!r}; it has {', '.join(self.rows)}")
        return row

    def _column(self, column: str) -> int:
        if column not in self.columns:
            known = ", ".join(self.columns)
            raise ConfigError(f"printed table {self.key} has no column {column!r}; it has {known}")
        return self.columns.index(column)

    @classmethod
    def of(cls, key: str, content: Mapping[str, Any]) -> PrintedTable:
        """The table in a file of `values/`.

        Raises:
            ValueError: A row's length is not the number of columns, a name stands twice, or a doubt is of no
                cell: the file is broken.
        """
        columns = tuple(content["columns"])
        rows = {row["name"]: tuple(row["values"]) for row in content["rows"]}
        if len(rows) != len(content["rows"]) or len(set(columns)) != len(columns):
            raise ValueError(f"{key}: a name stands twice")
        for name, values in rows.items():
            if len(values) != len(columns):
                raise ValueError(f"{key}: {name} has {len(values)} values for {len(columns)} columns")
        doubts = tuple(
            Doubt(doubt["row"], tuple(doubt["columns"]), doubt["why"], doubt["computed"])
            for doubt in content["doubts"]
        )
        for doubt in doubts:
            if doubt.row not in rows or not doubt.columns or not set(doubt.columns) <= set(columns):
                raise ValueError(f"{key}: a doubt is of {doubt.row}, {doubt.columns}, which is no cell")
        told = ("online", "supervised", "trained_on")
        settings = {
            row["name"]: RowSetting(**{name: row[name] for name in told if name in row})
            for row in content["rows"]
            if any(name in row for name in told)
        }
        return cls(
            key,
            content["caption"],
            content["source"],
            columns,
            MappingProxyType(rows),
            MappingProxyType(settings),
            doubts,
            (*map(str, doubts), *content["notes"]),
        )


def _some(columns: tuple[str, ...]) -> str:
    """Names of columns; of many, the first and the last."""
    return ", ".join(columns) if len(columns) <= 5 else f"{columns[0]} to {columns[-1]}"
