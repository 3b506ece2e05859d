"""The tables of benchmarks/composites.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from footage.kinds import AFTER, Alarms, Recall, false_alarms, recall_by_kind, span_counts
from footage.listening import Found
from footage.making import CONTROL, Trained
from footage.methods import Method
from footage.scores import Figure, Row, delay_figures, row
from footage.tables import Report, number, seconds, share
from ongebd.data.label_set import LabelSet
from ongebd.lab.composites import Composites
from ongebd.lab.composites.config import SMOOTH
from ongebd.lab.evaluation.figures import ABSOLUTE

CLOCK = "clock"
SHOWN = (0.1, 0.25, 0.5)
TAUS = (
    " The untrained methods' own τ was chosen on real clips; those behind an @ did best in an"
    " earlier study, on composites of features."
)
MARGIN = 0.25
"""Seconds by which a detection may miss the span of a transition."""

Quiet = Mapping[str, Mapping[str, tuple[Composites, Mapping[str, Found]]]]
"""By method and kind of distractor: the set, and what was found in it."""


@dataclass(frozen=True, eq=False)
class Scored:
    """All that the tables are made of.

    Attributes:
        labels: Of the test set.
        test: It.
        found: In it, by method and video.
        alarms: By motion: what was found in the sets without boundaries.
        clock: Its scores at the best periods.
        blind: A clock of one period, and what it finds in the test set.
        methods: In the tables' order.
        training: How those that were trained were, by name.
    """

    labels: LabelSet
    test: Composites
    found: Mapping[str, Mapping[str, Found]]
    alarms: Mapping[str, Quiet]
    clock: Row
    blind: tuple[float, Mapping[str, Found]]
    methods: Sequence[Method]
    training: Mapping[str, Trained]


def write(scored: Scored, command: str) -> Report:
    """All tables."""
    made = Report("Composites: every method, every kind", command)
    made.data["methods"] = {method.label: method.about() for method in scored.methods}
    made.data["trained"] = {name: each.as_json() for name, each in scored.training.items()}
    _about(made, scored)
    _f1(made, scored)
    _recall(made, scored)
    _alarms(made, scored)
    _delay(made, scored)
    return made


def _about(made: Report, scored: Scored) -> None:
    videos = scored.test.videos.values()
    minutes = sum(video.duration for video in videos) / 60
    count = sum(len(video.boundaries) for video in videos)
    clips = {clip for video in videos for clip in video.clips}
    made.data["test"] = {
        "videos": len(videos),
        "minutes": minutes,
        "boundaries": count,
        "clips": sorted(clips),
    }
    made.say(
        f"Test set: {len(videos)} composites, {minutes:.1f} min, {count} boundaries, of {len(clips)} clips. "
        f"In brackets: 95 % by the bootstrap over videos. {_unlabelled(scored.test)} "
        "Composites test single properties; who is good on them need not be good on real events."
    )
    if scored.training:
        lines = [
            f"- {name}: {', '.join(each.settings)}; {each.seconds / 60:.1f} min on one core"
            for name, each in scored.training.items()
        ]
        made.say(
            "Trained here, on composites of other clips, with `ongebd extract` and `ongebd train`: small "
            "settings on minutes of video, which is far too little for them; nothing here says what they do "
            "at full size.",
            *lines,
        )


def _unlabelled(test: Composites) -> str:
    if test.settings.get("labelled_boundaries") is None:
        return "What happens within the clips is not labelled, so precision and F1 are lower bounds."
    return (
        "Boundaries that raters of the clips saw are labelled or kept out; what they did not see counts as a "
        "false alarm."
    )


def _f1(made: Report, scored: Scored) -> None:
    made.head("F1")
    header = ["", *(f"±{t:g} s" for t in SHOWN), "onset, ±0.25 s", "span, ±0.25 s", "found a minute"]
    hours = sum(video.duration for video in scored.test.videos.values()) / 3600
    lines, data = [], {}
    for name, found in scored.found.items():
        centre, onset = row(name, scored.labels, found), row(name, scored.labels, found, "onset")
        span = Row(name, span_counts(scored.test.videos, found, ABSOLUTE))
        lines.append(
            [name, *_f1_cells(centre), _at(onset, 0.25), _at(span, 0.25), f"{_rate(found, hours) / 60:.1f}"]
        )
        data[name] = {"centre": centre.as_json(), "onset": onset.as_json(), "span": span.as_json()}
    lines.append([scored.clock.name, *_f1_cells(scored.clock), "", "", ""])
    data[CLOCK] = {"centre": scored.clock.as_json()}
    made.data["f1"] = data
    made.table(header, lines)
    made.say(
        "*onset*: the first frame that fired is scored in place of the centre of those that fired. *span*: a "
        "dissolve or fade is found by a detection from its first to its last mixed frame, and 0.25 s around; "
        f"else its label is its middle. Clock: {scored.clock.detail}."
        + (TAUS if any("@tau" in name for name in scored.found) else "")
    )


def _recall(made: Report, scored: Scored) -> None:
    everything = {**scored.found, f"clock, every {scored.blind[0]:g} s": scored.blind[1]}
    data: dict[str, Any] = {}
    for tolerance in (0.25, 0.5):
        table = {n: recall_by_kind(scored.test.videos, f, tolerance) for n, f in everything.items()}
        made.head(f"Recall by kind of boundary, ±{tolerance:g} s")
        _by_kind(made, table)
        data[str(tolerance)] = _recall_json(table)
    made.say("Recall alone says little: who fires often finds much, as the clock shows.")
    span = {n: recall_by_kind(scored.test.videos, f, MARGIN, span=True) for n, f in everything.items()}
    made.head(f"Recall of dissolves and fades, anywhere in the transition, ±{MARGIN:g} s")
    _by_kind(made, {name: {k: r for k, r in of.items() if k in SMOOTH} for name, of in span.items()})
    data["span"] = _recall_json(span)
    made.data["recall"] = data


def _by_kind(made: Report, table: Mapping[str, Mapping[str, Recall]]) -> None:
    kinds = list(next(iter(table.values())))
    lines = []
    for kind in kinds:
        count = next(iter(table.values()))[kind].count
        lines.append([f"{kind} ({count})", *(share(of[kind].share) for of in table.values())])
    made.table(["", *table], lines)


def _alarms(made: Report, scored: Scored) -> None:
    for motion, of in scored.alarms.items():
        made.head(f"False alarms an hour in videos without a boundary, `--motion {motion}`")
        table = {
            name: {k: false_alarms(s.videos, f) for k, (s, f) in kinds.items()} for name, kinds in of.items()
        }
        lines = []
        for kind in next(iter(table.values())):
            counts = {of[kind].distractors for of in table.values()}
            name = "control: no distractor" if kind == CONTROL else f"{kind} ({max(counts)})"
            lines.append([name, *(_alarm(of[kind], control=kind == CONTROL) for of in table.values())])
        made.table(["", *table], lines)
        minutes = {name: 60 * min(a.hours for a in of.values()) for name, of in table.items()}
        most = max(minutes.values())
        part = [f"{name} saw the first {m:.1f} min of each" for name, m in minutes.items() if m < most - 1]
        made.say(
            f"At least {most:.1f} min of each kind, in the brackets its number of distractors. First figure: "
            f"detections whose onset lies in a distractor or at most {AFTER:g} s after it, an hour of video, "
            "with its interval over videos; behind the bar all detections an hour. None in ten minutes is no "
            "proof of none: as of independent events, 95 % reach up to 22 an hour (JSON: `poisson`). "
            + _said_of(motion)
            + "".join(f" {line}." for line in part)
        )
        made.data.setdefault("false alarms", {})[motion] = {
            name: {kind: _alarm_json(a) for kind, a in of.items()} for name, of in table.items()
        }


def _said_of(motion: str) -> str:
    if motion == "still":
        return (
            "Each video is one standing picture, so whatever fires does so at the distractor or at nothing."
        )
    return "The clips' own events remain in these videos: read a row beside the control's."


def _alarm(alarms: Alarms, *, control: bool) -> str:
    whole = f"{alarms.all.value:.0f}"
    return number(alarms.all) if control else f"{number(alarms.during)} \\| {whole}"


def _alarm_json(alarms: Alarms) -> dict[str, Any]:
    return {
        "distractors": alarms.distractors,
        "minutes": 60 * alarms.hours,
        "count": alarms.count,
        "during": alarms.during.as_json(),
        "all": alarms.all.as_json(),
        "poisson": asdict(alarms.poisson),
    }


def _delay(made: Report, scored: Scored) -> None:
    made.head("Delay, seconds after the boundary, of detections within ±0.5 s")
    lines, data = [], {}
    for name, found in scored.found.items():
        cells, kept = [], {}
        for moment in ("onset", "centre"):
            figures = delay_figures(scored.labels, found, moment)
            cells += [seconds(figures.get("median")), seconds(figures.get("p90"))]
            kept[moment] = {key: value.as_json() for key, value in figures.items()}
        lines.append([name, *cells])
        data[name] = kept
    made.data["delay"] = data
    made.table(["", "onset told, median", "p90", "centre decided, median", "p90"], lines)
    made.say(
        "Of methods that look ahead the onset is told only when the frames after it have come. The label of "
        "a dissolve or fade is its middle, so a detection at its beginning has a delay below 0."
    )


def _recall_json(table: Mapping[str, Mapping[str, Recall]]) -> dict[str, Any]:
    return {
        name: {kind: {"count": r.count, **r.share.as_json()} for kind, r in of.items()}
        for name, of in table.items()
    }


def _f1_cells(of: Row) -> list[str]:
    return [_at(of, tolerance) for tolerance in SHOWN]


def _at(of: Row, tolerance: float) -> str:
    return share(of.f1()[ABSOLUTE.index(tolerance)])


def _rate(found: Mapping[str, Found], hours: float) -> float:
    return Figure(sum(len(each.times) for each in found.values()) / hours).value
