"""The tables of a report, for the terminal and for `report.md` alike: rows of text, titles and notes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ongebd.common.tables import NOTHING, Table
from ongebd.common.text import printable
from ongebd.data.numbers import videos
from ongebd.lab.evaluation.bootstrap import Interval
from ongebd.lab.evaluation.ceiling import Human
from ongebd.lab.evaluation.delay import ALLOWED_DELAYS, DELAY_TOLERANCE, false_alarms_per_hour
from ongebd.lab.evaluation.evaluation import Evaluation
from ongebd.lab.evaluation.figures import ABSOLUTE, ABSOLUTE_PART, FIGURES, figure_values
from ongebd.lab.evaluation.relative_distance import THRESHOLDS
from ongebd.lab.evaluation.report_json import no_decisions
from ongebd.lab.evaluation.system import SystemResult

FIGURE_NAMES = {
    "average": "Rel.Dis Avg",
    "relative 0.05": "Rel.Dis 0.05",
    **{f"absolute {seconds}": f"± {seconds} s" for seconds in ABSOLUTE},
}


def report_tables(evaluation: Evaluation) -> list[Table]:
    """All tables of a report, in order."""
    tables = [scope_table(evaluation)]
    names = system_names(evaluation)
    for name, system in zip(names, evaluation.systems, strict=True):
        tables += [
            figures_table(name, system),
            relative_table(name, system),
            absolute_table(name, system),
            delay_table(name, system),
        ]
    if evaluation.differences:
        tables.append(difference_table(evaluation, names))
    return tables


def system_names(evaluation: Evaluation) -> list[str]:
    """What to call the systems: the names of their files, or where those are alike the whole paths."""
    paths = [system.predictions.source or "the predictions" for system in evaluation.systems]
    names = [Path(path).name for path in paths]
    return list(map(printable, names if len(set(names)) == len(names) and all(names) else paths))


def ceiling_name(human: Human) -> str:
    """What to call a ceiling: annotators need not be people."""
    which = {"each annotator in turn": "each", "most consistent annotator": "the most consistent"}
    return f"annotators: {which.get(human.name, human.name)} against the others"


def headline(evaluation: Evaluation) -> str:
    """The outcome in one line, with what it stands beside."""
    system = evaluation.systems[0]
    skill = system.skill["average"]
    ceiling = "no annotators to compare" if skill.human is None else f"annotators {skill.human:.3f}"
    value = figure_values(system.scores.f1)["average"]
    return (
        f"Rel.Dis Avg F1 {value:.3f}, n = {len(system.comparison)} ({system.predictions.moment} scored); "
        f"best floor ({skill.floor_name}) {skill.floor:.3f}, {ceiling}"
    )


def scope_table(evaluation: Evaluation) -> Table:
    """What was scored, and what was not."""
    labels = evaluation.labels
    least = (
        "no filter"
        if evaluation.min_consistency is None
        else f"f1_consis_avg below {evaluation.min_consistency:g}"
    )
    rows = [
        ("labels", f"{labels.source or 'given as values'} ({labels.dataset})"),
        ("sha256 of the labels", labels.sha256 or NOTHING),
        ("labelled videos", f"{len(labels)}, annotators: {_annotators(evaluation)}"),
    ]
    for system in evaluation.systems:
        comparison, match = system.comparison, system.match
        rows += [
            (
                "predictions",
                f"{system.predictions.source or 'given as values'} ({system.predictions.kind}), "
                f"the {system.predictions.moment} scored",
            ),
            *(("found by", found) for found in _made_by(system)),
            (
                "ids matched",
                f"{match.exact} exactly, {match.by_pattern} by pattern, {match.inside} inside a longer name; "
                f"{len(match.unknown)} predictions have no label",
            ),
            (
                "videos scored (n)",
                f"{len(comparison)} = {int(comparison.found.sum())} found + {comparison.missing} missing "
                f"(missing: {'counted as missed' if evaluation.config.missing == 'count' else 'left out'}); "
                f"{comparison.empty} found without a detection",
            ),
            (
                "videos left out",
                f"{comparison.filtered} filtered ({least}), {comparison.skipped} without a prediction",
            ),
            ("detections dropped", f"{comparison.out_of_range} before 0 or after the end"),
        ]
        rows += [("note on predictions", note) for note in system.predictions.notes]
    rows += [("note on labels", note) for note in labels.notes]
    return Table("What was scored", ("", ""), rows)


def _annotators(evaluation: Evaluation) -> str:
    return ", ".join(f"{count} in {videos}" for count, videos in evaluation.labels.annotator_counts.items())


def _made_by(system: SystemResult) -> list[str]:
    """The methods that the predictions name, at most five."""
    named = sorted(system.predictions.made_by.items(), key=lambda item: -item[1])
    rows = [f"{method} ({videos(count)})" for method, count in named[:5]]
    return rows if len(named) <= 5 else [*rows, f"and {len(named) - 5} other methods or settings"]


def figures_table(name: str, system: SystemResult) -> Table:
    """The system beside the floors and the annotators, and its skill."""
    own, drawn = figure_values(system.scores.f1), figure_values(system.samples.f1)
    rows = [
        [name, *(f"{float(own[figure]):.3f}" for figure in FIGURES)],
        ["  95 % interval", *(span(Interval.of(drawn[figure])) for figure in FIGURES)],
    ]
    for floor in system.floors:
        rows.append([f"floor: {floor.name}", *(f"{floor.figures[figure].f1:.3f}" for figure in FIGURES)])
        if floor.name == "clock":
            rows.append(["  its period", *(floor.figures[figure].detail for figure in FIGURES)])
    for human in system.humans:
        values = figure_values(human.f1)
        rows.append([ceiling_name(human), *(f"{float(values[figure]):.3f}" for figure in FIGURES)])
    skills = [system.skill[figure] for figure in FIGURES]
    rows.append(["skill", *(NOTHING if skill.value is None else f"{skill.value:+.3f}" for skill in skills)])
    rows.append(["  95 % interval", *(span(skill.interval) for skill in skills)])
    notes = [
        f"n = {videos(len(system.comparison))}; the {system.predictions.moment} of each boundary is scored.",
        "The clock's period is chosen on these labels, for each column, which is generous to it; uniform and "
        "random have the system's own count in each video (random: mean of several seeds).",
        "Skill = (F1 − best floor) / (annotators − best floor); annotators: each in turn against the others.",
    ]
    if len(system.comparison) < 2:
        notes.append("One video: no interval can be given.")
    for why in dict.fromkeys(skill.why for skill in skills if skill.why):
        named = [FIGURE_NAMES[f] for f, skill in zip(FIGURES, skills, strict=True) if skill.why == why]
        notes.append(f"No skill for {', '.join(named)}: {why}.")
    notes += [
        f"{ceiling_name(human).capitalize()}: n = {videos(human.n)} with two annotators or more."
        for human in system.humans
    ]
    return Table(f"F1 beside floors and annotators: {name}", ("", *FIGURE_NAMES.values()), rows, notes)


def relative_table(name: str, system: SystemResult) -> Table:
    """The official score at each threshold."""
    clock = system.floors[0]
    rows = []
    for column, threshold in enumerate(THRESHOLDS):
        rows.append(
            [
                str(threshold),
                f"{system.scores.f1[column]:.3f}",
                span(Interval.of(system.samples.f1[:, column])),
                f"{system.scores.precision[column]:.3f}",
                f"{system.scores.recall[column]:.3f}",
                *(
                    f"{int(part[column])}"
                    for part in (system.scores.tp, system.scores.positives, system.scores.detections)
                ),
                f"{clock.curve[column]:.3f}",
                f"{system.humans[0].f1[column]:.3f}" if system.humans else NOTHING,
            ]
        )
    detail = clock.figures["average"].detail
    notes = [
        f"n = {videos(len(system.comparison))}; the {system.predictions.moment} is scored; clock: {detail}."
    ]
    if system.in_frames is not None:
        score = system.in_frames
        notes.append(
            f"By the official notebooks' rule in frames (length: last frame + 1): F1@0.05 {score.f1[0]:.3f}, "
            f"Avg {score.average:.3f}."
        )
    header = (
        "threshold",
        "F1",
        "95 %",
        "precision",
        "recall",
        "tp",
        "positives",
        "detections",
        "clock",
        "annotators",
    )
    return Table(f"Official score (Rel.Dis): {name}", header, rows, notes)


def absolute_table(name: str, system: SystemResult) -> Table:
    """F1 and false alarms at absolute tolerances."""
    alarms = false_alarms_per_hour(system.scores, system.hours)
    drawn = false_alarms_per_hour(system.samples, system.hour_samples[:, None])
    rows = []
    for place, seconds in enumerate(ABSOLUTE):
        column = ABSOLUTE_PART.start + place
        rows.append(
            [
                f"± {seconds} s",
                f"{system.scores.f1[column]:.3f}",
                span(Interval.of(system.samples.f1[:, column])),
                f"{system.scores.precision[column]:.3f}",
                f"{system.scores.recall[column]:.3f}",
                NOTHING if alarms[column] != alarms[column] else f"{alarms[column]:.0f}",
                span(Interval.of(drawn[:, column]), digits=0),
            ]
        )
    notes = [
        f"n = {videos(len(system.comparison))}, {system.hours:.3g} hours watched; "
        f"the {system.predictions.moment} is scored; the annotator is chosen as in the official rule.",
    ]
    header = ("tolerance", "F1", "95 %", "precision", "recall", "false alarms/hour", "95 %")
    return Table(f"Absolute tolerances: {name}", header, rows, notes)


def delay_table(name: str, system: SystemResult) -> Table:
    """F1 within an allowed delay, and the delay itself."""
    moment = system.predictions.moment
    title = f"Delay: {name}"
    if system.within_delay is None or system.delays is None:
        return Table(
            title,
            ("", ""),
            [("delay", f"not measured: {no_decisions(system)}")],
            [f"The {moment} is scored."],
        )
    labels = [*(f"{seconds:g} s" for seconds in ALLOWED_DELAYS), "no limit"]
    samples = system.within_delay_samples
    rows = [
        [
            label,
            f"{system.within_delay.f1[column]:.3f}",
            span(None if samples is None else Interval.of(samples.f1[:, column])),
            f"{system.clock_within_delay[column]:.3f}",
        ]
        for column, label in enumerate(labels)
    ]
    median, late = system.delays.percentile(50), system.delays.percentile(95)
    measured = (
        "no detection matches a boundary" if median is None else f"median {median:+.2f} s, p95 {late:+.2f} s"
    )
    notes = [
        f"Matched at ± {DELAY_TOLERANCE:g} s; a match counts only where it was decided within the allowed "
        f"delay after the annotated boundary; the {moment} is scored; clock: best at ± 0.5 s.",
        f"Delay (decided − matched boundary): {measured}, over n = {len(system.delays.seconds)} matches in "
        f"{videos(len(system.comparison))}.",
    ]
    return Table(title, ("allowed delay", "F1", "95 %", "clock"), rows, notes)


def difference_table(evaluation: Evaluation, names: Sequence[str]) -> Table:
    """The paired comparison."""
    rows = [
        [
            FIGURE_NAMES[figure],
            f"{each.value:+.3f}",
            span(each.interval, signed=True),
            NOTHING if each.better is None else f"{100 * each.better:.1f} %",
        ]
        for figure, each in evaluation.differences.items()
    ]
    n = len(evaluation.systems[0].comparison)
    notes = [f"Paired bootstrap over the same n = {videos(n)}, {evaluation.config.resamples} draws."]
    header = ("F1", "difference", "95 %", "draws in which it is above 0")
    return Table(f"{names[0]} less {names[1]}", header, rows, notes)


def span(interval: Interval | None, *, digits: int = 3, signed: bool = False) -> str:
    """An interval as text."""
    if interval is None:
        return NOTHING
    sign = "+" if signed else ""
    return f"{interval.low:{sign}.{digits}f} … {interval.high:{sign}.{digits}f}"
