"""`ongebd evaluate`."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Literal

from ongebd.cli.tables import print_tables
from ongebd.cli.terminal import Progress
from ongebd.data.labels import read_ids, read_labels
from ongebd.data.predictions import read_predictions
from ongebd.lab.evaluation.evaluation import STEPS, EvaluationConfig
from ongebd.lab.evaluation.evaluation import evaluate as run_evaluation
from ongebd.lab.evaluation.report import REPORT_FILES, check_folder, write_report
from ongebd.lab.evaluation.report_tables import headline, report_tables
from ongebd.output import protect_sources


def evaluate(
    *,
    labels: Path,
    predictions: Path,
    compare: Path | None = None,
    dataset: Literal["auto", "kinetics-gebd", "tapos", "inria", "custom"] = "auto",
    score: Literal["centre", "onset"] = "centre",
    out: Path | None = None,
    missing: Literal["count", "skip"] = "count",
    min_consistency: float | None = None,
    ids: Path | None = None,
    id_pattern: str | None = None,
    unit: Literal["seconds", "frames"] = "seconds",
    resamples: int = 1000,
    seed: int = 0,
) -> int:
    """Score boundaries against labels, with floors, the annotators' ceiling and the delay beside every score.

    Parameters
    ----------
    labels
        A Kinetics-GEBD or TAPOS pickle, the raw Kinetics-GEBD annotation, or CSV or JSON.
    predictions
        A folder or file that `ongebd detect` wrote, or a pickle, JSON or CSV of times by id.
    compare
        Another system's predictions, compared on the same videos (paired bootstrap).
    dataset
        Whose rules apply; auto chooses by the file.
    score
        The scored moment of a boundary: the centre, as in the paper, or the onset.
    out
        Folder for report.md, report.json and a picture of F1 against threshold.
    missing
        For a video without a prediction: count its boundaries as missed, or skip it.
    min_consistency
        Skip videos whose annotators agree less than this. [0.3 for kinetics-gebd, else 0]
    ids
        CSV file whose first column lists the videos to score, such as the official TAPOS set.
    id_pattern
        If ids differ: a regular expression whose one group finds a label's id in a prediction's id.
    unit
        Unit of times in a pickle, JSON or CSV of predictions.
    resamples
        Bootstrap samples for the 95 % intervals; 0 means none.
    seed
        Seed of the bootstrap and the random floor.
    """
    config = EvaluationConfig(
        min_consistency="own" if min_consistency is None else min_consistency,
        missing=missing,
        resamples=resamples,
        seed=seed,
    )
    if out is not None:
        check_folder(out)
        read = [path for path in (labels, predictions, compare, ids) if path is not None and path.is_file()]
        protect_sources([out / name for name in REPORT_FILES], [str(path) for path in read])
    label_set = read_labels(labels, dataset)
    if ids is not None:
        label_set = label_set.restrict(read_ids(ids), str(ids))
    first = read_predictions(predictions, unit=unit).at(score)
    second = None if compare is None else read_predictions(compare, unit=unit).at(score)

    with Progress() as progress:
        total, done = len(STEPS) * (1 if second is None else 2), count(1)
        report = run_evaluation(
            label_set,
            first,
            second,
            config=config,
            id_pattern=id_pattern,
            progress=lambda step: progress.show(step, next(done), total),
        )
        for file in [] if out is None else write_report(report, out):
            progress.say(f"wrote {file}")
    print_tables(report_tables(report), headline(report))
    return 0
