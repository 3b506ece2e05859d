"""The tables of benchmarks/real_clips.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from footage.folds import part
from footage.listening import Found
from footage.scores import Row, ceiling_row, delay_figures, difference, row
from footage.tables import Report, bare, seconds, share, signed
from ongebd.data import LabelSet
from ongebd.lab.evaluation.figures import ABSOLUTE

RATED = "model ratings, not people"


@dataclass(frozen=True, eq=False)
class Scored:
    """All that the tables are made of.

    Attributes:
        labels: The ratings.
        found: What was found, by method and clip.
        floors: Blind ones.
        ceilings: Raters against each other.
        rows: Methods.
        ours: Those that came as predictions, which are held against the best other.
        human: People's labels of some of the clips, under the clips' names.
        side_by_side: Two methods, for the table of clips.
    """

    labels: LabelSet
    found: Mapping[str, Mapping[str, Found]]
    floors: Sequence[Row]
    ceilings: Sequence[Row]
    rows: Sequence[Row]
    ours: Sequence[Row]
    human: LabelSet | None
    side_by_side: tuple[str, ...]


def write(scored: Scored, command: str) -> Report:
    """All tables but that of the clips."""
    made = Report("Real clips: every method against model ratings", command)
    minutes = sum(video.duration for video in scored.labels.videos.values()) / 60
    marked = [len(times) for video in scored.labels.videos.values() for times in video.boundaries]
    made.say(
        f"{len(scored.labels)} real clips, {minutes:.1f} min rated, each by three passes of a "
        f"vision-language model: **{RATED}**. A rater marks {np.mean(marked):.1f} boundaries a clip. "
        "Best-annotator rule, all clips, centres; in brackets 95 % by the bootstrap over clips."
    )
    _f1(made, scored)
    _differences(made, scored)
    _delays(made, scored)
    if scored.human is not None and len(scored.human):
        _human(made, scored, scored.human)
    return made


def _f1(made: Report, scored: Scored) -> None:
    made.head("F1")
    header = ["", *(f"±{t:g} s" for t in ABSOLUTE), "onset, ±0.5 s", "precision, recall ±0.5 s"]
    lines = []
    data: dict[str, Any] = {}
    for each in (*scored.floors, *scored.ceilings, *scored.rows, *scored.ours):
        cells = [share(figure) for figure in each.f1()]
        onset = ""
        if each.name in scored.found:
            onset = bare(row("", scored.labels, scored.found[each.name], "onset").at(0.5)[2])
        precision, recall, _ = each.at(0.5)
        lines.append([each.name, *cells, onset, f"{bare(precision)}, {bare(recall)}"])
        data[each.name] = each.as_json()
    made.table(header, lines)
    made.say(*(f"- {each.name}: {each.detail}" for each in (*scored.floors, *scored.rows) if each.detail))
    made.data["f1"] = data


def _differences(made: Report, scored: Scored) -> None:
    if not scored.ours:
        return
    made.head("F1 less that of the best other method")
    lines, data = [], {}
    others = (*scored.floors, *scored.rows)
    for ours in scored.ours:
        cells, kept = [], {}
        for column, tolerance in enumerate(ABSOLUTE):
            best = max(others, key=lambda each, t=tolerance: each.at(t)[2])  # type: ignore[misc]
            figure, above = difference(ours, best)[column]
            cells.append(f"{signed(figure)}, {best.name}")
            kept[str(tolerance)] = {**figure.as_json(), "other": best.name, "draws above 0": above}
        lines.append([ours.name, *cells])
        data[ours.name] = kept
    made.table(["", *(f"±{t:g} s" for t in ABSOLUTE)], lines)
    made.say(
        "Paired bootstrap: both on the same draws of clips. The other is the best of all floors and methods "
        "above at that tolerance, the raters apart, and was chosen on these clips, which favours it."
    )
    made.data["differences"] = data


def _delays(made: Report, scored: Scored) -> None:
    made.head("Delay, seconds after the rated boundary, of detections within ±0.5 s")
    lines, data = [], {}
    for each in (*scored.rows, *scored.ours):
        cells, kept = [], {}
        for moment in ("onset", "centre"):
            figures = delay_figures(scored.labels, scored.found[each.name], moment)
            cells += [seconds(figures.get("median")), seconds(figures.get("p90"))]
            kept[moment] = {key: value.as_json() for key, value in figures.items()}
        lines.append([each.name, *cells])
        data[each.name] = kept
    made.table(["", "onset told, median", "p90", "centre decided, median", "p90"], lines)
    made.data["delay"] = data


def _human(made: Report, scored: Scored, human: LabelSet) -> None:
    n = len(human)
    annotators = "; ".join(f"{len(video.boundaries)} annotators" for video in human.videos.values())
    made.head(f"Against people, n = {n}")
    lines = []
    ceiling = ceiling_row(human)
    raters = {name: scored.labels.videos[name] for name in human.videos}
    if ceiling is not None:
        lines.append(["a person against the others", *(bare(f.value) for f in ceiling.f1()), ""])
    for place in range(3):
        theirs = {n: _as_found(v.boundaries[place]) for n, v in raters.items() if place < len(v.boundaries)}
        if len(theirs) == n:
            lines.append([f"model rater {place + 1}", *_against(human, theirs)])
    lines += [
        [each.name, *_against(human, {name: scored.found[each.name][name] for name in raters})]
        for each in (*scored.rows, *scored.ours)
    ]
    made.table(["", *(f"±{t:g} s" for t in ABSOLUTE), "at"], lines)
    for name, video in human.videos.items():
        made.say(
            f"`{name}` ({annotators}, Kinetics-GEBD). One clip shows nothing but itself. Each annotator's:",
            *(f"- {', '.join(f'{time:.2f}' for time in times)} s" for times in video.boundaries),
        )
    made.data["people"] = {"n": n, "rows": {line[0]: line[1:] for line in lines}}


def _as_found(times: Any) -> Found:
    return Found(times, times, times)


def _against(human: LabelSet, found: Mapping[str, Found]) -> list[str]:
    times = ", ".join(f"{time:.2f}" for each in found.values() for time in each.times)
    return [*(bare(figure.value) for figure in row("", human, found).f1()), times]


def clip_table(scored: Scored, command: str) -> Report:
    """Each clip by two methods at ±0.5 s."""
    first, second = scored.side_by_side
    made = Report(f"Real clips one by one: {first} and {second}", command)
    made.say(
        f"F1 at ±0.5 s against {RATED}: of a clip in which no rater saw a boundary F1 is 0, or, where the "
        "method found none either, not defined (–). *raters*: how many boundaries each marked."
    )
    lines = []
    for name, video in scored.labels.videos.items():
        alone = part(scored.labels, [name])
        cells = []
        for method in (first, second):
            found = scored.found[method][name]
            count = int(((found.times >= 0) & (found.times <= video.duration)).sum())
            marked = any(len(times) for times in video.boundaries)
            f1 = row("", alone, {name: found}).at(0.5)[2]
            cells.append((f1, count, f"{bare(f1, 2)} ({count})" if marked or count else "– (0)"))
        counts = " ".join(str(len(times)) for times in video.boundaries)
        gain = cells[0][0] - cells[1][0]
        shown = f"{gain:+.2f}" if abs(gain) > 0.004 else ""
        lines.append([name, f"{video.duration:.1f}", counts, cells[0][2], cells[1][2], shown])
    made.table(["clip", "s", "raters", f"{first}: F1 (found)", f"{second}: F1 (found)", "difference"], lines)
    made.data["clips"] = {line[0]: line[1:] for line in lines}
    return made
