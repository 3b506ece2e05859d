"""The figures of a report: F1 against tolerance and delay, errors, and one video."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from ongebd.detector.stored import detect_stored, load_for
from ongebd.errors import os_errors
from ongebd.features.store import FeatureStore
from ongebd.lab.evaluation.figure_style import save
from ongebd.lab.experiments.figures.f1_curves import f1_curves
from ongebd.lab.experiments.figures.qualitative import Scene, qualitative
from ongebd.lab.experiments.figures.tracing import traced
from ongebd.lab.experiments.runner import Runner, TableResult
from ongebd.lab.training.error_histograms import error_histograms

_SCENES = 4  # as in the paper's appendix


def draw(runner: Runner, tables: Sequence[TableResult], out: Path) -> dict[str, str]:
    """Draw the online comparisons that were run, into OUT/figures as PDF and SVG.

    Returns:
        Captions by SVG file, as seen from OUT.

    Raises:
        OngebdError: They can't be written.
    """
    captions: dict[str, str] = {}
    for table in tables:
        name, data = table.experiment.name, table.data
        if not name.startswith("online") or not any(row.cells for row in table.rows):
            continue
        drawn = {
            "f1": (f1_curves(table), f"Online methods on {data}: F1 with 95 % intervals."),
            "errors": (
                errors(runner, table),
                f"Errors at boundaries and elsewhere on {data}: test videos, first seed.",
            ),
            "videos": (
                videos(runner, table),
                f"Test videos of {data} with most boundaries. Thresholds are the trained models' own.",
            ),
        }
        with os_errors(out, "choose another --out"):
            (out / "figures").mkdir(parents=True, exist_ok=True)
        for kind, (figure, caption) in drawn.items():
            if figure is not None:
                stem = f"figures/{name}-{kind}"
                save(figure, out / f"{stem}.pdf")
                save(figure, out / f"{stem}.svg")
                captions[f"{stem}.svg"] = caption
    return captions


def errors(runner: Runner, table: TableResult) -> Figure | None:
    """Errors at boundaries and elsewhere of each row that the discriminator decides."""
    models = {}
    for row in table.rows:
        if row.cells and row.row.obd and row.row.kind != "given":  # τ changes no error
            videos, values = runner.frame_scores(table.experiment, row.row).test
            targets = np.concatenate([video.targets for video in videos])
            models[row.row.name.partition(",")[0]] = np.concatenate(values), targets
    return error_histograms(models) if models else None


def videos(runner: Runner, table: TableResult) -> Figure | None:
    """The test videos with most boundaries, by ESTimator and TeSTra-BC as in the paper."""
    part = runner.test_part(table.experiment)
    files = {name: part.files[name] for name in part.labels.videos if name in part.files}
    models, features = {}, {}
    for name in ("ESTimator", "TeSTra-BC"):
        rows = [row.row for row in table.rows if row.row.name == name and row.cells]
        folder = runner.model(table.experiment, rows[0]) if rows else None
        if folder is not None:
            models[name] = load_for(FeatureStore.open(part.store), str(folder))
            features = {each.id: each for each in runner.frame_scores(table.experiment, rows[0]).test[0]}
    there = [name for name in files if name in features]
    if not models or not there:
        return None
    scenes = []
    for name in sorted(there, key=lambda name: -len(part.labels.videos[name].boundaries[0]))[:_SCENES]:
        labels = part.labels.videos[name]
        traces = [
            traced(*detect_stored(features[name], model, model.configured()), labels.duration, model, method)
            for method, model in models.items()
        ]
        scenes.append(Scene(files[name], labels, traces))
    return qualitative(scenes)
