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

_WIDE = 150  # columns of a terminal that has room for all facts


def models(*, json: Annotated[bool, Parameter(negative=())] = False) -> int:
    """List the methods: parameters, latency, licence, and what each was trained on.

    Parameters are those of the published architecture on ResNet-50 features (2048 numbers), without and with
    that backbone. The latency is how long a decision on a frame waits for the frames after it. An offline
    method waits for the whole video, so it takes files and no streams.

    Parameters
    ----------
    json
        Print a list of objects as JSON.
    """
    methods = catalogue()
    if json:
        print(writer.dumps(methods, indent=2, ensure_ascii=False))  # noqa: T201
        return 0
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    names = (
        "name",
        "parameters",
        "with ResNet-50",
        "latency",
        "licence",
        "trained on",
        "extra",
        "what it is",
    )
    shown = range(len(names)) if console.width >= _WIDE else (0, len(names) - 1)
    table = Table(box=None, pad_edge=False)
    for place in shown:
        right, fixed = 0 < place < 4, place < 4 or names[place] == "extra"
        table.add_column(names[place], justify="right" if right else "left", no_wrap=fixed)
    for each in methods:
        cells = _cells(each)
        table.add_row(*(cells[place] for place in shown))
    console.print(table)
    if len(shown) == 2:
        console.print(f"Parameters, latency, licence and training data: --json, or {_WIDE} columns")
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
        "offline" if facts["offline"] else f"{facts['latency']:.2f} s" if facts["latency"] else "0",
        facts["licence"],
        facts["trained_on"] or "nothing",
        facts["extra"] or "",
        ("offline: " if facts["offline"] else "") + facts["summary"],
    )
