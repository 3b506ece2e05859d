"""An evaluation as plain values for `report.json`; what is not known is null, with the reason beside it."""

from __future__ import annotations

from ongebd import __version__
from ongebd.data.numbers import FloatArray
from ongebd.lab.evaluation.bootstrap import Interval
from ongebd.lab.evaluation.counts import Scores
from ongebd.lab.evaluation.delay import ALLOWED_DELAYS, DELAY_TOLERANCE, false_alarms_per_hour
from ongebd.lab.evaluation.evaluation import Evaluation
from ongebd.lab.evaluation.figures import ABSOLUTE, ABSOLUTE_PART, RELATIVE_PART, figure_values
from ongebd.lab.evaluation.relative_distance import THRESHOLDS
from ongebd.lab.evaluation.system import SystemResult

Json = dict[str, object]


def no_decisions(system: SystemResult) -> str:
    """Why a system's delay is not measured, in words."""
    known = "onset was known" if system.predictions.moment == "onset" else "boundary was decided"
    return f"the predictions do not say when each {known}"


def to_json(evaluation: Evaluation) -> Json:
    """All figures of an evaluation, of JSON's own types. The first system's stand at the top level.

    `relative["0.05"]["f1"]` and `absolute["0.25"]["f1"]` are scores, `…["f1_interval"]` their 95 %
    intervals; with a second system, `other` holds the same for it, and `difference` the first less the
    second.
    """
    first = evaluation.systems[0]
    document: Json = {
        "ongebd": __version__,
        "labels": _labels(evaluation),
        "settings": {
            "min_consistency": evaluation.min_consistency,
            "missing": evaluation.config.missing,
            "resamples": evaluation.config.resamples,
            "seed": evaluation.config.seed,
        },
        **system_json(first),
    }
    if evaluation.differences:
        document["other"] = system_json(evaluation.systems[1])
        document["difference"] = {
            figure: {
                "f1": each.value,
                "interval": _interval(each.interval),
                "share_of_draws_above_0": each.better,
            }
            for figure, each in evaluation.differences.items()
        }
    return document


def _labels(evaluation: Evaluation) -> Json:
    labels = evaluation.labels
    return {
        "file": labels.source,
        "sha256": labels.sha256,
        "dataset": labels.dataset,
        "videos": len(labels),
        "boundaries_of_first_annotators": labels.boundary_count,
        "videos_by_annotators": {str(count): videos for count, videos in labels.annotator_counts.items()},
        "notes": list(labels.notes),
    }


def system_json(system: SystemResult) -> Json:
    """One system's part of the document."""
    return {
        "scored": system.predictions.moment,
        "n": len(system.comparison),
        "predictions": _predictions(system),
        "videos": _videos(system),
        "relative": _relative(system),
        "relative_in_frames": _in_frames(system),
        "absolute": _absolute(system),
        "floors": _floors(system),
        "human": _humans(system),
        "skill": _skill(system),
        "delay": _delay(system),
        "f1_within_delay": _within_delay(system),
    }


def _predictions(system: SystemResult) -> Json:
    predictions = system.predictions
    renamed = [(name, label) for name, label in system.match.label_of.items() if name != label]
    return {
        "file": predictions.source,
        "kind": predictions.kind,
        "sha256": predictions.sha256,
        "unit": predictions.unit,
        "made_by": dict(predictions.made_by),
        "notes": list(predictions.notes),
        "matched_exactly": system.match.exact,
        "matched_by_pattern": system.match.by_pattern,
        "matched_inside": system.match.inside,
        "not_exact": dict(renamed[:20]),
        "unknown": len(system.match.unknown),
        "unknown_ids": list(system.match.unknown[:20]),
    }


def _videos(system: SystemResult) -> Json:
    comparison = system.comparison
    return {
        "labelled": comparison.labelled,
        "filtered": comparison.filtered,
        "skipped": comparison.skipped,
        "scored": len(comparison),
        "found": int(comparison.found.sum()),
        "missing": comparison.missing,
        "empty": comparison.empty,
        "out_of_range_detections": comparison.out_of_range,
        "hours_watched": system.hours,
    }


def _interval(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


def _row(scores: Scores, samples: Scores | None, column: int) -> Json:
    """One tolerance: counts, scores, and the interval of each score."""
    row: Json = {name: float(getattr(scores, name)[column]) for name in ("f1", "precision", "recall")}
    for name in ("f1", "precision", "recall"):
        drawn = None if samples is None else Interval.of(getattr(samples, name)[:, column])
        row[f"{name}_interval"] = _interval(drawn)
    return row | {name: int(getattr(scores, name)[column]) for name in ("tp", "positives", "detections")}


def _relative(system: SystemResult) -> Json:
    rows: Json = {
        str(threshold): _row(system.scores, system.samples, column)
        for column, threshold in enumerate(THRESHOLDS)
    }
    rows["average"] = {
        "f1": float(figure_values(system.scores.f1)["average"]),
        "f1_interval": _interval(Interval.of(figure_values(system.samples.f1)["average"])),
    }
    return rows


def _in_frames(system: SystemResult) -> Json | None:
    score = system.in_frames
    if score is None:
        return None
    rows: Json = {str(threshold): float(f1) for threshold, f1 in zip(THRESHOLDS, score.f1, strict=True)}
    return {"f1": rows, "average": score.average}


def _absolute(system: SystemResult) -> Json:
    alarms = false_alarms_per_hour(system.scores, system.hours)
    drawn = false_alarms_per_hour(system.samples, system.hour_samples[:, None])
    rows: Json = {}
    for place, seconds in enumerate(ABSOLUTE):
        column = ABSOLUTE_PART.start + place
        rows[str(seconds)] = _row(system.scores, system.samples, column) | {
            "false_alarms_per_hour": _number(alarms[column]),
            "false_alarms_per_hour_interval": _interval(Interval.of(drawn[:, column])),
        }
    return rows


def _number(value: float) -> float | None:
    """A JSON number, which cannot be NaN."""
    return None if value != value else float(value)


def _curve(f1: FloatArray) -> Json:
    return {
        "relative": {str(t): float(value) for t, value in zip(THRESHOLDS, f1[RELATIVE_PART], strict=True)},
        "absolute": {str(s): float(value) for s, value in zip(ABSOLUTE, f1[ABSOLUTE_PART], strict=True)},
    }


def _floors(system: SystemResult) -> Json:
    return {
        floor.name: {
            "figures": {name: {"f1": each.f1, "detail": each.detail} for name, each in floor.figures.items()},
            "curve": _curve(floor.curve),
        }
        for floor in system.floors
    }


def _humans(system: SystemResult) -> Json:
    return {
        human.name: {
            "n": human.n,
            "figures": {name: float(value) for name, value in figure_values(human.f1).items()},
            "curve": _curve(human.f1),
        }
        for human in system.humans
    }


def _skill(system: SystemResult) -> Json:
    return {
        figure: {
            "value": skill.value,
            "interval": _interval(skill.interval),
            "best_floor": skill.floor_name,
            "floor_f1": skill.floor,
            "human_f1": skill.human,
            "why_none": skill.why or None,
        }
        for figure, skill in system.skill.items()
    }


def _delay(system: SystemResult) -> Json:
    delays = system.delays
    if delays is None:
        return {"n": 0, "median": None, "p95": None, "why_none": no_decisions(system)}
    return {
        "n": len(delays.seconds),
        "tolerance": delays.tolerance,
        "median": delays.percentile(50),
        "p95": delays.percentile(95),
        "why_none": None if len(delays.seconds) else "no detection matches a boundary",
    }


def _within_delay(system: SystemResult) -> Json:
    if system.within_delay is None:
        return {"why_none": no_decisions(system)}
    names = [*(str(seconds) for seconds in ALLOWED_DELAYS), "no limit"]
    rows: Json = {
        name: _row(system.within_delay, system.within_delay_samples, i) for i, name in enumerate(names)
    }
    clock: Json = {name: float(value) for name, value in zip(names, system.clock_within_delay, strict=True)}
    return {"tolerance": DELAY_TOLERANCE, "rows": rows, "clock": clock}
