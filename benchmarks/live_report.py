"""What the two live measurements share: samples of a process, and the report."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

import numpy as np

from ongebd.common.processor import processor


def sample(at: float, pid: int) -> tuple[float, ...]:
    """When, a process's memory (MiB), open files, threads, and seconds of CPU, seen from outside."""
    proc = Path(f"/proc/{pid}")
    pages = int((proc / "statm").read_text().split()[1])
    words = (proc / "stat").read_text().rpartition(")")[2].split()
    files, threads = (len(list((proc / name).iterdir())) for name in ("fd", "task"))
    cpu = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return at, pages * os.sysconf("SC_PAGE_SIZE") / 2**20, files, threads, cpu


def halves_of(samples: list[tuple[float, ...]], settled_at: float) -> list[np.ndarray]:
    """The earlier and the later samples of a settled process, as rows."""
    rows = np.array([one for one in samples if one[0] >= settled_at] or samples * 2)
    return np.array_split(rows, 2)


def table(halves: list[np.ndarray], per: str, factor: float) -> list[str]:
    """The halves in Markdown, with the trend of memory in `factor` units of time."""

    def trend(rows: np.ndarray) -> str:
        return f"{factor * np.polyfit(rows[:, 0], rows[:, 1], 1)[0]:+.1f}" if len(rows) > 2 else "–"

    rows = {
        "memory, MiB (mean, largest)": [
            f"{half[:, 1].mean():.1f}, {half[:, 1].max():.1f}" for half in halves
        ],
        f"memory's trend, MiB in {per}": [trend(half) for half in halves],
        "open files": [f"{half[:, 2].min():.0f} to {half[:, 2].max():.0f}" for half in halves],
        "threads": [f"{half[:, 3].min():.0f} to {half[:, 3].max():.0f}" for half in halves],
    }
    lines = [f"| {what} | {early} | {late} |" for what, (early, late) in rows.items()]
    return ["| | first half | second half |", "|---|---|---|", *lines]


def hand_in(title: str, command: str, text: list[str], checks: dict[str, bool], out: Path | None) -> None:
    """Print and write the report; exit with status 1 if a check failed."""
    measured = f"Measured by `benchmarks/{command}`, {time.strftime('%Y-%m-%d')}, {processor()}"
    where = f"{os.cpu_count()} cores (load {os.getloadavg()[2]:.1f}), Python {platform.python_version()}."
    verdicts = [f"- {'yes' if good else 'NO'}: {what}" for what, good in checks.items()]
    report = "\n".join([f"# {title}", "", f"{measured}, {where}", "", *text, "", *verdicts, ""])
    print(report)
    if out is not None:
        out.write_text(report, encoding="utf-8")
    raise SystemExit(not all(checks.values()))
