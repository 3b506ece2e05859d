"""Every method on real clips whose boundaries a vision-language model rated: model ratings, not people.

    python benchmarks/real_clips.py --clips DIR [DIR …] --labels model_rated_clips.json --work DIR
        [--predictions NAME=FOLDER …] [--human-labels kinetics_gebd_minval.pkl] [--out FILE]

Scored with this project's evaluation at absolute tolerances, best-annotator rule, all clips. Beside the
methods stand the floors (a clock at its best period for each tolerance; random points), the raters against
each other, and the untrained methods with τ chosen on the other clips, by fold. Trained methods are scored by
predictions on clips that they were not trained on: MiniROAD-BC and ESTimator are trained here, fold by fold
(`--train`); others come from files (`--predictions`, whatever `ongebd evaluate` reads; the folds are theirs).
FILE.md and FILE.json are written, and FILE_each.md with every clip. Features are kept in the work folder.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from footage import real_report as report
from footage.films import Film
from footage.folds import FOLDS, cross_trained, cross_validated, fold_of
from footage.listening import Found, Listening
from footage.making import TRAININGS
from footage.methods import Method, method_of, unique
from footage.predicted import pairs, predicted, without_folders
from footage.scores import Row, ceiling_row, clock_row, random_row, row

from ongebd import backbones
from ongebd.data import LabelSet, read_labels
from ongebd.errors import LabelError, OngebdError

PEERS = (
    *("scenedetect-adaptive", "scenedetect-content", "scenedetect-hash"),
    *("transnetv2", "transnetv2@threshold=0.05"),
)
UNTRAINED = ("persistence", "window-mean")
TAUS = (1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 7.0)
TRAINED = {"miniroad": "MiniROAD-BC", "estimator": "ESTimator"}
BEYOND = 3.0
"""Seconds after a clip's rated part that methods may look at; what they find there does not count."""


def main() -> int:
    """Run, score, write."""
    asked = arguments()
    try:
        return measure(asked)
    except OngebdError as problem:
        print(f"real_clips: {problem}", file=sys.stderr)
        return 2


def arguments() -> argparse.Namespace:
    """The command line."""
    asker = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asker.add_argument("--clips", type=Path, nargs="+", required=True, help="folders of clips")
    asker.add_argument("--labels", type=Path, required=True, help="the ratings")
    asker.add_argument("--work", type=Path, required=True, help="folder for features and models")
    asker.add_argument("--methods", nargs="+", default=[*UNTRAINED, *PEERS])
    asker.add_argument("--predictions", nargs="+", default=[], metavar="NAME=FOLDER", help="out of fold")
    asker.add_argument("--train", nargs="*", default=[], choices=list(TRAININGS), help="fold by fold")
    asker.add_argument("--human-labels", type=Path, help="Kinetics-GEBD labels, for the clips that are in it")
    asker.add_argument(
        "--keep", nargs="*", default=[], metavar="BACKBONE", help="features for methods to come"
    )
    asker.add_argument("--side-by-side", nargs=2, metavar="NAME", help="two methods for the table of clips")
    asker.add_argument("--out", type=Path, default=Path("benchmarks/results/real_clips"))
    return asker.parse_args()


def measure(asked: argparse.Namespace) -> int:
    """All of it."""
    labels = read_labels(asked.labels, dataset="custom")
    films = films_of(labels, asked.clips)
    listening = Listening(asked.work)
    for name in asked.keep:
        listening.keep(backbones.get(name), 24.0, films)
    methods = unique([method_of(name) for name in asked.methods])
    found = listening.all(methods, films)
    given = {name: predicted(name, Path(folder), labels) for name, folder in pairs(asked.predictions)}
    clock, _periods = clock_row(labels)
    ceiling = ceiling_row(labels)
    blind = [clock, random_row(labels)]
    chosen = tuned(labels, listening, methods, films)
    for name in asked.train:
        chosen[f"{TRAINED[name]}, trained on the other clips"] = (
            cross_trained(name, labels, films, listening, asked.work),
            f"{FOLDS} folds; {', '.join(TRAININGS[name])}",
        )
    rows = [row(name, labels, of) for name, of in found.items()]
    rows += [row(name, labels, of, detail=detail) for name, (of, detail) in chosen.items()]
    ours = [row(name, labels, of) for name, of in given.items()]
    everything = {**found, **{name: of for name, (of, _) in chosen.items()}, **given}
    scored = report.Scored(
        labels,
        everything,
        blind,
        [] if ceiling is None else [ceiling],
        rows,
        ours,
        human=None if asked.human_labels is None else human(asked.human_labels, labels),
        side_by_side=tuple(asked.side_by_side or two_of(rows, ours)),
    )
    made = report.write(scored, f"python benchmarks/real_clips.py {shown(asked)}")
    made.data["methods"] = {method.label: method.about() for method in methods}
    made.write(asked.out)
    report.clip_table(scored, made.command).write(asked.out.with_name(f"{asked.out.name}_each"))
    print(made.text())
    return 0


def films_of(labels: LabelSet, folders: Sequence[Path]) -> list[Film]:
    """The rated clips, each to a little beyond its rated part.

    Raises:
        LabelError: A clip is not there.
    """
    files = {path.stem: path for folder in folders for path in folder.rglob("*") if path.is_file()}
    missing = [name for name in labels.videos if name not in files]
    if missing:
        raise LabelError(f"{missing[0]} and {len(missing) - 1} other rated clips are not in the folders")
    return [Film(v.id, files[v.id], v.duration + BEYOND) for v in labels.videos.values()]


def tuned(
    labels: LabelSet, listening: Listening, methods: Sequence[Method], films: Sequence[Film]
) -> dict[str, tuple[Mapping[str, Found], str]]:
    """The untrained methods with τ chosen on the other clips, by name."""
    folds = fold_of(labels)
    result: dict[str, tuple[Mapping[str, Found], str]] = {}
    for method in methods:
        if method.label not in UNTRAINED:
            continue
        tried = {tau: method.changed(f"{method.label}, τ {tau:g}", tau=tau) for tau in TAUS}
        found = listening.all(list(tried.values()), films)
        taken, best = cross_validated(labels, {tau: found[m.label] for tau, m in tried.items()}, folds)
        detail = f"{FOLDS} folds; τ {', '.join(f'{tau:g}' for tau in best)}"
        result[f"{method.label}, τ chosen on the other clips"] = taken, detail
    return result


def human(path: Path, labels: LabelSet) -> LabelSet:
    """People's labels of those rated clips whose name holds the id of one."""
    theirs = read_labels(path, dataset="kinetics-gebd")
    videos = {}
    for name in labels.videos:
        for part in theirs.videos:
            if len(part) == 11 and part in name:
                videos[name] = replace(theirs.videos[part], id=name)
    return LabelSet(videos, dataset="custom")


def two_of(rows: Sequence[Row], ours: Sequence[Row]) -> tuple[str, str]:
    """The best of each side at ±0.5 s; of the others alone where there are none of ours."""
    best = sorted(rows, key=lambda each: -each.at(0.5)[2])
    if not ours:
        return best[0].name, best[1].name
    return max(ours, key=lambda each: each.at(0.5)[2]).name, best[0].name


def shown(asked: argparse.Namespace) -> str:
    """The command line, without the machine's folders."""
    return shlex.join(without_folders(sys.argv[1:], [*asked.clips, asked.work]))


if __name__ == "__main__":
    sys.exit(main())
