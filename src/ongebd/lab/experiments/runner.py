"""Runs experiments: plans what to train, estimates how long it takes, does it, and puts tables together."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from ongebd.common.processes import side_by_side
from ongebd.data.files import videos as count_of
from ongebd.data.labelled import LabelledVideo
from ongebd.errors import MissingDataError, OngebdError
from ongebd.lab.evaluation.comparison import Comparison
from ongebd.lab.evaluation.counts import Counts
from ongebd.lab.experiments.cache import Cache
from ongebd.lab.experiments.datasets import DataSet, DataSource, Part
from ongebd.lab.experiments.definition import Experiment, Row
from ongebd.lab.experiments.scales import Scale
from ongebd.lab.experiments.scores import SCORES, Limit, Measured, Resampled, compared, count, limits
from ongebd.lab.experiments.scoring import (
    FrameScores,
    Scoring,
    Shared,
    decide,
    failure_of,
    given,
    watch,
)
from ongebd.lab.experiments.speed import bench, speed_values
from ongebd.lab.training.loop import MODEL


@dataclass(frozen=True)
class Step:
    """A training, or an untrained row, whose scores are not in the cache: the first row that needs it."""

    row: Row
    seed: int
    experiment: Experiment


@dataclass(frozen=True)
class RowResult:
    """A row of a table: measured and printed values by column, and the threshold of each seed.

    `failure` says why there are no values; `missing`, what is not there, which is why the row was left out.
    """

    row: Row
    cells: Mapping[str, Measured] = field(default_factory=dict)
    printed: Mapping[str, float] = field(default_factory=dict)
    thresholds: tuple[float, ...] = ()
    failure: str | None = None
    missing: str | None = None


@dataclass(frozen=True)
class TableResult:
    """A table.

    Attributes:
        data: What the rows were scored on, in words.
        limits: Floors, then the annotators.
        best: By column, the row that is ahead of all others beyond the noise.
        boundaries: Of the first annotator, in all videos.
        unlike: What makes the rows unlike the printed ones, in a few words each; nothing: they compare.
        missing: Why the table was not run.
        about: Features, rate and labels, in words.
    """

    experiment: Experiment
    data: str = ""
    rows: tuple[RowResult, ...] = ()
    limits: tuple[Limit, ...] = ()
    best: Mapping[str, str] = field(default_factory=dict)
    videos: int = 0
    boundaries: int = 0
    seeds: int = 0
    unlike: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    missing: str | None = None
    about: str = ""

    @property
    def failures(self) -> list[str]:
        """What went wrong, row by row."""
        return [f"{self.experiment.name}, {row.row.name}: {row.failure}" for row in self.rows if row.failure]


class Runner:
    """Runs experiments on the data sets of a source; `tell` prints what is being done."""

    def __init__(
        self,
        source: DataSource,
        scale: Scale,
        work: Cache,
        device: str = "auto",
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._scale, self._cache, self._tell = scale, work, tell
        self._get = cache(source.get)
        self._scoring = Scoring(scale, work, device)
        self.device = self._scoring.device
        self._frame_scores: dict[str, FrameScores | OngebdError] = {}
        self._shared: Shared = {}

    def plan(self, experiments: Sequence[Experiment]) -> list[Step]:
        """The trainings to do, each once.

        Raises:
            OngebdError: Data can't be read.
        """
        steps: dict[str, Step] = {}
        for experiment in experiments:
            with suppress(MissingDataError):
                sets = self._sets(experiment)
                for row in experiment.rows:
                    for seed in self._seeds(row) if row.kind in ("trained", "untrained") else ():
                        key = self._scoring.key(row, seed, *sets)
                        if not self._cache.has("errors", key):
                            steps.setdefault(str(key), Step(row, seed, experiment))
        return list(steps.values())

    def train(self, steps: Sequence[Step]) -> Generator[Step, None, None]:
        """Do steps, side by side on a CPU; each that is done, in order. If one fails, its table says why."""
        tasks = [(step.row, step.seed, *self._sets(step.experiment)) for step in steps]
        job = partial(failure_of, self._scale, self._cache.folder, self.device)
        workers = (os.cpu_count() or 1) if self.device == "cpu" else 1
        with closing(side_by_side(job, tasks, workers)) as failures:
            for step, task, failure in zip(steps, tasks, failures, strict=True):
                if failure:
                    (self._frame_scores[str(self._scoring.key(*task))],) = failure
                yield step

    def table(self, experiment: Experiment) -> TableResult:
        """A table; what it needs and the cache lacks is done now."""
        self._tell(experiment.title)
        if experiment.speed:
            return self._speed(experiment)
        try:
            sets = self._sets(experiment)
        except MissingDataError as problem:
            return TableResult(experiment, rows=_printed(experiment), missing=str(problem))
        return self._scored(experiment, *sets)

    def deviations(self, experiments: Sequence[Experiment]) -> dict[str, str]:
        """What in their trainings isn't the paper's or a baseline's authors', by method."""
        rows = (row for experiment in experiments for row in experiment.rows if row.kind == "trained")
        methods = dict.fromkeys(row.method for row in rows)
        return {method: text for method in methods if (text := self._scoring.deviations(method))}

    def frame_scores(self, experiment: Experiment, row: Row) -> FrameScores:
        """The scores of a row's frames, with the first seed."""
        return self._scores_of(row, 0, *self._sets(experiment))

    def model(self, experiment: Experiment, row: Row) -> Path | None:
        """Folder of a row's model with the first seed, if it was kept."""
        key = self._scoring.key(row, 0, *self._sets(experiment))
        folder = self._cache.path("errors", key) / MODEL
        return folder if folder.exists() else None

    def test_part(self, experiment: Experiment) -> Part:
        """The videos that a table is scored on."""
        return self._sets(experiment)[1].test

    def _sets(self, experiment: Experiment) -> tuple[DataSet, DataSet]:
        return self._get(experiment.trained_on), self._get(experiment.data)

    def _seeds(self, row: Row) -> Sequence[int]:
        return range(self._scale.seeds) if row.kind == "trained" else (0,)

    def _scores_of(self, row: Row, seed: int, trained_on: DataSet, data: DataSet) -> FrameScores:
        key = str(self._scoring.key(row, seed, trained_on, data))
        if key not in self._frame_scores:
            try:
                self._frame_scores[key] = self._scoring.frame_scores(row, seed, trained_on, data)
            except OngebdError as problem:
                self._frame_scores[key] = problem
        found = self._frame_scores[key]
        if isinstance(found, OngebdError):
            raise found
        return found

    def _scored(self, experiment: Experiment, trained_on: DataSet, data: DataSet) -> TableResult:
        results: list[RowResult] = []
        counts: dict[str, list[Counts]] = {}
        comparison: Comparison | None = None
        notes: list[str] = []
        absent: dict[int, list[str]] = {}
        lacking = 0
        for row in experiment.rows:
            result = RowResult(row, printed=experiment.printed_values(row))
            if row.kind != "printed":
                try:
                    result, compared_seeds, said = self._row(result, trained_on, data)
                    notes += said
                    counts[row.name] = [count(each) for each in compared_seeds]
                    comparison = comparison or compared_seeds[-1]
                    if row.kind == "trained":
                        lacking = self._scores_of(row, 0, trained_on, data).lacking
                    if missing := compared_seeds[-1].missing:
                        absent.setdefault(missing, []).append(row.name)
                except MissingDataError as problem:
                    result = replace(result, missing=str(problem))
                except OngebdError as problem:
                    result = replace(result, failure=str(problem))
            results.append(result)
        videos = len(comparison) if comparison else 0
        notes += [
            f"{count_of(missing)} of {videos} missing from {names}: all boundaries in them count"
            " as missed, as in the official script"
            for missing, rows in absent.items()
            for names in [", ".join(rows) if len(rows) < max(2, len(counts)) else "all rows"]
        ]
        unlike = [*data.unlike, *(f"{count_of(missing)} missing" for missing in absent)]
        if lacking:
            unlike.append(f"{count_of(lacking)} of the training set missing")
        if any(self._scoring.deviations(row.method) for row in experiment.rows if row.kind == "trained"):
            unlike.append(f"trained at scale {self._scale.name}")
        best: dict[str, str] = {}
        columns = [column for column in experiment.columns if column in SCORES]
        if counts:
            resampled = Resampled(counts)
            for place, result in enumerate(results):
                if (name := result.row.name) in counts:
                    cells = {column: resampled.measured(name, column) for column in SCORES}
                    others = {c: result.cells[c] for c in experiment.columns if c in result.cells}
                    results[place] = replace(result, cells=cells | others)
            found = {column: resampled.best(column) for column in columns}
            best = {column: name for column, name in found.items() if name is not None}
        return TableResult(
            experiment,
            data.name if data is trained_on else f"{data.name}; trained on {trained_on.name}",
            tuple(results),
            tuple(limits(comparison, columns)) if comparison else (),
            best,
            videos=videos,
            boundaries=sum(len(rows[0]) for rows in comparison.annotators) if comparison else 0,
            seeds=self._scale.seeds,
            unlike=tuple(unlike),
            notes=tuple(dict.fromkeys(notes)),
            about=data.test.about + "; no test video is missing" * (not absent),
        )

    def _row(
        self, result: RowResult, trained_on: DataSet, data: DataSet
    ) -> tuple[RowResult, list[Comparison], Sequence[str]]:
        """Thresholds and memory of a row, its boundaries beside the labels, seed by seed, and notes."""
        row, labels = result.row, data.test.labels
        if row.kind == "given":
            found = given(row, labels)
            return result, [compared(labels, found)], found.notes
        if row.kind == "watched":
            found = watch(row, data.test, self._cache)
            return result, [compared(labels, found)], found.notes
        thresholds, comparisons, cells = [], [], {}
        for seed in self._seeds(row):
            scores = self._scores_of(row, seed, trained_on, data)
            predictions, threshold = decide(row, scores, trained_on.training.labels, self._shared)
            comparisons.append(compared(labels, predictions))
            thresholds.append(threshold)
            if scores.memory:
                cells["vram-gb"] = Measured(scores.memory / 1e9)
        notes = [slow] if (slow := slower(scores.test[0], scores.fps)) else []
        return replace(result, thresholds=tuple(thresholds), cells=cells), comparisons, notes

    def _speed(self, experiment: Experiment) -> TableResult:
        repeats, seconds = (1, 0.1) if self._scale.name == "tiny" else (3, 0.5)
        try:
            found = bench(self.device.partition(":")[0], self._cache, repeats, seconds)
        except OngebdError as problem:
            return TableResult(experiment, rows=_printed(experiment), missing=str(problem))
        try:
            scored = self._scored(experiment, *self._sets(experiment))
        except MissingDataError as problem:
            scored = TableResult(experiment, rows=_printed(experiment), notes=(f"no F1: {problem}",))
        rows = []
        for result in scored.rows:
            values = speed_values(found, result.row.method)
            cells = {column: Measured(values[column]) for column in experiment.columns if column in values}
            rows.append(replace(result, cells={**result.cells, **cells}))
        machine: dict[str, Any] = found["machine"]
        where = f"{machine.get('card', machine['processor'])}, {machine['date']}"
        load = machine.get("load before")
        note = (
            f"speed and cost measured on {where}, with ResNet-50 and the published networks, with random"
            f" weights, which don't affect them; load of the machine before: {load}"
        )
        return replace(scored, rows=tuple(rows), notes=(*scored.notes, note))


def _printed(experiment: Experiment) -> tuple[RowResult, ...]:
    return tuple(RowResult(row, printed=experiment.printed_values(row)) for row in experiment.rows)


def slower(videos: Sequence[LabelledVideo], fps: float) -> str:
    """How many videos have fewer frames a second than a store's rate, in words; empty if none has."""
    rates = [(len(video) - 1) / span for video in videos if len(video) and (span := np.ptp(video.times)) > 0]
    slow = [rate for rate in rates if rate < 0.9 * fps]
    return f"{count_of(len(slow))} with fewer frames a second, down to {min(slow):.3g}" if slow else ""
