"""The most memory of a process that runs one method on the CPU, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from ongebd.lab.benchmark.plan import BenchPlan
from ongebd.lab.benchmark.subjects import Subject, subject

FRAMES = 30
_PROGRAM = "import sys; from ongebd.lab.benchmark.footprint import main; print(main(sys.argv[1]))"
_LONGEST = 300


def peak_memory(measured: Subject, plan: BenchPlan) -> int | str:
    """Bytes, or why they are not known: one line."""
    asked = {
        "method": measured.name,
        "runtime": plan.runtime,
        "precision": plan.precision,
        "threads": plan.threads,
        "frames": FRAMES,
    }
    command = [sys.executable, "-c", _PROGRAM, json.dumps(asked)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LONGEST)
    except subprocess.TimeoutExpired:
        return f"its process took more than {_LONGEST} s"
    if done.returncode:
        said = done.stderr.strip().splitlines()
        return said[-1] if said else f"its process ended with status {done.returncode}"
    return int(done.stdout.split()[-1]) or "this system does not tell"


def main(text: str) -> int:
    """What the process does: run some frames through one stream.

    Args:
        text: JSON: method, runtime, precision, threads and frames.

    Returns:
        Bytes at the most; 0 where the system does not tell.
    """
    asked = json.loads(text)
    plan = BenchPlan(runtime=asked["runtime"], precision=asked["precision"], threads=asked["threads"])
    with tempfile.TemporaryDirectory() as folder:
        stream = subject(asked["method"], plan, Path(folder)).model.stream()
        random = np.random.default_rng(0)
        for number in range(asked["frames"]):
            stream.update(random.integers(0, 256, (256, 455, 3), np.uint8), number / 24)
    return _most()


def _most() -> int:
    """The most memory of this process so far."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the process that started this one had
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
