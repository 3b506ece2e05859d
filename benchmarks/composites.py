"""Every method on composites of real clips: each kind of boundary, each kind of distractor.

    python benchmarks/composites.py --clips DIR --work DIR [--train-clips DIR] [--methods …] [--out FILE]

makes the sets (`ongebd compose`), trains what is trained on them, runs every method and writes FILE.md and
FILE.json. Sets, features and the peers' scores are kept in the work folder, so that a run can be taken up
again, and another method costs its decisions only. Composites test single properties: being good on them does
not mean being good on real events (benchmarks/real_clips.py).

- The test set holds all kinds of boundary and distractor. Of each distractor by itself there are ten minutes
  without boundaries, over one standing picture (`--motion still`), where nothing else can fire.
- With `--test` the test set is of folders that are there already: as by scripts/train_default_model.py,
  whose learned models are then scored by what they said out of fold (`--predictions`).
- `miniroad` and `estimator` among the methods are trained here, on composites of --train-clips; no clip of
  theirs may be in the test set. See `TRAININGS` in benchmarks/footage/making.py: some minutes on one core,
  on a quarter of an hour of video. That is far too little for them (Kinetics-GEBD has 52 hours), and says
  nothing of what they do at full size.
- Scored is the centre of a boundary, and beside it the onset, the first frame that fired.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from footage import composites_report as report
from footage.films import films_of
from footage.listening import Found, Listening
from footage.making import Trained, clips_in, composed, distractor_sets, joined, run, trained
from footage.methods import Method, method_of, unique
from footage.predicted import pairs, predicted, without_folders
from footage.scores import clock_row

from ongebd import backbones
from ongebd.errors import OngebdError
from ongebd.lab.composites import Composites
from ongebd.lab.composites.config import DISTRACTOR_KINDS
from ongebd.lab.evaluation.figures import ABSOLUTE
from ongebd.lab.evaluation.floors import clock_times

UNTRAINED = ("window-mean", "window-mean@tau=5", "persistence", "persistence@tau=7")
PEERS = ("scenedetect-adaptive", "scenedetect-content", "scenedetect-hash", "transnetv2")
TRAINED = {"miniroad": "MiniROAD-BC", "estimator": "ESTimator"}
SEED = 6
FPS = 24.0


@dataclass
class Sets:
    """What is scored.

    Attributes:
        test: All kinds.
        alone: A set for each kind of distractor, and the control, by motion and kind.
        training: How the trained ones were trained, by name.
    """

    test: Composites
    alone: dict[str, dict[str, Composites]]
    training: dict[str, Trained] = field(default_factory=dict)


def main() -> int:
    """Make, train, run, write."""
    asked = arguments()
    try:
        return measure(asked)
    except OngebdError as problem:
        print(f"composites: {problem}", file=sys.stderr)
        return 2


def arguments() -> argparse.Namespace:
    """The command line."""
    asker = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asker.add_argument(
        "--clips", type=Path, nargs="+", required=True, help="folders of clips for the test sets"
    )
    asker.add_argument("--train-clips", type=Path, nargs="+", help="folders of clips for the training set")
    asker.add_argument("--work", type=Path, required=True, help="folder for sets, features and models")
    asker.add_argument("--test", type=Path, nargs="+", help="folders of composites that are the test set")
    asker.add_argument("--predictions", nargs="+", default=[], metavar="NAME=FILE", help="of the test set")
    asker.add_argument("--methods", nargs="*", help="see benchmarks/footage/methods.py; all by default")
    asker.add_argument("--add", nargs="+", default=[], help="more methods beside these")
    asker.add_argument("--alarms", nargs="+", default=[], help="methods for the distractor sets only")
    asker.add_argument("--without", type=Path, help="file of names of clips that the test sets leave out")
    asker.add_argument("--videos", type=int, default=60, help="in the test set")
    asker.add_argument("--train-videos", type=int, default=45)
    asker.add_argument("--minutes", type=float, default=10.0, help="of each distractor")
    asker.add_argument("--distractors", default=",".join(DISTRACTOR_KINDS))
    asker.add_argument(
        "--motion", default="still", help="of the distractor sets: still,calm; or none of them"
    )
    asker.add_argument(
        "--slow", nargs="*", default=["transnetv2"], help="methods for a part of these sets only"
    )
    asker.add_argument("--slow-minutes", type=float, default=3.0, help="that part, of each set")
    asker.add_argument(
        "--keep", nargs="*", default=[], metavar="BACKBONE", help="features for methods to come"
    )
    asker.add_argument("--sets-only", action="store_true", help="make the sets, and train")
    asker.add_argument("--out", type=Path, default=Path("benchmarks/results/composites"))
    return asker.parse_args()


def measure(asked: argparse.Namespace) -> int:
    """All of it."""
    usual = [*UNTRAINED, *PEERS, *(TRAINED if asked.train_clips else ())]
    names = [*(usual if asked.methods is None else asked.methods), *asked.add]
    sets = make_sets(asked, [name for name in names if name in TRAINED])
    if asked.sets_only:
        return 0
    methods = unique([_method(name, sets.training) for name in names])
    listening = Listening(asked.work)
    for name in asked.keep:
        every = [sets.test, *(some for of in sets.alone.values() for some in of.values())]
        films = [film for some in every for film in films_of({n: v.path for n, v in some.videos.items()})]
        listening.keep(backbones.get(name), FPS, films)
    labels = sets.test.labels()
    found = dict(listening.all(methods, films_of({n: v.path for n, v in sets.test.videos.items()})))
    found |= {name: predicted(name, Path(file), labels) for name, file in pairs(asked.predictions)}
    listened = [*methods, *unique([method_of(name) for name in asked.alarms])]
    alarms = {motion: quiet(asked, listening, listened, of) for motion, of in sets.alone.items()}
    clock, periods = clock_row(labels)
    period = periods[ABSOLUTE.index(0.25)]
    blind = {name: blind_clock(v.duration, period) for name, v in sets.test.videos.items()}
    for motion, of in sets.alone.items():
        alarms[motion][report.CLOCK] = {
            kind: (some, {n: blind_clock(v.duration, period) for n, v in some.videos.items()})
            for kind, some in of.items()
        }
    scored = report.Scored(labels, sets.test, found, alarms, clock, (period, blind), methods, sets.training)
    made = report.write(scored, f"python benchmarks/composites.py {_shown(asked)}")
    made.write(asked.out)
    print(made.text())
    return 0


def make_sets(asked: argparse.Namespace, to_train: Sequence[str]) -> Sets:
    """The composites, and the models that are trained on composites."""
    folder = asked.work / "sets"
    clips = clips_in(asked.clips, asked.without)
    if asked.test:
        test = joined(asked.test)
    else:
        test = composed(folder / "test", clips, "--videos", str(asked.videos), "--seed", str(SEED))
    kinds = [kind for kind in asked.distractors.split(",") if kind]
    alone = {
        motion: distractor_sets(folder, clips, motion, asked.minutes, SEED, kinds)
        for motion in asked.motion.split(",")
        if motion != "none"
    }
    sets = Sets(test, alone)
    if not to_train:
        return sets
    if asked.train_clips is None:
        raise OngebdError(f"{', '.join(to_train)}: trained on composites of other clips; give --train-clips")
    training = composed(
        folder / "train", asked.train_clips, "--videos", str(asked.train_videos), "--seed", str(SEED)
    )
    same = set(training.clips) & set(test.clips)
    if same:
        raise OngebdError(f"{', '.join(sorted(same)[:3])}: in the training clips and in the test clips")
    store = asked.work / "training" / "features"
    run("extract", *(video.path for video in training.videos.values()), "--quiet", "--out", store)
    for name in to_train:
        sets.training[name] = trained(
            name, store, training.folder / "labels.json", asked.work / "training" / name, "dataset=custom"
        )
    return sets


def quiet(
    asked: argparse.Namespace, listening: Listening, methods: Sequence[Method], of: Mapping[str, Composites]
) -> dict[str, dict[str, tuple[Composites, dict[str, Found]]]]:
    """What each method finds in the sets without boundaries: by label and kind, with the part that it saw."""
    result: dict[str, dict[str, tuple[Composites, dict[str, Found]]]] = {m.label: {} for m in methods}
    for kind, some in of.items():
        for slow in (False, True):
            chosen = [method for method in methods if (method.model.name in asked.slow) == slow]
            part = first_minutes(some, asked.slow_minutes) if slow else some
            films = films_of({name: video.path for name, video in part.videos.items()})
            for label, found in listening.all(chosen, films).items():
                result[label][kind] = part, found
        print(f"{some.folder.name}: done", file=sys.stderr, flush=True)
    return result


def first_minutes(some: Composites, minutes: float) -> Composites:
    """The first videos of a set, that last so long together."""
    kept, seconds = {}, 0.0
    for name, video in some.videos.items():
        if seconds >= 60 * minutes:
            break
        kept[name] = video
        seconds += video.duration
    return Composites(some.folder, kept, some.settings, some.clips)


def blind_clock(duration: float, period: float) -> Found:
    """What a clock finds."""
    times = clock_times(duration, period)
    return Found(times, times, times, np.array(times))


def _method(name: str, training: Mapping[str, Trained]) -> Method:
    if name in training:
        kind = f"{name}:" if name != "estimator" else ""
        return method_of(f"{TRAINED[name]}={kind}{training[name].folder}")
    return method_of(name)


def _shown(asked: argparse.Namespace) -> str:
    """The command line, without the machine's folders."""
    places = [*asked.clips, *(asked.train_clips or ()), *(asked.test or ()), asked.work]
    return shlex.join(without_folders(sys.argv[1:], places))


if __name__ == "__main__":
    sys.exit(main())
