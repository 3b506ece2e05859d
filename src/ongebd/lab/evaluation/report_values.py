"""The parts of an evaluation as plain values, of which `report.json`, the tables and the picture are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ongebd.data.files import FloatArray
from ongebd.data.id_matching import IdMatch
from ongebd.data.label_set import LabelSet
from ongebd.data.prediction_set import PredictionSet
from ongebd.lab.evaluation.comparison import (
    ALLOWED_DELAYS,
    DELAY_TOLERANCE,
    Comparison,
    false_alarms_per_hour,
)
from ongebd.lab.evaluation.counts import Counts, Interval, Scores
from ongebd.lab.evaluation.matching import greedy_match
from ongebd.lab.evaluation.relative_distance import (
    ABSOLUTE,
    ABSOLUTE_PART,
    RELATIVE_PART,
    THRESHOLDS,
    figure_values,
)

Values = dict[str, Any]

LISTED_IDS = 20
"""Ids that are listed at most."""


def systems_in(report: Values) -> list[Values]:
    """The values of one system or two."""
    return [report, report["other"]] if "other" in report else [report]


def figure_row(system: Values, figure: str) -> Values:
    """The row of one of `FIGURES`."""
    kind, _, place = figure.partition(" ")
    row: Values = system["absolute" if kind == "absolute" else "relative"][place or "average"]
    return row


def labels_values(labels: LabelSet) -> Values:
    """The labels that were used."""
    return {
        "file": labels.source,
        "sha256": labels.sha256,
        "dataset": labels.dataset,
        "videos": len(labels),
        "boundaries_of_first_annotators": labels.boundary_count,
        "videos_by_annotators": {str(count): n for count, n in labels.annotator_counts.items()},
        "notes": list(labels.notes),
    }


def videos_values(comparison: Comparison) -> Values:
    """How many videos were scored, and how many left out."""
    return {
        "labelled": comparison.labelled,
        "filtered": comparison.filtered,
        "skipped": comparison.skipped,
        "scored": len(comparison),
        "found": int(comparison.found.sum()),
        "missing": comparison.missing,
        "empty": comparison.empty,
        "out_of_range_detections": comparison.out_of_range,
    }


def predictions_values(predictions: PredictionSet, match: IdMatch) -> Values:
    """Where the predictions come from, and how their ids were matched."""
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


def relative_values(scores: Scores, drawn: Scores) -> Values:
    """The official score at each threshold, and its average."""
    average, averages = (figure_values(each.f1)["average"] for each in (scores, drawn))
    return _rows(THRESHOLDS, scores, drawn) | {
        "average": {"f1": float(average), "f1_interval": Interval.of(averages)}
    }


def absolute_values(scores: Scores, drawn: Scores, hours: float, drawn_hours: FloatArray) -> Values:
    """Scores and false alarms per hour at each absolute tolerance."""
    rows = _rows(ABSOLUTE, scores, drawn, ABSOLUTE_PART.start)
    alarms = false_alarms_per_hour(scores, hours)[ABSOLUTE_PART]
    drawn_alarms = false_alarms_per_hour(drawn, drawn_hours[:, None])[:, ABSOLUTE_PART]
    for row, value, samples in zip(rows.values(), alarms, drawn_alarms.T, strict=True):
        row["false_alarms_per_hour"] = float(value) if value == value else None  # NaN is not JSON
        row["false_alarms_per_hour_interval"] = Interval.of(samples)
    return rows


def kind_values(comparison: Comparison, counts: Counts) -> Values:
    """By kind of boundary, where labels have kinds: how many there are at each absolute tolerance, and found.

    They are those of the annotators that the official rule chooses.
    """
    rows: Values = {}
    chosen = counts.annotator[:, ABSOLUTE_PART]
    for video, kinds in enumerate(comparison.kinds):
        for tolerance, annotator in zip(ABSOLUTE, chosen[video], strict=True) if kinds else ():
            times, detections = comparison.annotators[video][annotator], comparison.detections[video]
            hits = {place for place, _ in greedy_match(times, detections, tolerance)}
            for place, kind in enumerate(kinds[annotator]):
                row = rows.setdefault(kind, {}).setdefault(str(tolerance), {"positives": 0, "tp": 0})
                row["positives"] += 1
                row["tp"] += place in hits
    return dict(sorted(rows.items()))


def delay_values(delays: FloatArray | None) -> Values:
    """The delays of the matches."""
    if delays is None or not len(delays):
        return {"n": 0, "median": None, "p95": None, "why_none": "no detection matches a boundary"}
    median, p95 = np.percentile(delays, [50, 95]).tolist()
    return {"n": len(delays), "tolerance": DELAY_TOLERANCE, "median": median, "p95": p95, "why_none": None}


def within_delay_values(counts: Counts, drawn: Scores, clock: Counts | None) -> Values:
    """Scores at each allowed delay and without a limit, and a clock's F1."""
    limits = [*ALLOWED_DELAYS, "no limit"]
    return {
        "tolerance": DELAY_TOLERANCE,
        "rows": _rows(limits, counts.totals(), drawn),
        "clock": by_name(limits, clock.totals().f1) if clock else None,
    }


def _rows(names: Sequence[object], scores: Scores, drawn: Scores, first: int = 0) -> Values:
    """For each tolerance, from the column `first` on: scores, the interval of each, and counts."""
    rows: Values = {}
    for column, name in enumerate(names, start=first):
        row = rows[str(name)] = {
            each: float(getattr(scores, each)[column]) for each in ("f1", "precision", "recall")
        }
        for each in ("f1", "precision", "recall"):
            row[f"{each}_interval"] = Interval.of(getattr(drawn, each)[:, column])
        row |= {each: int(getattr(scores, each)[column]) for each in ("tp", "positives", "detections")}
    return rows


def curve_values(f1: FloatArray) -> Values:
    """F1 at all tolerances, (14,), by tolerance."""
    return {
        "relative": by_name(THRESHOLDS, f1[RELATIVE_PART]),
        "absolute": by_name(ABSOLUTE, f1[ABSOLUTE_PART]),
    }


def by_name(names: Sequence[object], values: FloatArray) -> dict[str, float]:
    """Values by the names of their tolerances or limits."""
    return {str(name): float(value) for name, value in zip(names, values, strict=True)}
