"""Rows about speed and cost: `ongebd bench` in a process of its own, so that nothing else disturbs it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ongebd.errors import ConfigError
from ongebd.lab.experiments.results import RowResult
from ongebd.lab.experiments.shelf import Shelf
from ongebd.lab.experiments.statistics import Cell
from ongebd.lab.experiments.table import Experiment

VERSION = 1


def measured(device: str, shelf: Shelf, repeats: int, seconds: float) -> dict[str, Any]:
    """What `ongebd bench` says of the paper's five methods on this machine, measured once.

    Raises:
        ConfigError: It failed; the message is its own.
    """
    from ongebd.lab.experiments.machine import machine

    key = {"version": VERSION, "device": device, "machine": machine(), "repeats": repeats, "seconds": seconds}

    def make(folder: Path) -> None:
        command = [
            sys.executable,
            "-m",
            "ongebd",
            "bench",
            "--methods",
            "estimator,testra,simon,oadtr,miniroad",
        ]
        command += [
            "--streams",
            "0",
            "--device",
            device,
            "--repeats",
            str(repeats),
            "--seconds",
            str(seconds),
        ]
        done = subprocess.run(
            [*command, "--quiet", "--out", str(folder)], check=False, capture_output=True, text=True
        )
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise ConfigError(f"ongebd bench failed: {said[-1] if said else f'status {done.returncode}'}")

    read: dict[str, Any] = json.loads(
        (shelf.kept("speed", key, make) / "bench.json").read_text(encoding="utf-8")
    )
    return read


def _values(bench: Mapping[str, Any], method: str) -> dict[str, float | None]:
    """A method's figures; the first way is this project's, the last one torch's plain float32."""
    (entry,) = [each for each in bench["methods"] if each["name"] == method]
    cost, ways = entry["cost"], entry["ways"]
    ours, eager = ways[0], ways[-1]
    memory = ours["device_memory"]
    return {
        "features": ours["features"]["median"],
        "model": ours["method"]["median"],
        "overall": ours["overall"]["median"],
        "overall, eager": eager["overall"]["median"],
        "parameters-millions": (cost["backbone_parameters"] + cost["method_parameters"]) / 1e6,
        "gflops": cost["window_gflops"],
        "vram-mb": None if memory is None else memory / 1e6,
    }


def speed_rows(experiment: Experiment, bench: Mapping[str, Any]) -> list[RowResult]:
    """The table's rows, from what the bench wrote."""
    rows = []
    for row in experiment.rows:
        values = _values(bench, row.method)
        cells = {c: Cell(value) for c in experiment.columns if (value := values.get(c)) is not None}
        printed = {
            column: value
            for column in experiment.columns
            if (value := experiment.printed_value(row, column)) is not None
        }
        rows.append(RowResult(row, cells, printed))
    return rows
