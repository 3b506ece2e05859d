"""What the two live measurements share: samples of a process, a client of the page, and the report."""

from __future__ import annotations

import json
import os
import platform
import time
from collections import Counter
from pathlib import Path

import httpx
import numpy as np

from ongebd.lab.benchmark.machine import processor


def sample(at: float, pid: int) -> tuple[float, ...]:
    """When, a process's memory (MiB), open files, threads, and seconds of CPU, seen from outside."""
    proc = Path(f"/proc/{pid}")
    pages = int((proc / "statm").read_text().split()[1])
    words = (proc / "stat").read_text().rpartition(")")[2].split()
    files, threads = (len(list((proc / name).iterdir())) for name in ("fd", "task"))
    cpu = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return at, pages * os.sysconf("SC_PAGE_SIZE") / 2**20, files, threads, cpu


def view(url: str, seen: Counter[str]) -> None:
    """Do what the page does until the server ends: load incidents, follow the feed, fetch new pictures."""
    shown = set[str]()
    with httpx.Client(base_url=url, timeout=httpx.Timeout(10, read=30)) as http:
        overview = http.get("api/streams").raise_for_status().json()
        for path in (
            "",
            "api/incidents",
            *(f"api/streams/{one['key']}/curve" for one in overview["streams"]),
        ):
            http.get(path).raise_for_status()
        params = {"after": f"{overview['run']}-{overview['q']}"}
        with http.stream("GET", "api/feed", params=params) as feed:
            for line in feed.iter_lines():
                seen["gaps"] += line == "event: gap"
                seen["messages"] += line.startswith("data: ")
                for one in json.loads(line[6:])["incidents"] if '"incidents"' in line else ():
                    path = f"api/incidents/{one['id']}/best"
                    if one["picture"] and path not in shown:
                        shown.add(path)
                        seen.update(told=1, pictures=http.get(path).status_code == 200)


def halves_of(samples: list[tuple[float, ...]], settled_at: float) -> list[np.ndarray]:
    """The earlier and the later samples of a settled process, as rows."""
    rows = np.array([one for one in samples if one[0] >= settled_at] or samples * 2)
    return np.array_split(rows, 2)


def table(halves: list[np.ndarray]) -> list[str]:
    """The halves in Markdown: mean, smallest and largest."""
    lines = ["| | first half | second half |", "|---|---|---|"]
    for column, what in enumerate(("memory, MiB", "open files", "threads"), 1):
        values = [half[:, column] for half in halves]
        cells = [f"{one.mean():.1f} ({one.min():.0f} to {one.max():.0f})" for one in values]
        lines.append(f"| {what} | {' | '.join(cells)} |")
    return lines


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
