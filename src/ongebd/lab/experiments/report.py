"""The report: Markdown and HTML to read, LaTeX tables to paste, JSON for programs."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from ongebd.common.tables import latex, markdown
from ongebd.errors import os_errors
from ongebd.lab.benchmark.machine import short_machine
from ongebd.lab.experiments.runner import TableResult
from ongebd.lab.experiments.scales import Scale
from ongebd.lab.experiments.tables import differences, notes_of, tables_of


@dataclass(frozen=True)
class Report:
    """All tables of a run, with one sentence about the data, the command, and captions by picture file.

    `deviations` says by method which settings of its training aren't the paper's or its authors'.
    """

    tables: Sequence[TableResult]
    scale: Scale
    data: str
    device: str
    command: str
    figures: Mapping[str, str]
    deviations: Mapping[str, str] = field(default_factory=dict)

    def write(self, out: Path) -> list[Path]:
        """Write report.md, report.html, results.json and tables/*.tex.

        Raises:
            ConfigError: The folder can't be written.
        """
        text = self.markdown()
        contents = {
            out / "report.md": text,
            out / "report.html": self.html(text, out),
        }
        for table in self.tables:
            if table.missing is None:
                file = out / "tables" / f"{table.experiment.name}.tex"
                head = f"% {_heading(table)}. {table.experiment.asks}\n\n"
                contents[file] = head + "\n\n".join(map(latex, tables_of(table))) + "\n"
        kept = [out / file for file in self.figures]
        kept += [file.with_suffix(".pdf") for file in kept]
        written = {file.relative_to(out).as_posix(): sha256(file.read_bytes()).hexdigest() for file in kept}
        for file, content in contents.items():
            written[file.relative_to(out).as_posix()] = sha256(content.encode()).hexdigest()
        values = {**self.values(), "files": written}
        with os_errors(out, "choose another --out"):
            (out / "tables").mkdir(parents=True, exist_ok=True)
            _remove_older(out, written)
            contents[out / "results.json"] = json.dumps(values, indent=1, ensure_ascii=False) + "\n"
            for path, content in contents.items():
                path.write_text(content, encoding="utf-8")
        return list(contents)

    def markdown(self) -> str:
        """The report as Markdown."""
        machine = ", ".join(f"{name} {value}" for name, value in short_machine(self.device).items())
        parts = [
            "# The paper's experiments, run again",
            self.data,
            f"Scale `{self.scale.name}` ({self.scale.says}). {time.strftime('%Y-%m-%d')}; {machine}."
            f" `{self.command}`",
            "A clock that never looks at a video scores high by relative distance: read every figure beside"
            " the floors, and F1 at ±0.25 s and ±0.5 s beside the paper's. The discriminator is the paper's"
            " (τ = 1.5, Δ = 21, no floors, no gap) unless a row says otherwise; its start, after eight"
            " errors, is ours.",
        ]
        for result in self.tables:
            parts.append(f"## {_heading(result)}")
            paper = result.experiment.paper
            topic = "" if paper is None else f" (The paper's table: {paper.caption}.)"
            parts.append(f"{result.experiment.asks}{topic}")
            if result.missing is not None:
                parts.append(f"*Not run: {result.missing}.*")
            elif result.data:
                parts.append(f"On **{result.data}**{result.about and ': '}{result.about}.")
            tables = tables_of(result)
            for table in tables:
                heading = f"**{table.title}**\n\n" if result.experiment.grid else ""
                parts.append(heading + markdown(table))
            own = f"figures/{result.experiment.name}-"
            figures = [(file, said) for file, said in self.figures.items() if file.startswith(own)]
            parts += [f"![{said}]({file})\n\n{said}" for file, said in figures]
            parts.append("\n".join(f"- {note}" for note in notes_of(result)))
        if self.deviations:
            parts.append("## Training settings that are not the paper's, or its authors' of another system")
            parts.append("\n".join(f"- {method}: {text}" for method, text in self.deviations.items()))
        return "\n\n".join(parts) + "\n"

    def html(self, text: str, out: Path) -> str:
        """The Markdown as one page, pictures included."""
        for file in self.figures:
            picture = b64encode((out / file).read_bytes()).decode()
            text = text.replace(f"]({file})", f"](data:image/svg+xml;base64,{picture})")
        page = MarkdownIt("commonmark", {"html": True}).enable("table")
        page.validateLink = lambda url: True  # type: ignore[method-assign]  # it refuses links to SVG data
        body = page.render(text)
        body = body.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
        style = (files("ongebd.lab.experiments") / "report.css").read_text(encoding="utf-8")
        head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        head += f"<title>Experiments</title><style>{style}</style>"
        return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'

    def values(self) -> dict[str, Any]:
        """All values, for the JSON."""
        return {
            "scale": self.scale.name,
            "data": self.data,
            "command": self.command,
            "deviations": dict(self.deviations),
            "machine": short_machine(self.device),
            "tables": [_values(table) for table in self.tables],
        }


def _heading(table: TableResult) -> str:
    """The title with the paper's number of the table."""
    paper, title = table.experiment.paper, table.experiment.title
    return f"{title} (not in the paper)" if paper is None else f"{paper.named} of the paper: {title}"


def _remove_older(out: Path, kept: Container[str]) -> None:
    """Remove the tables and figures of an earlier report that this one lacks, unless they were changed."""
    try:
        files = json.loads((out / "results.json").read_text(encoding="utf-8"))["files"]
        earlier = {out / name: digest for name, digest in files.items() if name not in kept}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    for file, digest in earlier.items():
        inside = file.parent in (out / "tables", out / "figures")
        if inside and file.is_file() and sha256(file.read_bytes()).hexdigest() == digest:
            file.unlink()


def _values(table: TableResult) -> dict[str, Any]:
    names = ("missing", "data", "about", "videos", "boundaries", "seeds", "unlike", "notes")
    row_names = ("thresholds", "failure", "missing")
    return {
        "name": table.experiment.name,
        "title": table.experiment.title,
        **{name: getattr(table, name) for name in names},
        "best": dict(table.best),
        "rows": [
            {
                "name": row.row.name,
                "cells": {column: asdict(cell) for column, cell in row.cells.items()},
                "printed": dict(row.printed),
                "difference": differences(table, row),
                **{name: getattr(row, name) for name in row_names},
            }
            for row in table.rows
        ],
        "limits": [asdict(limit) for limit in table.limits],
    }
