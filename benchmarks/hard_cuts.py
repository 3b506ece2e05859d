"""Hard cuts among dissolves, flashes, pans and shake: who finds them at the frame, and when?

    python benchmarks/hard_cuts.py --clips DIR --work DIR [--methods …] [--out FILE]

Makes composites of clips (none of which a method may have learned from), lets every method see each film,
and writes FILE.md and FILE.json. What was found is kept in the work folder, so a run can be broken off. The
tables are of the films that every method saw. Settings may be chosen on the even films; the odd ones then
show what they are worth.

- A cut is found by a boundary at most one frame away. Boundaries within 0.25 s of a dissolve are left out:
  some methods look for dissolves too.
- One source clip, a trailer as a GIF, has cuts of its own, every two to four frames. Where a film shows it
  (`OWN_CUTS`), wrong boundaries are left out, of all methods. The pictures at each wrong cut of `immediate`
  were looked at to find it.
- A method that names kinds is scored by its boundaries of kind `cut`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from footage.methods import Method, command_line, methods_of
from footage.report import Report
from footage.training import composed

from ongebd import Boundary
from ongebd.errors import OngebdError
from ongebd.lab.composites import CompositeVideo
from ongebd.video import VideoReader

PEERS = [f"scenedetect-{kind}" for kind in ("adaptive", "content", "hash", "histogram", "threshold")]
METHODS = ("immediate", *PEERS, "transnetv2")
SET = ("--boundaries", "cut,dissolve", "--distractors", "flash,pan,shake")
SEED = 20
FRAME = 1 / 24 + 1e-3
MARGIN = 0.25
TRAILER = "towhee-io_examples__Broadcast_on_Wandering_Earth-1xb411U7uE.gif"
OWN_CUTS = {"composite-0012": (0.0, 3.0), "composite-0021": (29.54, 31.3), "composite-0030": (26.37, 27.9)}
"""Of the films of seed 20 that show the trailer: from when to when, seconds."""
Spans = Mapping[str, tuple[float, float]]
Row = tuple[float, float, str | None]
"""A boundary: its time, when it was known, and its kind once that is known."""


def main() -> int:
    """Make, run, write."""
    asker = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asker.add_argument("--clips", type=Path, nargs="+", required=True)
    asker.add_argument("--work", type=Path, required=True, help="folder for the films and what was found")
    asker.add_argument("--videos", type=int, default=100)
    asker.add_argument("--seed", type=int, default=SEED)
    asker.add_argument("--methods", nargs="+", default=METHODS)
    asker.add_argument("--out", type=Path, default=Path("benchmarks/results/hard_cuts"))
    asked = asker.parse_args()
    try:
        wanted = ("--videos", str(asked.videos), "--seed", str(asked.seed), *SET)
        films = composed(asked.work / "films", asked.clips, *wanted).videos
        found = found_by(methods_of(asked.methods), films, asked.work)
    except OngebdError as problem:
        print(f"hard_cuts: {problem}", file=sys.stderr)
        return 2
    made = tables(films, found, OWN_CUTS if asked.seed == SEED else {})
    made.write(asked.out)
    print(made.text())
    return 0


def found_by(
    methods: Sequence[Method], films: Mapping[str, CompositeVideo], work: Path
) -> dict[str, dict[str, list[Row]]]:
    """What each method finds in each film; control-C ends it with what there is."""
    paths = {method.label: work / f"{method.label}.json" for method in methods}
    found = {label: json.loads(path.read_text()) if path.exists() else {} for label, path in paths.items()}
    try:
        for number, (name, film) in enumerate(films.items(), 1):
            left = [method for method in methods if name not in found[method.label]]
            for _, together in groupby(sorted(left, key=lambda each: each.view), key=lambda each: each.view):
                for label, rows in seen_in(film.path, list(together)).items():
                    found[label][name] = rows
                    paths[label].write_text(json.dumps(found[label]))
            print(f"\r{number}/{len(films)} films", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        pass
    print(file=sys.stderr)
    return found


def seen_in(path: Path, methods: Sequence[Method]) -> dict[str, list[Row]]:
    """What methods with the same view find in a film, which is decoded once; the same as by `detect`."""
    streams = {method.label: method.model.begin(method.config) for method in methods}
    closed: dict[str, list[Boundary]] = {label: [] for label in streams}
    first = methods[0]
    with VideoReader(path, float(first.config.rate()), view=first.model.backbone.view) as reader:
        for frame in reader:
            for label, stream in streams.items():
                stream.update(frame.rgb, frame.time)
                closed[label] += stream.closed()
    for label, stream in streams.items():
        stream.drain()
        while stream.flush() is not None:
            pass
        closed[label] += stream.closed()
    return {
        label: [(b.time, b.onset_known or b.decided, b.kind) for b in some] for label, some in closed.items()
    }


def figures(
    films: Sequence[CompositeVideo], found: Mapping[str, Sequence[Row]], own_cuts: Spans
) -> dict[str, Any]:
    """The scores of a method."""
    cuts = hits = named = told = right = transitions = gradual = 0
    late = []
    for film in films:
        rows, spans = found[film.id], [b for b in film.boundaries if b.kind == "dissolve"]
        at = [b.time for b in film.boundaries if b.kind == "cut"]
        first, last = own_cuts.get(film.id, (0.0, 0.0)) if TRAILER in film.clips else (0.0, 0.0)
        near = [min(rows, key=lambda row, t=t: abs(row[0] - t), default=(-9.0, 0.0, None)) for t in at]
        pairs = [(row, t) for row, t in zip(near, at, strict=True) if abs(row[0] - t) <= FRAME]
        late += [row[1] - t for row, t in pairs]
        cuts, hits = cuts + len(at), hits + len(pairs)
        named += sum(row[2] == "cut" for row, _ in pairs)
        for row in rows:
            is_right = any(abs(row[0] - t) <= FRAME for t in at)
            aside = any(b.start - MARGIN <= row[0] <= b.end + MARGIN for b in spans)
            if first < row[0] < last and not is_right:
                continue
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


def tables(
    films: Mapping[str, CompositeVideo], found: Mapping[str, Mapping[str, Sequence[Row]]], own_cuts: Spans
) -> Report:
    """The report, and the figures as values."""
    report = Report("Hard cuts to the frame", command_line("hard_cuts"))
    seen = [film for film in films.values() if all(film.id in each for each in found.values())]
    parts = {"All films": seen, "Even films": seen[::2], "Odd films": seen[1::2]}
    for title, some in parts.items():
        by_method = {method: figures(some, each, own_cuts) for method, each in found.items()}
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
