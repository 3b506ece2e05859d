"""The tables of a report, for the terminal and for `report.md`, from its values."""

from __future__ import annotations

from pathlib import Path

from ongebd.common.tables import NOTHING, Table
from ongebd.common.text import printable
from ongebd.data.files import videos
from ongebd.lab.evaluation.floors import ceiling_name
from ongebd.lab.evaluation.relative_distance import ABSOLUTE, FIGURES
from ongebd.lab.evaluation.report_values import Values, figure_row, systems_in

FIGURE_NAMES = {
    "average": "Rel.Dis Avg",
    "relative 0.05": "Rel.Dis 0.05",
    **{f"absolute {seconds}": f"± {seconds} s" for seconds in ABSOLUTE},
}


def report_tables(report: Values) -> list[Table]:
    """All tables of a report, in order."""
    tables, names = [_scope_table(report)], system_names(report)
    for name, system in zip(names, systems_in(report), strict=True):
        tables += [
            _figures_table(name, system),
            _relative_table(name, system),
            _absolute_table(name, system),
            *([_kind_table(name, system)] if system["by_kind"] else []),
            _delay_table(name, system),
        ]
    return [*tables, _difference_table(report, names)] if "difference" in report else tables


def system_names(report: Values) -> list[str]:
    """What to call the systems: the names of their files, or the whole paths if the names are the same."""
    paths = [system["predictions"]["file"] or "the predictions" for system in systems_in(report)]
    names = [Path(path).name for path in paths]
    return list(map(printable, names if len(set(names)) == len(names) and all(names) else paths))


def headline(report: Values) -> str:
    """The outcome in one line, with the best floor and the ceiling."""
    skill, value = report["skill"]["average"], report["relative"]["average"]["f1"]
    human = skill["human_f1"]
    ceiling = "no annotators to compare" if human is None else f"annotators {human:.3f}"
    return (
        f"Rel.Dis Avg F1 {value:.3f}, n = {report['n']} ({report['scored']} scored); "
        f"best floor ({skill['best_floor']}) {skill['floor_f1']:.3f}, {ceiling}"
    )


def _scope_table(report: Values) -> Table:
    labels, settings = report["labels"], report["settings"]
    annotators = ", ".join(f"{count} in {n}" for count, n in labels["videos_by_annotators"].items())
    rows = [
        ("labels", f"{labels['file'] or 'given as values'} ({labels['dataset']})"),
        ("sha256 of the labels", labels["sha256"] or NOTHING),
        ("labelled videos", f"{labels['videos']}, annotators: {annotators}"),
    ]
    for system in systems_in(report):
        rows += _scope_of_system(system, settings)
    rows += [("note on labels", note) for note in labels["notes"]]
    return Table("What was scored", ("", ""), rows)


def _scope_of_system(system: Values, settings: Values) -> list[tuple[str, str]]:
    predictions, counts = system["predictions"], system["videos"]
    least = settings["min_consistency"]
    rule = "no filter" if least is None else f"f1_consis_avg below {least:g}"
    missing = "counted as missed" if settings["missing"] == "count" else "left out"
    source = predictions["file"] or "given as values"
    return [
        ("predictions", f"{source} ({predictions['kind']}), the {system['scored']} scored"),
        *(("found by", f"{method} ({videos(n)})") for method, n in predictions["made_by"].items()),
        (
            "ids matched",
            f"{predictions['matched_exactly']} exactly, {predictions['matched_by_pattern']} by pattern, "
            f"{predictions['matched_inside']} inside a longer name; "
            f"{predictions['unknown']} predictions have no label",
        ),
        (
            "videos scored (n)",
            f"{system['n']} = {counts['found']} found + {counts['missing']} missing (missing: {missing}); "
            f"{counts['empty']} found without a detection",
        ),
        (
            "videos left out",
            f"{counts['filtered']} filtered ({rule}), {counts['skipped']} without a prediction",
        ),
        ("detections dropped", f"{counts['out_of_range_detections']} before 0 or after the end"),
        *(("note on predictions", note) for note in predictions["notes"]),
    ]


def _figures_table(name: str, system: Values) -> Table:
    """The system, the floors and the annotators, and the system's skill."""
    own = [figure_row(system, figure) for figure in FIGURES]
    skills = [system["skill"][figure] for figure in FIGURES]
    rows = [
        [name, *(_score(row["f1"]) for row in own)],
        ["  95 % interval", *(_span(row["f1_interval"]) for row in own)],
    ]
    for floor, each in system["floors"].items():
        figures = [each["figures"][figure] for figure in FIGURES]
        rows.append([f"floor: {floor}", *(_score(figure["f1"]) for figure in figures)])
        if floor == "clock":
            rows.append(["  its period", *(figure["detail"] for figure in figures)])
    for human, each in system["human"].items():
        rows.append([ceiling_name(human), *(_score(each["figures"][figure]) for figure in FIGURES)])
    rows.append(["skill", *(_score(skill["value"], "+.3f") for skill in skills)])
    rows.append(["  95 % interval", *(_span(skill["interval"]) for skill in skills)])
    notes = [
        f"n = {videos(system['n'])}; the {system['scored']} of each boundary is scored.",
        "Each column uses the clock's best period on these labels, which favours the clock. Uniform and "
        "random have the system's number of boundaries in each video (random: mean of several seeds).",
        "Skill = (F1 − best floor) / (annotators − best floor); annotators: each in turn against the others.",
    ]
    if system["n"] < 2:
        notes.append("One video: no interval can be given.")
    for why in dict.fromkeys(skill["why_none"] for skill in skills if skill["why_none"]):
        named = [
            FIGURE_NAMES[f] for f, skill in zip(FIGURES, skills, strict=True) if skill["why_none"] == why
        ]
        notes.append(f"No skill for {', '.join(named)}: {why}.")
    notes += [
        f"{ceiling_name(human).capitalize()}: n = {videos(each['n'])} with two annotators or more."
        for human, each in system["human"].items()
    ]
    return Table(f"F1, floors and annotators: {name}", ("", *FIGURE_NAMES.values()), rows, notes)


_SCORES = ("F1", "95 %", "precision", "recall")


def _scores(row: Values) -> list[str]:
    return [_score(row["f1"]), _span(row["f1_interval"]), _score(row["precision"]), _score(row["recall"])]


def _relative_table(name: str, system: Values) -> Table:
    """The official score at each threshold."""
    clock = system["floors"]["clock"]
    human: dict[str, float] = next((each["curve"]["relative"] for each in system["human"].values()), {})
    rows = [
        [
            threshold,
            *_scores(system["relative"][threshold]),
            *(str(system["relative"][threshold][count]) for count in ("tp", "positives", "detections")),
            _score(floor),
            _score(human.get(threshold)),
        ]
        for threshold, floor in clock["curve"]["relative"].items()
    ]
    detail = clock["figures"]["average"]["detail"]
    notes = [f"n = {videos(system['n'])}; the {system['scored']} is scored; clock: {detail}."]
    if (in_frames := system["relative_in_frames"]) is not None:
        notes.append(
            "By the official notebooks' rule in frames (length: last frame + 1): F1@0.05 "
            f"{in_frames['f1']['0.05']:.3f}, Avg {in_frames['average']:.3f}."
        )
    header = ("threshold", *_SCORES, "tp", "positives", "detections", "clock", "annotators")
    return Table(f"Official score (Rel.Dis): {name}", header, rows, notes)


def _absolute_table(name: str, system: Values) -> Table:
    rows = [
        [
            f"± {seconds} s",
            *_scores(row),
            _score(row["false_alarms_per_hour"], ".0f"),
            _span(row["false_alarms_per_hour_interval"], ".0f"),
        ]
        for seconds, row in system["absolute"].items()
    ]
    note = (
        f"n = {videos(system['n'])}, {system['videos']['hours_watched']:.3g} hours watched; "
        f"the {system['scored']} is scored; the annotator is chosen as in the official rule."
    )
    header = ("tolerance", *_SCORES, "false alarms/hour", "95 %")
    return Table(f"Absolute tolerances: {name}", header, rows, [note])


def _kind_table(name: str, system: Values) -> Table:
    rows = [
        [
            printable(kind),
            *(f"{row['tp'] / row['positives']:.3f} of {row['positives']}" for row in by_tolerance.values()),
        ]
        for kind, by_tolerance in system["by_kind"].items()
    ]
    header = ("kind in the labels", *(f"± {seconds} s" for seconds in ABSOLUTE))
    return Table(f"Recall by kind: {name}", header, rows, [f"The {system['scored']} is scored."])


def _delay_table(name: str, system: Values) -> Table:
    within, delay, moment = system["f1_within_delay"], system["delay"], system["scored"]
    if "rows" not in within:
        why = [("delay", f"not measured: {within['why_none']}")]
        return Table(f"Delay: {name}", ("", ""), why, [f"The {moment} is scored."])
    rows = [
        (
            limit if limit == "no limit" else f"{float(limit):g} s",
            _score(row["f1"]),
            _span(row["f1_interval"]),
            _score(within["clock"][limit]),
        )
        for limit, row in within["rows"].items()
    ]
    measured = delay["why_none"] or f"median {delay['median']:+.2f} s, p95 {delay['p95']:+.2f} s"
    notes = [
        f"Matched at ± {within['tolerance']:g} s; a match counts only if it was decided within the "
        f"allowed delay after the annotated boundary; the {moment} is scored; clock: best at ± 0.5 s.",
        f"Delay (decided − matched boundary): {measured}, over n = {delay['n']} matches in "
        f"{videos(system['n'])}.",
    ]
    return Table(f"Delay: {name}", ("allowed delay", "F1", "95 %", "clock"), rows, notes)


def _difference_table(report: Values, names: list[str]) -> Table:
    rows = [
        [
            FIGURE_NAMES[figure],
            _score(each["f1"], "+.3f"),
            _span(each["interval"], "+.3f"),
            _score(each["share_of_draws_above_0"], ".1%").replace("%", " %"),
        ]
        for figure, each in report["difference"].items()
    ]
    draws = report["settings"]["resamples"]
    note = f"Paired bootstrap over the same n = {videos(report['n'])}, {draws} draws."
    header = ("F1", "difference", "95 %", "draws in which it is above 0")
    return Table(f"{names[0]} less {names[1]}", header, rows, [note])


def _score(value: float | None, shape: str = ".3f") -> str:
    return NOTHING if value is None else format(value, shape)


def _span(interval: list[float] | None, shape: str = ".3f") -> str:
    return NOTHING if interval is None else f"{interval[0]:{shape}} … {interval[1]:{shape}}"
