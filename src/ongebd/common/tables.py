"""Tables of text, written as Markdown or LaTeX; `ongebd.cli.tables` prints them on the terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ongebd.common.text import printable

NOTHING = "–"
_FITTING = 7  # columns on a line of LaTeX

_MARKDOWN = re.compile(r"[\\`*<>\[\]|~$&]|(?<![^\W_])_|_(?![^\W_])")
_LATEX = {mark: f"\\{mark}" for mark in "&%_#$"}
_LATEX |= {"\\": "/", "−": "$-$", "±": r"$\pm$", "τ": r"$\tau$", "Δ": r"$\Delta$", "–": "--"}


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with emphasis; `small` follows the text in brackets and small print (an interval, say)."""

    text: str
    bold: bool = False
    italic: bool = False
    small: str = ""

    def __str__(self) -> str:
        return f"{self.text} ({self.small})" if self.small else self.text


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a title and notes below it; `rules` are the rows before which LaTeX draws a line.

    Names of files and videos may be in any text, so unprintable characters are escaped.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    notes: Sequence[str] = ()
    rules: Sequence[int] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", printable(self.title))
        object.__setattr__(self, "header", tuple(map(printable, self.header)))
        object.__setattr__(self, "rows", tuple(tuple(map(_printable, row)) for row in self.rows))
        object.__setattr__(self, "notes", tuple(map(printable, self.notes)))

    @property
    def texts(self) -> list[list[str]]:
        """The rows without emphasis."""
        return [[str(cell) for cell in row] for row in self.rows]


def markdown(table: Table) -> str:
    """The header and the rows."""
    lines = [table.header, ["---"] * len(table.header), *table.rows]
    return "\n".join("| " + " | ".join(map(_markdown_cell, line)) + " |" for line in lines)


def markdown_section(table: Table) -> str:
    """The title as a heading, the table and its notes."""
    return "\n\n".join([f"## {escaped(table.title)}", markdown(table), *map(escaped, table.notes)])


def escaped(text: str) -> str:
    """Text as Markdown that shows exactly this text."""
    return _MARKDOWN.sub(lambda mark: f"\\{mark[0]}", text)


def latex(table: Table) -> str:
    """The table as a `tabular` that needs the package booktabs; a wide one also graphicx, to fit the line."""
    lines = [f"% {table.title}", rf"\begin{{tabular}}{{l{'c' * (len(table.header) - 1)}}}", r"\toprule"]
    for place, row in enumerate([table.header, *table.rows]):
        if place == 1 or place - 1 in table.rules:
            lines.append(r"\midrule")
        lines.append(" & ".join(map(_latex_cell, row)) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    if len(table.header) > _FITTING:
        lines[1:] = [r"\resizebox{\linewidth}{!}{%", *lines[1:], "}"]
    return "\n".join(lines)


def _printable(cell: str | Cell) -> str | Cell:
    return printable(cell) if isinstance(cell, str) else replace(cell, text=printable(cell.text))


def _markdown_cell(cell: str | Cell) -> str:
    if isinstance(cell, str):
        return escaped(cell.strip())
    text = escaped(cell.text.strip())
    if text != NOTHING:
        text = f"**{text}**" if cell.bold else f"*{text}*" if cell.italic else text
    return f"{text} <small>({escaped(cell.small)})</small>" if cell.small else text


def _latex_cell(cell: str | Cell) -> str:
    if isinstance(cell, str):
        return _latex_text(cell.strip())
    text = _latex_text(cell.text.strip())
    text = rf"\textbf{{{text}}}" if cell.bold else rf"\textit{{{text}}}" if cell.italic else text
    return rf"{text} {{\scriptsize({_latex_text(cell.small)})}}" if cell.small else text


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(mark, mark) for mark in text)
