"""Runs experiments: plans, says what it will cost, does what is not kept, and puts tables together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ongebd.errors import OngebdError
from ongebd.lab.evaluation.comparison import Comparison
from ongebd.lab.experiments.columns import SCORES, Counted
from ongebd.lab.experiments.estimate import Estimate
from ongebd.lab.experiments.limits import ceiling, floors
from ongebd.lab.experiments.material import LackingError, Material, Part, VideoSet
from ongebd.lab.experiments.results import RowResult, TableResult
from ongebd.lab.experiments.scales import Scale
from ongebd.lab.experiments.scoring import Scored, Scoring, count, decided, seeds_of
from ongebd.lab.experiments.shelf import Shelf
from ongebd.lab.experiments.speed import measured, speed_rows
from ongebd.lab.experiments.statistics import Cell, Drawn
from ongebd.lab.experiments.table import Experiment, Row
from ongebd.lab.experiments.watched import watched


@dataclass(frozen=True)
class Step:
    """A training, or what stands in its place, that is not kept yet.

    Attributes:
        row: For which row, the first of those that share it.
        seed: With which seed.
        experiment: The first that needs it.
    """

    row: Row
    seed: int
    experiment: Experiment


class Runner:
    """Runs experiments on some material.

    Args:
        material: The data.
        scale: How large.
        shelf: Where work is kept.
        device: auto, cpu, cuda or cuda:N.
        tell: Told what is being done.
        watcher: Follows each training.
    """

    def __init__(
        self,
        material: Material,
        scale: Scale,
        shelf: Shelf,
        device: str = "auto",
        tell: Callable[[str], None] = lambda _: None,
        watcher: Any = None,
    ) -> None:
        self.material, self.scale, self.shelf = material, scale, shelf
        self.scoring = Scoring(scale, shelf, device, watcher)
        self._tell = tell
        self._scored: dict[str, Scored] = {}
        self._failed: dict[str, OngebdError] = {}
        self._shared: dict[Any, Any] = {}

    def plan(self, experiments: Sequence[Experiment]) -> list[Step]:
        """What is to be trained, each once.

        Raises:
            OngebdError: Data cannot be read.
        """
        steps: dict[str, Step] = {}
        for experiment in experiments:
            try:
                trained_on, data = self._sets(experiment)
            except LackingError:
                continue
            for row in experiment.rows:
                if row.kind not in ("trained", "untrained"):
                    continue
                for seed in seeds_of(row, self.scale):
                    key = str(self.scoring.key(row, seed, trained_on, data))
                    if key not in steps and not self.scoring.is_there(row, seed, trained_on, data):
                        steps[key] = Step(row, seed, experiment)
        return list(steps.values())

    def estimate(self, steps: Sequence[Step]) -> Estimate:
        """What these steps will take, by what steps like them took."""
        return Estimate.of(steps, self.scale, self.shelf.every("errors"))

    def train(self, steps: Sequence[Step]) -> Iterator[Step]:
        """Do the steps; each is yielded when it is done or has failed (the table says why)."""
        for step in steps:
            with suppress(OngebdError):  # it is kept, and told when its table is made
                self._score(step.row, step.seed, *self._sets(step.experiment))
            yield step

    def table(self, experiment: Experiment) -> TableResult:
        """A table; what it needs and is not kept is done now."""
        self._tell(experiment.title)
        if experiment.speed:
            return self._speed(experiment)
        try:
            trained_on, data = self._sets(experiment)
        except LackingError as problem:
            return TableResult(experiment, missing=str(problem))
        made = [self._row(experiment, row, trained_on, data) for row in experiment.rows]
        return self._put_together(experiment, trained_on, data, made)

    def errors(self, experiment: Experiment, row: Row) -> Scored:
        """What a row's frames scored, with the first seed; it is trained if it is not kept."""
        return self._score(row, 0, *self._sets(experiment))

    def model(self, experiment: Experiment, row: Row) -> Path | None:
        """Folder of a row's model, of the first seed, where it was kept."""
        folder = self.shelf.place("errors", self.scoring.key(row, 0, *self._sets(experiment))) / "model"
        return folder if folder.exists() else None

    def test(self, experiment: Experiment) -> Part:
        """The videos that a table is scored on."""
        return self._sets(experiment)[1].test

    def _sets(self, experiment: Experiment) -> tuple[VideoSet, VideoSet]:
        return self.material.get(experiment.trained_on), self.material.get(experiment.data)

    def _score(self, row: Row, seed: int, trained_on: VideoSet, data: VideoSet) -> Scored:
        key = str(self.scoring.key(row, seed, trained_on, data))
        if key in self._failed:
            raise self._failed[key]
        if key not in self._scored:
            try:
                self._scored[key] = self.scoring.scored(row, seed, trained_on, data)
            except OngebdError as problem:
                self._failed[key] = problem
                raise
        return self._scored[key]

    def _row(self, experiment: Experiment, row: Row, trained_on: VideoSet, data: VideoSet) -> _Made:
        printed = {c: v for c in experiment.columns if (v := experiment.printed_value(row, c)) is not None}
        made = _Made(RowResult(row, printed=printed), [], None, None)
        if row.kind == "printed":
            return made
        try:
            if row.kind == "watched":
                counts, comparison = count(data.test.labels, watched(row, data.test, self.shelf))
                return replace(made, counts=[counts], comparison=comparison)
            thresholds, counts_of, memory = [], [], None
            for seed in seeds_of(row, self.scale):
                scored = self._score(row, seed, trained_on, data)
                predictions, threshold = decided(row, scored, trained_on.training.labels, self._shared)
                labels = data.test.labels.restrict(
                    [video.id for video in scored.test[0]], "the videos at hand"
                )
                counts, comparison = count(labels, predictions)
                counts_of.append(counts)
                thresholds.append(threshold)
                memory = scored.facts.get("memory") or memory
            result = replace(made.result, thresholds=tuple(thresholds))
            return _Made(result, counts_of, comparison, memory)
        except LackingError as problem:
            return replace(made, result=replace(made.result, missing=str(problem)))
        except OngebdError as problem:
            return replace(made, result=replace(made.result, failure=str(problem)))

    def _put_together(
        self, experiment: Experiment, trained_on: VideoSet, data: VideoSet, made: list[_Made]
    ) -> TableResult:
        ran = {each.result.row.name: each for each in made if each.counts}
        scores = [column for column in experiment.columns if column in SCORES]
        drawn = Drawn({name: each.counts for name, each in ran.items()})
        rows = []
        for each in made:
            name = each.result.row.name
            cells = {column: drawn.cell(name, column) for column in SCORES} if name in ran else {}
            if each.memory is not None and "vram-gb" in experiment.columns:
                cells["vram-gb"] = Cell(each.memory / 1e9)
            rows.append(replace(each.result, cells=cells))
        found = {column: drawn.best(list(ran), column) for column in scores}
        best = {column: name for column, name in found.items() if name is not None}
        comparison = next((each.comparison for each in ran.values() if each.comparison), None)
        limits = []
        if comparison is not None:
            limits = floors(comparison, scores)
            human = ceiling(comparison)
            limits += [human] if human else []
        name = data.name if data is trained_on else f"{data.name}; trained on {trained_on.name}"
        return TableResult(
            experiment,
            name,
            tuple(rows),
            tuple(limits),
            best,
            videos=len(comparison) if comparison else 0,
            boundaries=sum(len(rows[0]) for rows in comparison.annotators) if comparison else 0,
            seeds=self.scale.seeds,
        )

    def _speed(self, experiment: Experiment) -> TableResult:
        on = "cuda" if self.scoring.device.startswith("cuda") else "cpu"
        repeats, seconds = (1, 0.1) if self.scale.name == "tiny" else (3, 0.5)
        try:
            bench = measured(on, self.shelf, repeats, seconds)
        except OngebdError as problem:
            return TableResult(experiment, missing=str(problem))
        machine = bench["machine"]
        where = f"{machine.get('card', machine['processor'])}, {machine['date']}"
        load = machine.get("load before")
        note = f"Random weights, on which speed does not depend; load of the machine before: {load}."
        return TableResult(experiment, where, tuple(speed_rows(experiment, bench)), notes=(note,))


@dataclass(frozen=True, eq=False)
class _Made:
    """A row before its table is put together: what was counted by seed, and on what."""

    result: RowResult
    counts: list[Counted]
    comparison: Comparison | None
    memory: int | None
