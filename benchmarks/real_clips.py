"""Every method on real clips whose boundaries a vision-language model rated: model ratings, not people.

    python benchmarks/real_clips.py --clips DIR [DIR …] --labels FILE [FILE …] --work DIR
        [--predictions NAME=FOLDER …] [--train … [--device cuda] [--jobs N]] [--kinds FILE] [--out FILE]

`--store STORE --methods window-mean …` instead of `--clips` takes the clips' features from a store.

Scored with this project's evaluation at absolute tolerances, best-annotator rule, all clips. The tables also
have the floors (a clock at its best period for each tolerance; random points), the raters against each other,
and the untrained methods with τ chosen on the other clips, by fold. Trained methods are scored on clips that
they weren't trained on: MiniROAD-BC, ESTimator and the offline systems are trained here, fold by fold
(`--train`); others come from files with out-of-fold predictions (`--predictions`, whatever `ongebd
evaluate` reads), also by kind of footage (`--kinds`, footage/kinds.json). Writes FILE.md and FILE.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from footage.methods import Film, Found, Method, command_line, found_in, methods_of, predicted
from footage.report import Report, bare, share, signed
from footage.scores import Row, ceiling_row, clock_row, difference, random_row, row
from footage.training import FOLDS, NAMES, TRAININGS, cross_trained, cross_validated, fold_of

from ongebd.data import LabelSet, read_labels
from ongebd.errors import LabelError, OngebdError
from ongebd.features.store import FeatureStore
from ongebd.lab.evaluation.relative_distance import ABSOLUTE

PEERS = (
    *("scenedetect-adaptive", "scenedetect-content", "scenedetect-hash"),
    *("transnetv2", "transnetv2@threshold=0.05"),
)
UNTRAINED = ("persistence", "window-mean")
TAUS = (1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 7.0)
BEYOND = 3.0
"""Seconds after a clip's rated part that methods may look at; what they find there doesn't count."""
TOLERANCES = [f"±{tolerance:g} s" for tolerance in ABSOLUTE]
RATED = "model ratings, not people"


@dataclass(frozen=True, eq=False)
class Scored:
    """All that the tables are made of."""

    labels: LabelSet
    found: Mapping[str, Found]
    blind: Sequence[Row]
    """Floors, and raters against each other."""
    rows: Sequence[Row]
    ours: Sequence[Row]
    """Methods that came as predictions, which are compared with the best other."""


def main() -> int:
    """Run, score, write."""
    asker = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = asker.add_mutually_exclusive_group(required=True)
    where.add_argument("--clips", type=Path, nargs="+", help="folders of clips")
    where.add_argument("--store", type=Path, help="a store with the clips' features")
    asker.add_argument("--labels", type=Path, nargs="+", required=True, help="the ratings")
    asker.add_argument("--work", type=Path, required=True, help="folder for features and models")
    asker.add_argument("--methods", nargs="*", default=[*UNTRAINED, *PEERS])
    asker.add_argument("--predictions", nargs="+", default=[], metavar="NAME=FOLDER", help="out of fold")
    asker.add_argument("--train", nargs="*", default=[], choices=list(TRAININGS), help="fold by fold")
    asker.add_argument("--device", default="cpu", help="on which models are trained")
    asker.add_argument("--jobs", type=int, default=1, help="models that are trained at the same time")
    asker.add_argument("--kinds", type=Path, help="JSON: the names of the clips of each kind of footage")
    asker.add_argument("--out", type=Path, default=Path("benchmarks/results/real_clips"))
    asked = asker.parse_args()
    try:
        measure(asked)
    except OngebdError as problem:
        print(f"real_clips: {problem}", file=sys.stderr)
        return 2
    return 0


def measure(asked: argparse.Namespace) -> None:
    """All of it."""
    rated = {name: video for path in asked.labels for name, video in read_labels(path).videos.items()}
    labels = LabelSet(rated, dataset="custom")
    films = films_of(labels, asked.clips) if asked.clips else stored_films(labels, asked.store)
    methods = methods_of(asked.methods, asked.store)
    found: dict[str, Found] = dict(found_in(methods, films, asked.work))
    rows = [row(name, labels, of) for name, of in found.items()]
    chosen = tuned(labels, methods, films, asked.work)
    trained = (
        cross_trained(asked.train, labels, films, asked.work, asked.device, asked.jobs) if asked.train else {}
    )
    for name, of in trained.items():
        detail = f"{FOLDS} folds; {', '.join(TRAININGS[name])}"
        chosen[f"{NAMES[name]}, trained on the other clips"] = of, detail
    rows += [row(name, labels, of, detail=detail) for name, (of, detail) in chosen.items()]
    ours = predicted(asked.predictions, labels)
    ceiling = ceiling_row(labels)
    scored = Scored(
        labels,
        {**found, **{name: of for name, (of, _) in chosen.items()}, **ours},
        [clock_row(labels)[0], random_row(labels), *([] if ceiling is None else [ceiling])],
        rows,
        [row(name, labels, of) for name, of in ours.items()],
    )
    made = tables(scored, command_line("real_clips"))
    if asked.kinds:
        by_kind(made, scored, json.loads(asked.kinds.read_text(encoding="utf-8")))
    made.write(asked.out)
    print(made.text())


def films_of(labels: LabelSet, folders: Sequence[Path]) -> list[Film]:
    """The rated clips, each to a little beyond its rated part."""
    files = {path.stem: path for folder in folders for path in folder.rglob("*") if path.is_file()}
    missing = [name for name in labels.videos if name not in files]
    if missing:
        raise LabelError(f"{missing[0]} and {len(missing) - 1} other rated clips are not in the folders")
    return [Film(v.id, files[v.id], v.duration + BEYOND) for v in labels.videos.values()]


def stored_films(labels: LabelSet, path: Path) -> list[Film]:
    """The same in a store."""
    store = FeatureStore.open(path)
    if missing := [name for name in labels.videos if name not in store]:
        raise LabelError(f"{missing[0]} and {len(missing) - 1} other rated clips are not in {path}")
    return [Film(name, path) for name in labels.videos]


def tuned(
    labels: LabelSet, methods: Sequence[Method], films: Sequence[Film], work: Path
) -> dict[str, tuple[Found, str]]:
    """The untrained methods with τ chosen on the other clips, by name."""
    result: dict[str, tuple[Found, str]] = {}
    for method in methods:
        if method.label in UNTRAINED:
            tried = [replace(method, label=str(tau), settings={"tau": tau}) for tau in TAUS]
            found = found_in(tried, films, work)
            by_tau = {tau: found[str(tau)] for tau in TAUS}
            taken, best = cross_validated(labels, by_tau, fold_of(labels))
            detail = f"{FOLDS} folds; τ {', '.join(f'{tau:g}' for tau in best)}"
            result[f"{method.label}, τ chosen on the other clips"] = taken, detail
    return result


def tables(scored: Scored, command: str) -> Report:
    """All tables."""
    made = Report("Real clips: every method against model ratings", command)
    minutes = sum(video.duration for video in scored.labels.videos.values()) / 60
    marked = [len(times) for video in scored.labels.videos.values() for times in video.boundaries]
    made.say(
        f"{len(scored.labels)} real clips, {minutes:.1f} min rated, each by two or three passes of a "
        f"vision-language model: **{RATED}**. A rater marks {np.mean(marked):.1f} boundaries a clip. "
        "Best-annotator rule, all clips, centres; in brackets 95 % by the bootstrap over clips."
    )
    lines = []
    for each in (*scored.blind, *scored.rows, *scored.ours):
        onset = ""
        if each.name in scored.found:
            onset = bare(row("", scored.labels, scored.found[each.name], "onset").at(0.5)[2])
        precision, recall, _ = each.at(0.5)
        lines.append([each.name, *map(share, each.f1()), onset, f"{bare(precision)}, {bare(recall)}"])
        made.data.setdefault("f1", {})[each.name] = each.as_json()
    made.table("F1", ["", *TOLERANCES, "onset, ±0.5 s", "precision, recall ±0.5 s"], lines)
    made.say(*(f"- {each.name}: {each.detail}" for each in (*scored.blind, *scored.rows) if each.detail))
    if scored.ours:
        _differences(made, scored)
    named = {each.name: scored.found[each.name] for each in (*scored.rows, *scored.ours)}
    made.delays("Delay, seconds after the rated boundary, of detections within ±0.5 s", scored.labels, named)
    return made


def by_kind(made: Report, scored: Scored, kinds: Mapping[str, Sequence[str]]) -> None:
    """A table of the clips of each kind: the methods that came as predictions, and the clock."""
    lines = []
    for kind, names in kinds.items():
        part = scored.labels.restrict(names, kind)
        minutes = sum(video.duration for video in part.videos.values()) / 60
        own = [row(each.name, part, {n: scored.found[each.name][n] for n in names}) for each in scored.ours]
        for each in (*own, clock_row(part)[0]):
            precision, recall, _ = each.at(0.5)
            counted = each.counts.detections, each.counts.positives
            rates = ", ".join(f"{n[:, 2].sum() / minutes:.1f}" for n in counted)
            cells = [*map(share, each.f1()[1:3]), bare(precision, 2), bare(recall, 2), rates]
            lines.append([f"{kind} ({len(names)})", each.name, *cells])
    header = ["clips", "", *TOLERANCES[1:3], "precision ±0.5 s", "recall ±0.5 s", "found, rated a minute"]
    made.table("F1 by kind of footage", header, lines)


def _differences(made: Report, scored: Scored) -> None:
    others = (*(each for each in scored.blind if not each.name.startswith("a rater")), *scored.rows)
    lines, data = [], {}
    for ours in scored.ours:
        cells, kept = [], {}
        for column, tolerance in enumerate(ABSOLUTE):
            best = max(others, key=lambda each, t=tolerance: each.at(t)[2])  # type: ignore[misc]
            figure, above = difference(ours, best)[column]
            cells.append(f"{signed(figure)}, {best.name}")
            kept[str(tolerance)] = {**figure.as_json(), "other": best.name, "draws above 0": above}
        lines.append([ours.name, *cells])
        data[ours.name] = kept
    made.table("F1 less that of the best other method", ["", *TOLERANCES], lines)
    made.say(
        "Paired bootstrap: both on the same draws of clips. The other is the best of all floors and methods "
        "above at that tolerance, except the raters, and was chosen on these clips, which favours it."
    )
    made.data["differences"] = data


if __name__ == "__main__":
    sys.exit(main())
