"""A cluster of two workers on this machine, one of them killed mid-way, held against the plain commands.

    python benchmarks/cluster_kill.py CLIPS [CLIPS …] --out FOLDER [--fps 24] [--report FILE]

CLIPS are folders of short videos; some may be corrupt. `ongebd extract` and `ongebd detect` run over all of
them: as they are, with `--cluster local --workers 2`, and so with one worker process killed (SIGKILL) when
a third is done. The report tells whether each manifest has every video exactly once, whether the results are
the plain ones to the byte, and what a video costs more: in processor time of all processes together, which a
busy machine spoils less than it does seconds on the wall. Linux only: it looks into /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ongebd.common.processor import processor

MARK = "ONGEBD_BENCHMARK_MARK"
TICKS = os.sysconf("SC_CLK_TCK")
WORKERS = 2
SUFFIXES = (".mp4", ".mkv", ".webm", ".avi", ".mov")


@dataclass
class Measured:
    """One run of a command.

    Attributes:
        name: What it was.
        wall: Seconds from start to end.
        first: Seconds from start to the first result on the disk.
        cpu: Processor seconds of all its processes.
        workers_cpu: Those of Ray's workers alone; 0 where there is none.
        others: Processors that the rest of the machine used meanwhile, on average.
        load: Load average of one minute, before and after.
        status: Exit status.
        killed: Process id of the worker that was killed.
    """

    name: str
    wall: float
    first: float
    cpu: float
    workers_cpu: float
    others: float
    load: tuple[float, float]
    status: int
    killed: int | None


class Processes:
    """The processor time of all processes that have a mark in their environment, dead ones included."""

    def __init__(self, mark: str) -> None:
        self._mark = f"{MARK}={mark}".encode()
        self._ours: dict[int, bool] = {}
        self.seconds: dict[int, float] = {}
        self.names: dict[int, str] = {}

    def look(self) -> None:
        """Note how far each is; to be called now and then."""
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                pid = int(folder.name)
                try:
                    if not self._ours.setdefault(pid, self._mark in (folder / "environ").read_bytes()):
                        continue
                    self.names[pid] = (folder / "cmdline").read_text().replace("\0", " ").strip()
                    fields = (folder / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                self.seconds[pid] = (int(fields[11]) + int(fields[12])) / TICKS

    def workers(self) -> list[int]:
        """Ray's workers that have a model."""
        return [pid for pid, name in self.names.items() if name.startswith("ray::MapWorker")]


def machine_busy() -> float:
    """Processor seconds that this machine has spent on anything."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return (sum(fields[:8]) - fields[3] - fields[4]) / TICKS


def done(out: Path, command: str) -> int:
    """Videos whose results are on the disk."""
    if command == "extract":
        index = out / "index.jsonl"
        return index.read_bytes().count(b"\n") if index.exists() else 0
    return sum(1 for path in out.glob("*.jsonl") if path.name != "manifest.jsonl")


def run(name: str, arguments: list[str], out: Path, videos: int, *, kill: bool = False) -> Measured:
    """Run the command line, and kill a worker when a third of the videos is done, if that is wanted."""
    shutil.rmtree(out, ignore_errors=True)
    mark, killed, first, status = uuid.uuid4().hex, None, 0.0, None
    processes, before, load = Processes(mark), machine_busy(), os.getloadavg()[0]
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "ongebd", *arguments, "--out", str(out), "--quiet"],
        env={**os.environ, MARK: mark},
        stderr=subprocess.DEVNULL,
    ) as process:
        while status is None:
            processes.look()
            finished = done(out, arguments[0])
            if finished and not first:
                first = time.monotonic() - began
            if kill and killed is None and finished >= videos // 3:
                killed = processes.workers()[0]
                os.kill(killed, signal.SIGKILL)
            try:
                status = process.wait(timeout=0.25)
            except subprocess.TimeoutExpired:
                status = None
    wall, cpu = time.monotonic() - began, sum(processes.seconds.values())
    others = (machine_busy() - before - cpu) / wall
    workers_cpu = sum(processes.seconds[pid] for pid in processes.workers())
    return Measured(name, wall, first, cpu, workers_cpu, others, (load, os.getloadavg()[0]), status, killed)


def manifest_facts(out: Path, names: list[str]) -> dict[str, Any]:
    """What the manifest says, and whether each video stands in it exactly once."""
    lines = [json.loads(line) for line in (out / "manifest.jsonl").read_text().splitlines()]
    return {
        "lines": len(lines),
        "each_video_once": Counter(line["id"] for line in lines) == Counter(names),
        "statuses": dict(Counter(line["status"] for line in lines)),
        "begun_twice": [line["id"] for line in lines if line["attempts"] > 1],
        "failed": {
            line["id"]: line["reason"].replace(line["source"], Path(line["source"]).name)
            for line in lines
            if line["status"] == "failed"
        },
    }


def differing(one: Path, other: Path) -> list[str]:
    """Files that are not the same in both folders; a cluster's own manifest and the lock aside."""
    names = {path.name for folder in (one, other) for path in folder.iterdir()} - {"manifest.jsonl"}
    return [
        name
        for name in sorted(names)
        if not all((folder / name).exists() for folder in (one, other))
        or (one / name).read_bytes() != (other / name).read_bytes()
    ]


def compare(command: str, videos: list[str], out: Path, fps: float) -> dict[str, Any]:
    """All runs of one command."""
    options = ["--fps", f"{fps:g}", *(["--format", "jsonl,csv,vtt"] if command == "detect" else [])]
    base = [command, *videos, *options]
    there = [*base, "--cluster", "local", "--workers", str(WORKERS)]
    names = [Path(video).stem for video in videos]
    runs = []
    for kind, arguments, kill in (("plain", base, False), ("cluster", there, False), ("killed", there, True)):
        runs.append(run(f"{command} {kind}", arguments, out / f"{command}-{kind}", len(videos), kill=kill))
        print(runs[-1], flush=True)
    plain = runs[0]
    return {
        "runs": [asdict(one) for one in runs],
        "manifests": {
            kind: manifest_facts(out / f"{command}-{kind}", names) for kind in ("cluster", "killed")
        },
        "differing": {
            kind: differing(out / f"{command}-plain", out / f"{command}-{kind}")
            for kind in ("cluster", "killed")
        },
        "same_bytes": sum(path.stat().st_size for path in (out / f"{command}-plain").iterdir()),
        "cpu_ms_more_a_video": {
            one.name.split()[1]: round(1000 * (one.cpu - plain.cpu) / len(videos), 1) for one in runs[1:]
        },
        "workers_cpu_ms_more_a_video": {
            one.name.split()[1]: round(1000 * (one.workers_cpu - plain.cpu) / len(videos), 1)
            for one in runs[1:]
        },
    }


def markdown(facts: dict[str, Any]) -> str:
    """The report, for people."""
    about = facts["about"]
    text = [
        f"`benchmarks/cluster_kill.py`, {about['date']}: {about['videos']} videos at {about['fps']:g}"
        f" frames/s, {about['processor']}, {about['processors']} processors, Python {about['python']},"
        f" Ray {about['ray']}.",
        "",
        "| run | wall, s | first result, s | processor, s | of it workers | rest of the machine | load |",
        "|---|---|---|---|---|---|---|",
    ]
    for command in about["commands"]:
        for one in facts[command]["runs"]:
            load = " to ".join(f"{value:.1f}" for value in one["load"])
            text.append(
                f"| {one['name']} | {one['wall']:.0f} | {one['first']:.1f} | {one['cpu']:.0f} |"
                f" {one['workers_cpu']:.0f} | {one['others']:.1f} processors | {load} |"
            )
    text += [
        "",
        "| | files that differ | in the manifest | each once | begun twice | ms of processor more a video |",
    ]
    text.append("|---|---|---|---|---|---|")
    for command in about["commands"]:
        for kind in ("cluster", "killed"):
            text.append(_row(f"{command} {kind}", facts[command], kind))
    return "\n".join(text) + "\n"


def _row(name: str, part: dict[str, Any], kind: str) -> str:
    found = part["manifests"][kind]
    statuses = ", ".join(f"{count} {status}" for status, count in found["statuses"].items())
    once, twice = "yes" if found["each_video_once"] else "NO", ", ".join(found["begun_twice"]) or "none"
    more = part["cpu_ms_more_a_video"][kind]
    return f"| {name} | {len(part['differing'][kind])} | {statuses} | {once} | {twice} | {more:.0f} |"


def main() -> None:
    """Measure, and write what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("clips", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--fps", type=float, default=24.0)
    parser.add_argument("--commands", default="extract,detect")
    parser.add_argument("--report", type=Path, help="Markdown; JSON is put beside it")
    asked = parser.parse_args()
    videos = sorted(
        str(path) for folder in asked.clips for path in folder.iterdir() if path.suffix in SUFFIXES
    )
    facts: dict[str, Any] = {
        "about": {
            "date": datetime.now(UTC).date().isoformat(),
            "videos": len(videos),
            "fps": asked.fps,
            "commands": asked.commands.split(","),
            "processor": processor(),
            "processors": os.cpu_count(),
            "python": platform.python_version(),
            "ray": version("ray"),
        }
    }
    for command in asked.commands.split(","):
        facts[command] = compare(command, videos, asked.out, asked.fps)
    (asked.report or asked.out / "report.md").with_suffix(".json").write_text(
        json.dumps(facts, indent=2) + "\n"
    )
    (asked.report or asked.out / "report.md").write_text(markdown(facts))
    print(markdown(facts))


if __name__ == "__main__":
    main()
