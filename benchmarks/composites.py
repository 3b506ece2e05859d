"""Every method on composites of real clips: each kind of boundary, each kind of distractor.

    python benchmarks/composites.py --clips DIR --work DIR [--train-clips DIR] [--methods …] [--out FILE]

Makes the sets (`ongebd compose`), trains, runs every method and writes FILE.md and FILE.json. The work folder
keeps sets, models and features. Composites test single properties; benchmarks/real_clips.py tests on real
events.

- The test set holds all kinds of boundary and distractor, or is of existing folders (`--test`), whose learned
  models are scored by their out-of-fold predictions (`--predictions`; see scripts/train_default_model.py).
- Of each distractor alone there are ten minutes over one standing picture, where nothing else can fire.
- `miniroad` and `estimator` are trained here in minutes, on composites of --train-clips, none of which may be
  in the test set. That is far too little for them, and says nothing about them at full size.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from footage.methods import Film, Found, command_line, found_in, methods_of, predicted
from footage.report import Report, number, share
from footage.scores import AFTER, Row, clock_row, false_alarms, recall_by_kind, row, span_counts
from footage.training import NAMES, Trained, clips_in, composed, joined, run, trained

from ongebd.data import LabelSet, VideoPrediction
from ongebd.errors import OngebdError
from ongebd.lab.composites import DISTRACTOR_KINDS, Composites
from ongebd.lab.composites.config import SMOOTH
from ongebd.lab.evaluation.floors import clock_times
from ongebd.lab.evaluation.relative_distance import ABSOLUTE

UNTRAINED = ("window-mean", "window-mean@tau=5", "persistence", "persistence@tau=7")
PEERS = ("scenedetect-adaptive", "scenedetect-content", "scenedetect-hash", "transnetv2")
SEED = "6"
CONTROL, CLOCK = "control", "clock"
SHOWN = (0.1, 0.25, 0.5)
MARGIN = 0.25
"""Seconds by which a detection may miss the span of a transition."""


@dataclass(frozen=True, eq=False)
class Scored:
    """All that the tables are made of."""

    labels: LabelSet
    test: Composites
    found: Mapping[str, Found]
    alarms: Mapping[str, Mapping[str, Mapping[str, tuple[Composites, Found]]]]
    """By motion, method and kind of distractor: a set without boundaries, and what was found in it."""
    clock: Row
    blind: tuple[float, Found]
    """A clock of one period, and what it finds in the test set."""
    training: Mapping[str, Trained] = field(default_factory=dict)


def main() -> int:
    """Make, train, run, write."""
    asker = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asker.add_argument("--clips", type=Path, nargs="+", required=True, help="clips of the test sets")
    asker.add_argument("--train-clips", type=Path, nargs="+", default=[], help="clips of the training set")
    asker.add_argument("--work", type=Path, required=True, help="folder for sets, features and models")
    asker.add_argument("--test", type=Path, nargs="+", help="folders of composites that are the test set")
    asker.add_argument("--predictions", nargs="+", default=[], metavar="NAME=FILE", help="of the test set")
    asker.add_argument("--methods", nargs="*", help="see benchmarks/footage/methods.py; all by default")
    asker.add_argument("--alarms", nargs="+", default=[], help="methods for the distractor sets only")
    asker.add_argument("--without", type=Path, help="file of names of clips that the test sets leave out")
    asker.add_argument("--minutes", default="10", help="of each distractor")
    asker.add_argument("--distractors", default=",".join(DISTRACTOR_KINDS))
    asker.add_argument("--motion", default="still", help="of the distractor sets: still,calm; or none")
    asker.add_argument("--out", type=Path, default=Path("benchmarks/results/composites"))
    asked = asker.parse_args()
    try:
        measure(asked)
    except OngebdError as problem:
        print(f"composites: {problem}", file=sys.stderr)
        return 2
    return 0


def measure(asked: argparse.Namespace) -> None:
    """All of it."""
    names = asked.methods
    if names is None:
        names = [*UNTRAINED, *PEERS, *(NAMES if asked.train_clips else ())]
    clips = clips_in(asked.clips, asked.without)
    sets = asked.work / "sets"
    made_here = ("--videos", "60", "--seed", SEED)
    test = joined(asked.test) if asked.test else composed(sets / "test", clips, *made_here)
    training = train(asked, [name for name in names if name in NAMES], test)
    methods = methods_of(training[name].method(name) if name in training else name for name in names)
    labels = test.labels()
    found: dict[str, Found] = {
        **found_in(methods, films_of(test), asked.work),
        **predicted(asked.predictions, labels),
    }
    clock, periods = clock_row(labels)
    period = periods[ABSOLUTE.index(0.25)]
    alarms: dict[str, dict[str, dict[str, tuple[Composites, Found]]]] = {}
    for motion in asked.motion.split(",") if asked.motion != "none" else ():
        for kind in (CONTROL, *filter(None, asked.distractors.split(","))):
            shown = ("--boundaries", "none", "--motion", motion, "--minutes", asked.minutes, "--seed", SEED)
            distractors = ("--distractors", "none" if kind == CONTROL else kind)
            some = composed(sets / f"{motion}-{kind}", clips, *shown, *distractors)
            by_method = alarms.setdefault(motion, {})
            for method in [*methods, *methods_of(asked.alarms)]:
                heard = found_in([method], films_of(some), asked.work)[method.label]
                by_method.setdefault(method.label, {})[kind] = some, heard
            by_method.setdefault(CLOCK, {})[kind] = some, blind_clock(some, period)
    for of in alarms.values():
        of[CLOCK] = of.pop(CLOCK)  # the last column
    scored = Scored(labels, test, found, alarms, clock, (period, blind_clock(test, period)), training)
    made = tables(scored, command_line("composites"))
    made.write(asked.out)
    print(made.text())


def train(asked: argparse.Namespace, names: Sequence[str], test: Composites) -> dict[str, Trained]:
    """The models that are trained on composites, by name."""
    if not names:
        return {}
    if not asked.train_clips:
        raise OngebdError(f"{', '.join(names)}: trained on composites of other clips; give --train-clips")
    settings = ("--videos", "45", "--seed", SEED)
    training = composed(asked.work / "sets" / "train", asked.train_clips, *settings)
    same = set(training.clips) & set(test.clips)
    if same:
        raise OngebdError(f"{', '.join(sorted(same)[:3])}: in the training clips and in the test clips")
    folder = asked.work / "training"
    videos = [video.path for video in training.videos.values()]
    run("extract", *videos, "--quiet", "--out", folder / "features")
    paths = folder / "features", training.folder / "labels.json"
    return {name: trained(name, *paths, folder / name) for name in names}


def films_of(some: Composites) -> list[Film]:
    """The videos of a set."""
    return [Film(name, video.path) for name, video in some.videos.items()]


def blind_clock(some: Composites, period: float) -> Found:
    """What a clock finds."""
    times = {name: clock_times(video.duration, period) for name, video in some.videos.items()}
    return {name: VideoPrediction(each, each, each, onsets_known=each) for name, each in times.items()}


def tables(scored: Scored, command: str) -> Report:
    """All tables."""
    made = Report("Composites: every method, every kind", command)
    made.data["trained"] = {
        name: {"settings": each.settings, "seconds": round(each.seconds)}
        for name, each in scored.training.items()
    }
    _about(made, scored)
    _f1(made, scored)
    _recall(made, scored)
    for motion, of in scored.alarms.items():
        _alarms(made, motion, of)
    made.delays("Delay, seconds after the boundary, of detections within ±0.5 s", scored.labels, scored.found)
    made.say(
        "The onset of a method that looks ahead is known only when the frames after it have come. The label "
        "of a dissolve or fade is its middle, so a detection at its beginning has a delay below 0."
    )
    return made


def _about(made: Report, scored: Scored) -> None:
    videos = scored.test.videos.values()
    minutes, count = sum(v.duration for v in videos) / 60, sum(len(v.boundaries) for v in videos)
    clips = sorted({clip for video in videos for clip in video.clips})
    made.data["test"] = {"videos": len(videos), "minutes": minutes, "boundaries": count, "clips": clips}
    unlabelled = "What happens within the clips is not labelled, so precision and F1 are lower bounds."
    if scored.test.settings.get("labelled_boundaries") is not None:
        unlabelled = "What raters of the clips saw is labelled or kept out; anything else is a false alarm."
    made.say(
        f"Test set: {len(videos)} composites, {minutes:.1f} min, {count} boundaries, of {len(clips)} clips. "
        f"In brackets: 95 % by the bootstrap over videos. {unlabelled}"
    )
    if scored.training:
        made.say(
            "Trained here, on composites of other clips, with `ongebd extract` and `ongebd train`: small "
            "settings on minutes of video, which is far too little for them.",
            *(
                f"- {name}: {', '.join(each.settings)}; {each.seconds / 60:.1f} min on one core"
                for name, each in scored.training.items()
            ),
        )


def _f1(made: Report, scored: Scored) -> None:
    minutes = sum(video.duration for video in scored.test.videos.values()) / 60
    lines, data = [], {}
    for name, found in scored.found.items():
        centre, onset = row(name, scored.labels, found), row(name, scored.labels, found, "onset")
        span = Row(name, span_counts(scored.test.videos, found, ABSOLUTE))
        rate = sum(len(each.times) for each in found.values()) / minutes
        lines.append(
            [name, *_cells(centre, SHOWN), *_cells(onset, [MARGIN]), *_cells(span, [MARGIN]), f"{rate:.1f}"]
        )
        data[name] = {"centre": centre.as_json(), "onset": onset.as_json(), "span": span.as_json()}
    lines.append([scored.clock.name, *_cells(scored.clock, SHOWN), "", "", ""])
    made.data["f1"] = {**data, CLOCK: {"centre": scored.clock.as_json()}}
    header = ["", *(f"±{t:g} s" for t in SHOWN), "onset, ±0.25 s", "span, ±0.25 s", "found a minute"]
    made.table("F1", header, lines)
    made.say(
        "*onset*: the first frame that fired is scored instead of the centre of those that fired. *span*: a "
        "dissolve or fade is found by a detection from its first to its last mixed frame, and 0.25 s around; "
        f"otherwise its label is its middle. Clock: {scored.clock.detail}."
    )


def _cells(of: Row, tolerances: Sequence[float]) -> list[str]:
    f1 = of.f1()
    return [share(f1[ABSOLUTE.index(tolerance)]) for tolerance in tolerances]


def _recall(made: Report, scored: Scored) -> None:
    everything = {**scored.found, f"clock, every {scored.blind[0]:g} s": scored.blind[1]}
    data = made.data.setdefault("recall", {})

    def table(head: str, key: str, tolerance: float, *, span: bool = False) -> None:
        videos = scored.test.videos
        found = {name: recall_by_kind(videos, of, tolerance, span=span) for name, of in everything.items()}
        first = next(iter(found.values()))
        kinds = [kind for kind in first if kind in SMOOTH or not span]
        rows = [
            [f"{kind} ({first[kind][0]})", *(share(of[kind][1]) for of in found.values())] for kind in kinds
        ]
        made.table(head, ["", *found], rows)
        data[key] = {
            name: {kind: {"count": count, **figure.as_json()} for kind, (count, figure) in of.items()}
            for name, of in found.items()
        }

    for tolerance in (0.25, 0.5):
        table(f"Recall by kind of boundary, ±{tolerance:g} s", str(tolerance), tolerance)
    made.say("Recall alone says little: a method that fires often finds much, as the clock shows.")
    head = f"Recall of dissolves and fades, anywhere in the transition, ±{MARGIN:g} s"
    table(head, "span", MARGIN, span=True)


def _alarms(made: Report, motion: str, of: Mapping[str, Mapping[str, tuple[Composites, Found]]]) -> None:
    found = {
        name: {kind: false_alarms(some.videos, heard) for kind, (some, heard) in kinds.items()}
        for name, kinds in of.items()
    }
    lines = []
    for kind in next(iter(found.values())):
        alarms = [kinds[kind] for kinds in found.values()]
        if kind == CONTROL:
            lines.append(["control: no distractor", *(number(each.all) for each in alarms)])
        else:
            cells = [f"{number(each.during)} \\| {each.all.value:.0f}" for each in alarms]
            lines.append([f"{kind} ({max(each.distractors for each in alarms)})", *cells])
    made.table(f"False alarms an hour in videos without a boundary, `--motion {motion}`", ["", *found], lines)
    most = 60 * min(each.hours for kinds in found.values() for each in kinds.values())
    made.say(
        f"At least {most:.1f} min of each kind, in the brackets its number of distractors. First figure: "
        f"detections whose onset is in a distractor or at most {AFTER:g} s after it, an hour of video, "
        "with its interval over videos; after the bar all detections an hour. None in ten minutes doesn't "
        "prove none: as of independent events, 95 % reach up to 22 an hour. "
        + (
            "Each video is one standing picture, so whatever fires does so at the distractor or at nothing."
            if motion == "still"
            else "The clips' own events remain in these videos: compare each row with the control's."
        )
    )
    made.data.setdefault("false alarms", {})[motion] = {
        name: {kind: asdict(each) for kind, each in kinds.items()} for name, kinds in found.items()
    }


if __name__ == "__main__":
    sys.exit(main())
