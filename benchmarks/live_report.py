"""What the live measurements share: a look at a process, the command line, and the report's section."""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ongebd.common.processor import processor


@dataclass(frozen=True, slots=True)
class Sample:
    """What a process holds at one moment.

    Attributes:
        at: When, in the measurement's own unit: hours of stream time, minutes by the wall clock.
        mib: Memory that is resident.
        files: Open ones.
        threads: All of the process, not only Python's.
        cpu: Seconds that it has computed so far.
    """

    at: float
    mib: float
    files: int
    threads: int
    cpu: float


def sample(at: float, pid: int) -> Sample:
    """Look at a process from outside."""
    proc = Path(f"/proc/{pid}")
    pages = int((proc / "statm").read_text().split()[1])
    words = (proc / "stat").read_text().rpartition(")")[2].split()
    return Sample(
        at,
        pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        sum(1 for _ in (proc / "fd").iterdir()),
        sum(1 for _ in (proc / "task").iterdir()),
        (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK"),
    )


@dataclass(frozen=True, slots=True)
class Halves:
    """The samples in which a process has settled, the earlier and the later ones."""

    early: Sequence[Sample]
    late: Sequence[Sample]

    @classmethod
    def of(cls, samples: Sequence[Sample], settled_at: float) -> Halves:
        """Leave out those before a moment; where none would be left, none."""
        settled = [one for one in samples if one.at >= settled_at] or samples
        half = len(settled) // 2
        return cls(settled[:half] or settled, settled[half:])

    def table(self, per: str, factor: float) -> list[str]:
        """Lines of Markdown.

        Args:
            per: The time for which memory's trend is told.
            factor: How many of the samples' units that is.
        """
        rows = {
            "memory, MiB (mean, largest)": [_spread(half) for half in (self.early, self.late)],
            f"memory's trend, MiB in {per}": [_trend(half, factor) for half in (self.early, self.late)],
            "open files (smallest to largest)": [_ends(half, "files") for half in (self.early, self.late)],
            "threads (smallest to largest)": [_ends(half, "threads") for half in (self.early, self.late)],
        }
        return [
            "| | first half | second half |",
            "|---|---|---|",
            *(f"| {what} | {early} | {late} |" for what, (early, late) in rows.items()),
        ]


def mean(samples: Sequence[Sample], name: str) -> float:
    """Of one of their numbers."""
    return float(np.mean([getattr(one, name) for one in samples]))


def _spread(samples: Sequence[Sample]) -> str:
    return f"{mean(samples, 'mib'):.1f}, {max(one.mib for one in samples):.1f}"


def _trend(samples: Sequence[Sample], factor: float) -> str:
    """The slope of a straight line through them."""
    if len(samples) < 3:
        return "–"
    return f"{factor * np.polyfit([one.at for one in samples], [one.mib for one in samples], 1)[0]:+.1f}"


def _ends(samples: Sequence[Sample], name: str) -> str:
    values = [getattr(one, name) for one in samples]
    return f"{min(values)} to {max(values)}"


def measured_by(command: str, cores: str = "cores") -> str:
    """With what, when and where a section was measured."""
    return (
        f"Measured by `benchmarks/{command}`, {time.strftime('%Y-%m-%d')}, {processor()},"
        f" {os.cpu_count()} {cores}, Python {platform.python_version()}."
    )


def check_lines(checks: Mapping[str, bool]) -> list[str]:
    """A line for each thing that must be so, and whether it is."""
    return [f"- {'yes' if good else 'NO'}: {what}" for what, good in checks.items()]


def asker(description: str | None) -> argparse.ArgumentParser:
    """A command line with `--out`, the file whose section is to be exchanged."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="a file of Markdown; its section of this is exchanged")
    return parser


def hand_in(lines: Sequence[str], out: Path | None) -> bool:
    """Print a section, and put it into the file, if any; whether all is as it must be.

    Args:
        lines: Its heading first.
        out: See `put_section`.
    """
    text = "\n".join(lines)
    print(text)
    if out is not None:
        put_section(out, lines[0], text)
    return not any(line.startswith("- NO") for line in lines)


def put_section(path: Path, heading: str, text: str) -> None:
    """Put a text that begins with its heading into a file, in place of the section that has this heading."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    sections = [f"# {part}".rstrip() + "\n" for part in f"\n{old}".split("\n# ")[1:]]
    headings = [one.partition("\n")[0] for one in sections]
    place = headings.index(heading) if heading in headings else len(sections)
    sections[place : place + 1] = [text.rstrip() + "\n"]
    path.write_text("\n".join(sections), encoding="utf-8")
