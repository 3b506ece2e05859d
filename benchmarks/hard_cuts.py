"""Hard cuts among dissolves, flashes, pans and shake: who finds them at the frame, and when?

    python benchmarks/hard_cuts.py --clips DIR --work DIR [--methods …] [--out FILE]

Makes composites of clips (none of which a method may have learned from), lets every method see each film,
and writes FILE.md and FILE.json. What was found is kept in the work folder, so a run can be broken off. The
tables are of the films that every method saw. Settings may be chosen on the even films; the odd ones then
show what they are worth.

- A cut is found by a boundary at most one frame away. Boundaries within 0.25 s of a dissolve are left out:
  some methods look for dissolves too. A source clip may have cuts of its own, which count as wrong.
- A method that names kinds is scored by its boundaries of kind `cut`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from footage.methods import command_line
from footage.report import Report
from footage.training import composed

import ongebd
from ongebd.errors import OngebdError
from ongebd.lab.composites import CompositeVideo

PEERS = [f"scenedetect-{kind}" for kind in ("adaptive", "content", "hash", "histogram", "threshold")]
METHODS = ("immediate", *PEERS, "transnetv2")
SET = ("--videos", "100", "--seed", "20", "--boundaries", "cut,dissolve", "--distractors", "flash,pan,shake")
FRAME = 1 / 24 + 1e-3
MARGIN = 0.25
Row = tuple[float, float, str | None]
"""A boundary: its time, when it was known, and its kind once that is known."""


def main() -> int:
    """Make, run, write."""
    asker = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asker.add_argument("--clips", type=Path, nargs="+", required=True)
    asker.add_argument("--work", type=Path, required=True, help="folder for the films and what was found")
    asker.add_argument("--methods", nargs="+", default=METHODS)
    asker.add_argument("--out", type=Path, default=Path("benchmarks/results/hard_cuts"))
    asked = asker.parse_args()
    try:
        films = composed(asked.work / "films", asked.clips, *SET).videos
        found = {method: found_by(method, films, asked.work) for method in asked.methods}
    except OngebdError as problem:
        print(f"hard_cuts: {problem}", file=sys.stderr)
        return 2
    made = tables(films, found)
    made.write(asked.out)
    print(made.text())
    return 0


def found_by(method: str, films: Mapping[str, CompositeVideo], work: Path) -> dict[str, list[Row]]:
    """What a method finds in each film; control-C ends it with what there is."""
    path = work / f"{method}.json"
    found: dict[str, list[Row]] = json.loads(path.read_text()) if path.exists() else {}
    model = ongebd.load(method, threads=1)
    try:
        for name, film in films.items():
            if name not in found:
                boundaries = ongebd.detect(film.path, model).boundaries
                found[name] = [(b.time, b.onset_known or b.decided, b.kind) for b in boundaries]
                path.write_text(json.dumps(found))
                print(f"\r{method}: {len(found)}/{len(films)} films", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        pass
    print(file=sys.stderr)
    return found


def figures(films: Sequence[CompositeVideo], found: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """The scores of a method."""
    cuts = hits = named = told = right = transitions = gradual = 0
    late = []
    for film in films:
        rows, spans = found[film.id], [b for b in film.boundaries if b.kind == "dissolve"]
        at = [b.time for b in film.boundaries if b.kind == "cut"]
        near = [min(rows, key=lambda row, t=t: abs(row[0] - t), default=(-9.0, 0.0, None)) for t in at]
        pairs = [(row, t) for row, t in zip(near, at, strict=True) if abs(row[0] - t) <= FRAME]
        late += [row[1] - t for row, t in pairs]
        cuts, hits = cuts + len(at), hits + len(pairs)
        named += sum(row[2] == "cut" for row, _ in pairs)
        for row in rows:
            is_right = any(abs(row[0] - t) <= FRAME for t in at)
            aside = any(b.start - MARGIN <= row[0] <= b.end + MARGIN for b in spans)
            if row[2] == "cut" or (row[2] is None and (is_right or not aside)):
                told, right = told + 1, right + is_right
        for b in spans:
            inside = [row[2] for row in rows if b.start - FRAME <= row[0] <= b.end + MARGIN]
            transitions, gradual = transitions + bool(inside), gradual + ("gradual" in inside)
    precision, recall = right / max(told, 1), hits / max(cuts, 1)
    return {
        "films": len(films),
        "cuts": cuts,
        "recall": recall,
        "told": told,
        "precision": precision,
        "F1": 2 * precision * recall / max(precision + recall, 1e-9),
        "known after, median": median(late or [0.0]),
        "at most": max(late, default=0.0),
        "called cut": named / max(hits, 1),
        "dissolves found": transitions,
        "called gradual": gradual / max(transitions, 1),
    }


def tables(films: Mapping[str, CompositeVideo], found: Mapping[str, Mapping[str, Sequence[Row]]]) -> Report:
    """The report, and the figures as values."""
    report = Report("Hard cuts to the frame", command_line("hard_cuts"))
    seen = [film for film in films.values() if all(film.id in each for each in found.values())]
    parts = {"All films": seen, "Even films": seen[::2], "Odd films": seen[1::2]}
    for title, some in parts.items():
        by_method = {method: figures(some, each) for method, each in found.items()}
        report.data[title] = by_method
        header = ["", *next(iter(by_method.values()))]
        rows = [
            [name, *(f"{v:.3f}" if isinstance(v, float) else str(v) for v in row.values())]
            for name, row in by_method.items()
        ]
        report.table(title, header, rows)
    return report


if __name__ == "__main__":
    sys.exit(main())
