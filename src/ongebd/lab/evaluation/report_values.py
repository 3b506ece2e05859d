"""An evaluation as plain values: the content of `report.json`, of which the tables and pictures are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ongebd import __version__
from ongebd.data.numbers import FloatArray
from ongebd.lab.evaluation.bootstrap import Interval
from ongebd.lab.evaluation.counts import Scores
from ongebd.lab.evaluation.delay import ALLOWED_DELAYS, DELAY_TOLERANCE, false_alarms_per_hour
from ongebd.lab.evaluation.evaluation import Evaluation, SystemResult
from ongebd.lab.evaluation.figures import ABSOLUTE, ABSOLUTE_PART, RELATIVE_PART, figure_values
from ongebd.lab.evaluation.relative_distance import THRESHOLDS

Values = dict[str, Any]

LISTED_IDS = 20
"""Ids that are listed at most."""


def report_values(evaluation: Evaluation) -> Values:
    """All figures of an evaluation; what is unknown is None, with the reason in `why_none`.

    The first system's figures are at the top level: `relative["0.05"]["f1"]` and `absolute["0.25"]["f1"]` are
    scores, `…["f1_interval"]` their 95 % intervals. With a second system, `other` holds the same for it, and
    `difference` the first minus the second.
    """
    labels, config = evaluation.labels, evaluation.config
    values: Values = {
        "ongebd": __version__,
        "labels": {
            "file": labels.source,
            "sha256": labels.sha256,
            "dataset": labels.dataset,
            "videos": len(labels),
            "boundaries_of_first_annotators": labels.boundary_count,
            "videos_by_annotators": {str(count): n for count, n in labels.annotator_counts.items()},
            "notes": list(labels.notes),
        },
        "settings": {
            "min_consistency": evaluation.min_consistency,
            "missing": config.missing,
            "resamples": config.resamples,
            "seed": config.seed,
        },
        **_system(evaluation.systems[0]),
    }
    if evaluation.differences:
        values["other"] = _system(evaluation.systems[1])
        values["difference"] = {figure: asdict(each) for figure, each in evaluation.differences.items()}
    return values


def systems_in(report: Values) -> list[Values]:
    """The values of one system or two."""
    return [report, report["other"]] if "other" in report else [report]


def figure_row(system: Values, figure: str) -> Values:
    """The row of one of `FIGURES`."""
    kind, _, place = figure.partition(" ")
    row: Values = system["absolute" if kind == "absolute" else "relative"][place or "average"]
    return row


def _system(system: SystemResult) -> Values:
    moment = "onset was known" if system.predictions.moment == "onset" else "boundary was decided"
    unmeasured = f"the predictions do not say when each {moment}"
    comparison = system.comparison
    return {
        "scored": system.predictions.moment,
        "n": len(comparison),
        "predictions": _predictions(system),
        "videos": {
            "labelled": comparison.labelled,
            "filtered": comparison.filtered,
            "skipped": comparison.skipped,
            "scored": len(comparison),
            "found": int(comparison.found.sum()),
            "missing": comparison.missing,
            "empty": comparison.empty,
            "out_of_range_detections": comparison.out_of_range,
            "hours_watched": system.hours,
        },
        "relative": _relative(system),
        "relative_in_frames": system.in_frames
        and {"f1": _by(THRESHOLDS, system.in_frames.f1), "average": system.in_frames.average},
        "absolute": _absolute(system),
        "floors": {
            floor.name: {
                "figures": {name: {"f1": f.f1, "detail": f.detail} for name, f in floor.figures.items()},
                "curve": _curve(floor.curve),
            }
            for floor in system.floors
        },
        "human": {
            human.name: {
                "n": human.n,
                "figures": {name: float(value) for name, value in figure_values(human.f1).items()},
                "curve": _curve(human.f1),
            }
            for human in system.humans
        },
        "skill": {figure: asdict(skill) for figure, skill in system.skill.items()},
        "delay": _delay(system, unmeasured),
        "f1_within_delay": _within_delay(system, unmeasured),
    }


def _predictions(system: SystemResult) -> Values:
    predictions, match = system.predictions, system.match
    renamed = [(name, label) for name, label in match.label_of.items() if name != label]
    return {
        "file": predictions.source,
        "kind": predictions.kind,
        "sha256": predictions.sha256,
        "unit": predictions.unit,
        "made_by": dict(predictions.made_by),
        "notes": list(predictions.notes),
        "matched_exactly": match.exact,
        "matched_by_pattern": match.by_pattern,
        "matched_inside": match.inside,
        "not_exact": dict(renamed[:LISTED_IDS]),
        "unknown": len(match.unknown),
        "unknown_ids": list(match.unknown[:LISTED_IDS]),
    }


def _relative(system: SystemResult) -> Values:
    average = figure_values(system.scores.f1)["average"]
    drawn = figure_values(system.samples.f1)["average"]
    return _rows(THRESHOLDS, system.scores, system.samples) | {
        "average": {"f1": float(average), "f1_interval": Interval.of(drawn)}
    }


def _absolute(system: SystemResult) -> Values:
    rows = _rows(ABSOLUTE, system.scores, system.samples, ABSOLUTE_PART.start)
    alarms = false_alarms_per_hour(system.scores, system.hours)[ABSOLUTE_PART]
    drawn = false_alarms_per_hour(system.samples, system.hour_samples[:, None])[:, ABSOLUTE_PART]
    for row, value, samples in zip(rows.values(), alarms, drawn.T, strict=True):
        row["false_alarms_per_hour"] = float(value) if value == value else None  # NaN is not JSON
        row["false_alarms_per_hour_interval"] = Interval.of(samples)
    return rows


def _delay(system: SystemResult, unmeasured: str) -> Values:
    delays = system.delays
    if delays is None or not len(delays):
        why = unmeasured if delays is None else "no detection matches a boundary"
        return {"n": 0, "median": None, "p95": None, "why_none": why}
    median, p95 = np.percentile(delays, [50, 95]).tolist()
    return {"n": len(delays), "tolerance": DELAY_TOLERANCE, "median": median, "p95": p95, "why_none": None}


def _within_delay(system: SystemResult, unmeasured: str) -> Values:
    if system.within_delay is None:
        return {"why_none": unmeasured}
    limits = [*ALLOWED_DELAYS, "no limit"]
    rows = _rows(limits, system.within_delay, system.within_delay_samples)
    return {"tolerance": DELAY_TOLERANCE, "rows": rows, "clock": _by(limits, system.clock_within_delay)}


def _rows(names: Sequence[object], scores: Scores, samples: Scores | None, first: int = 0) -> Values:
    """For each tolerance, from the column `first` on: scores, the interval of each, and counts."""
    rows: Values = {}
    for column, name in enumerate(names, start=first):
        row = rows[str(name)] = {
            each: float(getattr(scores, each)[column]) for each in ("f1", "precision", "recall")
        }
        for each in ("f1", "precision", "recall"):
            row[f"{each}_interval"] = samples and Interval.of(getattr(samples, each)[:, column])
        row |= {each: int(getattr(scores, each)[column]) for each in ("tp", "positives", "detections")}
    return rows


def _curve(f1: FloatArray) -> Values:
    return {"relative": _by(THRESHOLDS, f1[RELATIVE_PART]), "absolute": _by(ABSOLUTE, f1[ABSOLUTE_PART])}


def _by(names: Sequence[object], values: FloatArray) -> dict[str, float]:
    return {str(name): float(value) for name, value in zip(names, values, strict=True)}
