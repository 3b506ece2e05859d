"""The report: Markdown and HTML to read, LaTeX to paste, JSON to go on with, figures."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from ongebd.errors import ConfigError
from ongebd.lab.experiments.layout import Sheet, Text, facts, sheets
from ongebd.lab.experiments.machine import machine
from ongebd.lab.experiments.printed import PRINTED
from ongebd.lab.experiments.results import TableResult
from ongebd.lab.experiments.scales import Scale

_STYLE = (files("ongebd.lab.experiments") / "report.css").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Report:
    """All tables of a run.

    Attributes:
        tables: In order.
        scale: How large it was.
        data: What it was run on, in one sentence.
        command: That makes it again.
        figures: Files of pictures beside the report, with what they show.
    """

    tables: Sequence[TableResult]
    scale: Scale
    data: str
    command: str
    figures: Mapping[str, str]

    def write(self, out: Path) -> list[Path]:
        """Write report.md, report.html, results.json and tables/*.tex.

        Raises:
            ConfigError: The folder cannot be written.
        """
        text = self.markdown()
        written = {
            out / "report.md": text,
            out / "report.html": self.html(text, out),
            out / "results.json": json.dumps(self.data_of(), indent=1, ensure_ascii=False) + "\n",
        }
        for table in self.tables:
            if table.missing is None:
                name = out / "tables" / f"{table.experiment.name}.tex"
                written[name] = "\n\n".join(latex(sheet) for sheet in sheets(table)) + "\n"
        try:
            (out / "tables").mkdir(parents=True, exist_ok=True)
            for path, content in written.items():
                path.write_text(content, encoding="utf-8")
        except OSError as problem:
            raise ConfigError(f"{out}: cannot be written ({problem.strerror}); name another --out") from None
        return list(written)

    def markdown(self) -> str:
        """The report."""
        on = ", ".join(f"{name} {value}" for name, value in machine().items())
        parts = [
            "# The paper's experiments, run again",
            f"{self.data}",
            f"Scale `{self.scale.name}` ({self.scale.says}). {time.strftime('%Y-%m-%d')}; {on}."
            f" `{self.command}`",
            "A clock that never looks at a video scores high by relative distance: read every figure beside"
            " the floors, and F1 at ±0.25 s and ±0.5 s beside the paper's. The discriminator is the paper's"
            " to the letter (no floors, no gap); its start, after eight errors, is ours.",
        ]
        parts += [f"![{says}]({file})\n\n{says}" for file, says in self.figures.items()]
        for table in self.tables:
            parts.append(f"## {table.experiment.title}\n\n{table.experiment.asks}")
            if table.missing is not None:
                parts.append(f"*Not run: {table.missing}.*")
                continue
            if table.data:
                parts.append(f"On **{table.data}**.")
            made = sheets(table)
            for sheet in made:
                head = f"**{sheet.title}**\n\n" if len(made) > 1 else ""
                parts.append(head + _markdown(sheet))
            notes = [*facts(table), *_notes_of(table)]
            parts.append("\n".join(f"- {note}" for note in notes))
        return "\n\n".join(parts) + "\n"

    def html(self, text: str, out: Path) -> str:
        """The same as one page, pictures included."""
        for file in self.figures:
            picture = b64encode((out / file).read_bytes()).decode()
            text = text.replace(f"]({file})", f"](data:image/svg+xml;base64,{picture})")
        page = MarkdownIt("commonmark", {"html": True}).enable("table")
        page.validateLink = lambda url: True  # type: ignore[method-assign]  # of our own making, pictures too
        body = page.render(text)
        body = body.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
        head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        head += f"<title>Experiments</title><style>{_STYLE}</style>"
        return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'

    def data_of(self) -> dict[str, Any]:
        """For the JSON."""
        return {
            "scale": self.scale.name,
            "data": self.data,
            "command": self.command,
            "machine": machine(),
            "tables": [_plain(table) for table in self.tables],
        }


def latex(sheet: Sheet) -> str:
    """A table for LaTeX, with booktabs."""
    lines = [r"\begin{tabular}{l" + "c" * (len(sheet.header) - 1) + "}", r"\toprule"]
    lines += [" & ".join(_tex(name) for name in sheet.header) + r" \\", r"\midrule"]
    for number, row in enumerate(sheet.rows):
        if number in sheet.rules:
            lines.append(r"\midrule")
        lines.append(" & ".join(_tex_cell(cell) for cell in row) + r" \\")
    return "\n".join([f"% {sheet.title}", *lines, r"\bottomrule", r"\end{tabular}"])


def _markdown(sheet: Sheet) -> str:
    lines = ["| " + " | ".join(sheet.header) + " |", "|" + "---|" * len(sheet.header)]
    lines += ["| " + " | ".join(map(_md_cell, row)) + " |" for row in sheet.rows]
    return "\n".join(lines)


def _md_cell(cell: Text) -> str:
    text = escape(cell.text, quote=False).replace("|", r"\|")
    text = f"**{text}**" if cell.bold else f"*{text}*" if cell.printed and cell.text != "–" else text
    return f"{text} <small>({cell.small})</small>" if cell.small else text


_TEX = {"&": r"\&", "%": r"\%", "_": r"\_", "±": r"$\pm$", "τ": r"$\tau$", "Δ": r"$\Delta$", "–": "--"}


def _tex(text: str) -> str:
    text = text.replace("\\", "/")
    for mark, instead in _TEX.items():
        text = text.replace(mark, instead)
    return text


def _tex_cell(cell: Text) -> str:
    text = _tex(cell.text)
    text = rf"\textbf{{{text}}}" if cell.bold else rf"\textit{{{text}}}" if cell.printed else text
    return rf"{text} {{\scriptsize({_tex(cell.small)})}}" if cell.small else text


def _notes_of(table: TableResult) -> list[str]:
    """What is doubtful in the paper's table."""
    key = table.experiment.printed
    return [f"In the paper: {note}" for note in PRINTED[key].notes] if key is not None else []


def _plain(table: TableResult) -> dict[str, Any]:
    return {
        "name": table.experiment.name,
        "title": table.experiment.title,
        "missing": table.missing,
        "data": table.data,
        "videos": table.videos,
        "boundaries": table.boundaries,
        "seeds": table.seeds,
        "best": dict(table.best),
        "rows": [
            {
                "name": row.row.name,
                "cells": {column: asdict(cell) for column, cell in row.cells.items()},
                "printed": dict(row.printed),
                "thresholds": row.thresholds,
                "failure": row.failure,
                "missing": row.missing,
            }
            for row in table.rows
        ],
        "limits": [asdict(limit) for limit in table.limits],
    }
