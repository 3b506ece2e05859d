"""All printed tables, each read from its file when it is first asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from ongebd.lab.experiments.printed.table import PrintedTable

KEYS = (
    "online-kinetics",
    "online-tapos",
    "offline-kinetics",
    "offline-tapos",
    "components",
    "distance",
    "features",
    "outliers",
    "tau-delta",
    "region",
    "length",
    "weighting",
    "zero-shot",
    "fps",
    "cost",
)


class _Tables(Mapping[str, PrintedTable]):
    """The tables by key, in the order of `KEYS`."""

    def __getitem__(self, key: str) -> PrintedTable:
        if key not in KEYS:
            raise KeyError(key)
        return _read(key)

    def __iter__(self) -> Iterator[str]:
        return iter(KEYS)

    def __len__(self) -> int:
        return len(KEYS)


@cache
def _read(key: str) -> PrintedTable:
    text = files("ongebd.lab.experiments.printed").joinpath("values", f"{key}.json").read_text("utf-8")
    return PrintedTable.of(key, json.loads(text))


PRINTED: Mapping[str, PrintedTable] = _Tables()
"""The paper's tables by name."""
