"""`ongebd evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from ongebd.cli.tables import print_tables
from ongebd.common.text import printable
from ongebd.data.labels import read_ids, read_labels
from ongebd.data.predictions import read_predictions
from ongebd.lab.evaluation.evaluation import evaluate as run_evaluation
from ongebd.lab.evaluation.evaluation import step_count
from ongebd.lab.evaluation.report import REPORT_FILES, check_folder, write_report
from ongebd.lab.evaluation.report_tables import headline, report_tables
from ongebd.lab.evaluation.report_values import report_values
from ongebd.lab.evaluation.system import EvaluationConfig
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
    generation: Literal["2021", "2022"] = "2022",
    resamples: int = 1000,
    seed: int = 0,
) -> int:
    """Score boundaries against labels, with floors, the annotators' ceiling and the delay beside every score.

    Parameters
    ----------
    labels
        Labels: a Kinetics-GEBD or TAPOS pickle, the raw Kinetics-GEBD annotation, or CSV or JSON.
    predictions
        Predictions: a folder or file that `ongebd detect` wrote, or a pickle, JSON or CSV of times by id.
    compare
        Another system's predictions, to be compared on the same videos (paired bootstrap).
    dataset
        Which set's rules hold; auto goes by the file.
    score
        Which moment of a boundary is scored: the centre, as in the paper, or the onset.
    out
        Folder for report.md, report.json and the pictures.
    missing
        What a video without a prediction does: count its boundaries as missed, or skip it.
    min_consistency
        Leave out videos whose annotators agree less. Default: 0.3 for kinetics-gebd, else 0, which keeps all.
    ids
        CSV file whose first column lists the videos to be scored, such as the official TAPOS set.
    id_pattern
        Regular expression with one group that takes a label's id out of a prediction's, where they differ.
    unit
        What times in a pickle, JSON or CSV of predictions are in.
    generation
        How the raw Kinetics-GEBD annotation is converted: exact midpoints (2022) or whole frames (2021).
    resamples
        Bootstrap samples for the 95 % intervals; 0 for none.
    seed
        Of the bootstrap and the random floor.
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
    label_set = read_labels(labels, dataset, generation=generation)
    if ids is not None:
        label_set = label_set.restrict(read_ids(ids), str(ids))
    first = read_predictions(predictions, unit=unit).at(score)
    second = None if compare is None else read_predictions(compare, unit=unit).at(score)

    errors = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("evaluating", total=step_count(label_set, 1 if second is None else 2))
        evaluation = run_evaluation(
            label_set,
            first,
            second,
            config=config,
            id_pattern=id_pattern,
            progress=lambda step: bar.update(task, advance=1, description=step),
        )
    for file in [] if out is None else write_report(evaluation, out):
        errors.print(Text(f"wrote {printable(str(file))}", "dim"), soft_wrap=True)
    report = report_values(evaluation)
    print_tables(report_tables(report), headline(report))
    return 0
