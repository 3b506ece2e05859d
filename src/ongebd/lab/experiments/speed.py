"""Rows about speed and cost: `ongebd bench` in its own process, so that what ran before can't change them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ongebd.errors import ConfigError
from ongebd.lab.benchmark.machine import short_machine
from ongebd.lab.experiments.cache import Cache

METHODS = "estimator,testra,simon,oadtr,miniroad"


def bench(device: str, cache: Cache, repeats: int, seconds: float) -> dict[str, Any]:
    """What `ongebd bench` finds for the paper's five methods, measured once on this machine.

    Raises:
        ConfigError: It failed; the message is its own.
    """
    options = {"--methods": METHODS, "--streams": "0", "--device": device}
    options |= {"--repeats": str(repeats), "--seconds": str(seconds)}

    def make(folder: Path) -> None:
        command = [sys.executable, "-m", "ongebd", "bench", "--quiet", "--out", str(folder)]
        command += [word for option in options.items() for word in option]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
            raise ConfigError(f"ongebd bench failed: {lines[-1]}")

    key = {"version": 1, "device": device, "machine": short_machine(device)}
    entry = cache.get("speed", {**key, "repeats": repeats, "seconds": seconds}, make)
    found: dict[str, Any] = json.loads((entry / "bench.json").read_text(encoding="utf-8"))
    return found


def speed_values(found: Mapping[str, Any], method: str) -> dict[str, float]:
    """A method's values by column. Its first way is this project's, the last one torch's plain float32."""
    (entry,) = [each for each in found["methods"] if each["name"] == method]
    cost, ours, eager = entry["cost"], entry["ways"][0], entry["ways"][-1]
    memory = ours["device_memory"]
    values = {
        "features": ours["features"]["median"],
        "model": ours["method"]["median"],
        "overall": ours["overall"]["median"],
        "overall, eager": eager["overall"]["median"],
        "parameters-millions": (cost["backbone_parameters"] + cost["method_parameters"]) / 1e6,
        "gflops": cost["window_gflops"],
        "vram-mb": None if memory is None else memory / 1e6,
    }
    return {column: value for column, value in values.items() if value is not None}
