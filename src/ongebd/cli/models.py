"""`ongebd models`: the methods for --model."""

from __future__ import annotations

import json as writer
import sys
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ongebd.detector.models import DEFAULT_MODEL
from ongebd.detector.recipes import catalogue


def models(*, json: Annotated[bool, Parameter(negative=())] = False) -> int:
    """List the methods: parameters, latency, licence, and what each was trained on.

    Parameters are those of the published architecture on ResNet-50 features (2048 numbers), without and with
    that backbone. The latency is how long a decision on a frame waits for the frames after it.

    Parameters
    ----------
    json
        Print a list of objects as JSON.
    """
    methods = catalogue()
    if json:
        print(writer.dumps(methods, indent=2, ensure_ascii=False))  # noqa: T201
        return 0
    table = Table(box=None, pad_edge=False)
    for name in ("name", "parameters", "with ResNet-50", "latency"):
        table.add_column(name, justify="left" if name == "name" else "right", no_wrap=True)
    for name in ("licence", "trained on", "needs", "what it is"):
        table.add_column(name, no_wrap=name == "needs")
    for each in methods:
        table.add_row(*_cells(each))
    Console(width=None if sys.stdout.isatty() else 200, highlight=False).print(table)
    return 0


def _name(facts: dict[str, Any]) -> str:
    name, argument = facts["name"], facts["argument"]
    if name == DEFAULT_MODEL:
        return f"{name} (default)"
    if argument is None:
        return str(name)
    bare = argument.strip("[]")
    return f"{name}:{bare}" if bare == argument else f"{name}[:{bare}]"


def _cells(facts: dict[str, Any]) -> tuple[str, ...]:
    both = facts["parameters_with_resnet50"]
    return (
        escape(_name(facts)),
        f"{facts['parameters']:,}" if facts["parameters"] else "–",
        "–" if both is None else f"{both:,}",
        f"{facts['latency']:.2f} s" if facts["latency"] else "0",
        facts["licence"],
        facts["trained_on"] or "nothing",
        "" if facts["extra"] is None else escape(f"ongebd[{facts['extra']}]"),
        facts["summary"],
    )
