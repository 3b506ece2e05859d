"""The peak memory of a process that runs one method on the CPU, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from ongebd.lab.benchmark.plan import BenchPlan
from ongebd.lab.benchmark.subjects import subject

FRAMES = 30
_PROGRAM = "import sys; from ongebd.lab.benchmark.memory import main; print(main(*sys.argv[1:]))"
_LONGEST = 300  # seconds


def peak_memory(name: str, plan: BenchPlan) -> int | str:
    """Bytes, or one line that says why they are unknown."""
    command = [sys.executable, "-c", _PROGRAM, name, plan.runtime, plan.computes_in, str(plan.threads)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LONGEST)
    except subprocess.TimeoutExpired:
        return f"its process took more than {_LONGEST} s"
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return lines[-1] if lines else f"its process ended with status {done.returncode}"
    return int(done.stdout.split()[-1]) or "this system doesn't report it"


def main(name: str, runtime: str, precision: str, threads: str) -> int:
    """Run some frames through one stream; the process's peak memory in bytes, 0 if unknown."""
    plan = BenchPlan(runtime=runtime, precision=precision, threads=int(threads))
    with tempfile.TemporaryDirectory() as folder:
        stream = subject(name, plan, Path(folder)).model.stream()
        random = np.random.default_rng(0)
        for number in range(FRAMES):
            stream.update(random.integers(0, 256, (256, 455, 3), np.uint8), number / 24)
    return _peak()


def _peak() -> int:
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would include the process that started this one
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
