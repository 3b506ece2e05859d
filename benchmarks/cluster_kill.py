"""A cluster of two workers on this machine, one of them killed, compared with the plain commands.

    python benchmarks/cluster_kill.py CLIPS [CLIPS …] --out FOLDER [--fps 24] [--report FILE]

CLIPS are folders of short videos; some may be corrupt. `ongebd extract` and `ongebd detect` run over all of
them: plain, with `--cluster local --workers 2`, and again with one worker killed (SIGKILL) when a third is
done. The report shows whether each manifest has every video once, whether the results equal the plain ones to
the byte, and how much processor time a video costs more. Linux only: it reads /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from ongebd.lab.benchmark.machine import processor

MARK = "ONGEBD_BENCHMARK_MARK"
TICKS = os.sysconf("SC_CLK_TCK")
SUFFIXES = (".mp4", ".mkv", ".webm", ".avi", ".mov")
CLUSTER = ["--cluster", "local", "--workers", "2"]


class Processes:
    """The processor seconds of all processes with a mark in their environment, dead ones included."""

    def __init__(self, mark: str) -> None:
        self._mark = f"{MARK}={mark}".encode()
        self.seconds: dict[int, float] = {}
        self.names: dict[int, str] = {}

    def look(self) -> None:
        """Note the time of each process; call it now and then."""
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self._mark in (folder / "environ").read_bytes():
                    fields = (folder / "stat").read_text().rpartition(")")[2].split()
                    pid = int(folder.name)
                    self.names[pid] = (folder / "cmdline").read_text().replace("\0", " ").strip()
                    self.seconds[pid] = (int(fields[11]) + int(fields[12])) / TICKS
            except OSError:
                continue

    def worker(self) -> int:
        """A worker at work."""
        return next(pid for pid, name in self.names.items() if name.startswith("ray::work_on"))


def done(out: Path, command: str) -> int:
    """Videos whose results are on the disk."""
    if command == "extract":
        index = out / "index.jsonl"
        return index.read_bytes().count(b"\n") if index.exists() else 0
    return sum(1 for path in out.glob("*.jsonl") if path.name != "manifest.jsonl")


def run(arguments: list[str], out: Path, videos: int, *, kill: bool) -> dict[str, float]:
    """Run a command, and kill a worker when a third of the videos is done; wall and processor seconds."""
    shutil.rmtree(out, ignore_errors=True)
    processes = Processes(mark := uuid.uuid4().hex)
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "ongebd", *arguments, "--out", str(out), "--quiet"],
        env={**os.environ, MARK: mark},
        stderr=subprocess.DEVNULL,
    ) as process:
        while process.poll() is None:
            processes.look()
            if kill and done(out, arguments[0]) >= videos // 3:
                os.kill(processes.worker(), signal.SIGKILL)
                kill = False
            time.sleep(0.25)
    return {"wall": time.monotonic() - began, "processor": sum(processes.seconds.values())}


def same(one: Path, other: Path) -> bool:
    """Whether both folders hold the same files, a cluster's own manifest aside."""
    first, second = (
        {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.jsonl"}
        for folder in (one, other)
    )
    return first == second


def measure(command: str, videos: list[str], out: Path, fps: float) -> list[str]:
    """Rows of the report: one per run of a command."""
    formats = ["--format", "jsonl,csv,vtt"] if command == "detect" else []
    base = [command, *videos, "--fps", f"{fps:g}", *formats]
    plain = out / f"{command}-plain"
    usual = run(base, plain, len(videos), kill=False)
    rows = [f"| {command} plain | {usual['wall']:.0f} | {usual['processor']:.0f} | | | | | |"]
    for kind in ("cluster", "killed"):
        folder = out / f"{command}-{kind}"
        times = run([*base, *CLUSTER], folder, len(videos), kill=kind == "killed")
        lines = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
        once = Counter(line["id"] for line in lines) == Counter(Path(video).stem for video in videos)
        statuses = Counter(line["status"] for line in lines)
        twice = [line["id"] for line in lines if line["attempts"] > 1]
        more = 1000 * (times["processor"] - usual["processor"]) / len(videos)
        rows.append(
            f"| {command} {kind} | {times['wall']:.0f} | {times['processor']:.0f} | {more:.0f} |"
            f" {'yes' if same(plain, folder) else 'NO'} | {'yes' if once else 'NO'} |"
            f" {', '.join(f'{count} {status}' for status, count in statuses.items())} |"
            f" {', '.join(twice) or 'none'} |"
        )
    return rows


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("clips", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--fps", type=float, default=24.0)
    parser.add_argument("--report", type=Path, help="Markdown [OUT/report.md]")
    args = parser.parse_args()
    videos = sorted(
        str(path) for folder in args.clips for path in folder.iterdir() if path.suffix in SUFFIXES
    )
    text = [
        f"`benchmarks/cluster_kill.py`, {datetime.now(UTC).date()}: {len(videos)} videos at {args.fps:g}"
        f" frames/s, {processor()}, {os.cpu_count()} processors, Ray {version('ray')}.",
        "",
        "| run | wall, s | processor, s | ms more a video | same bytes | each once | manifest | retried |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for command in ("extract", "detect"):
        text += measure(command, videos, args.out, args.fps)
    report = "\n".join(text) + "\n"
    (args.report or args.out / "report.md").write_text(report)
    print(report)


if __name__ == "__main__":
    main()
