"""One call of `ongebd experiment`: from its settings to the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from ongebd.data.files import videos as count_of
from ongebd.data.labels import read_ids
from ongebd.data.predictions import read_predictions
from ongebd.errors import ConfigError, LabelError, MissingDataError, meant
from ongebd.lab.experiments.cache import Cache
from ongebd.lab.experiments.catalogue import COMPARISONS, EXPERIMENTS
from ongebd.lab.experiments.composed_datasets import ComposedDataSets
from ongebd.lab.experiments.datasets import DataFolder, DataSet, DataSource
from ongebd.lab.experiments.definition import Experiment, Row, SetName
from ongebd.lab.experiments.pictures import draw
from ongebd.lab.experiments.report import Report
from ongebd.lab.experiments.runner import Runner
from ongebd.lab.experiments.scales import Scale


def run_experiments(
    names: Sequence[str],
    *,
    data: Path | None,
    clips: Sequence[Path],
    ids: Path | None = None,
    given: Mapping[str, Path] | None = None,
    out: Path,
    work: Path,
    scale: Scale,
    backbone: str,
    device: str,
    command: str,
    tell: Callable[[str], None],
    show: Callable[[str, int, int], object],
) -> int:
    """Run the named experiments, or all, on the data sets in `data` or on composites of `clips`.

    Of the test videos in `data`, only those are scored that the file `ids` lists, if there is one. `given`
    has files of predictions by the name of a row to add.

    `tell` prints a line; `show` says what was trained last, how many trainings are done, and of how many.

    Returns:
        0, or 2 if something failed; the report in `out` says what.

    Raises:
        OngebdError: A name, a folder or the device is wrong, or data can't be read.
    """
    experiments = [with_given(experiment, given or {}) for experiment in chosen(names)]
    for path in (given or {}).values():
        read_predictions(path)  # a broken file is told before hours of training
    cache = Cache(work, tell)
    source: DataSource = (
        ComposedDataSets(clips, scale, cache, backbone, tell) if data is None else DataFolder(data)
    )
    if ids is not None:
        source = Chosen(source, ids)
    runner = Runner(source, scale, cache, device, tell)
    if removed := cache.clear():
        tell(f"removed {removed} unfinished piece{'s' * (removed != 1)} of work from a killed run")
    if steps := runner.plan(experiments):
        tell(f"{len(steps)} trainings to do")
        with closing(runner.train(steps)) as trained:
            for done, step in enumerate(trained, 1):
                show(f"{step.experiment.name}: {step.row.name}, seed {step.seed}", done, len(steps))
    tables = [runner.table(experiment) for experiment in experiments]
    figures = draw(runner, tables, out)
    deviations = runner.deviations(experiments)
    report = Report(tables, scale, source.about, runner.device, command, figures, deviations)
    failures = [line for table in tables for line in table.failures]
    for line in (*(f"wrote {path}" for path in report.write(out)[:2]), *failures):
        tell(line)
    return 2 if failures else 0


class Chosen:
    """A source of data sets whose test videos are those that a file lists."""

    def __init__(self, source: DataSource, file: Path) -> None:
        self._source, self._file, self._ids = source, file, read_ids(file)
        self.about = f"{source.about} Of their test videos, only those in {file.name} are scored."

    def get(self, name: SetName) -> DataSet:
        """See `DataSource`."""
        data = self._source.get(name)
        try:
            labels = data.test.labels.restrict(self._ids, self._file.name)
        except LabelError as problem:
            raise MissingDataError(f"{data.name}: {problem}") from None
        some = f"{count_of(len(labels))} of {self._file.name}"
        shown, unlike = f"{data.name}, {some}", (*data.unlike, some)
        return replace(data, name=shown, test=replace(data.test, labels=labels), unlike=unlike)


def with_given(experiment: Experiment, given: Mapping[str, Path]) -> Experiment:
    """An experiment with rows for files of predictions.

    One with the name of a row that is only printed takes its place, and has none elsewhere. Others are rows
    of all tables that compare methods.

    Raises:
        ConfigError: A name is that of a row that runs.
    """
    rows = {row.name: row for row in experiment.rows}
    for name, path in given.items():
        if name in rows and rows[name].kind != "printed":
            raise ConfigError(f"--row {name}: {experiment.name} has such a row; choose another name")
        known = any(row.name == name for each in EXPERIMENTS.values() for row in each.rows)
        if name in rows or (not known and experiment.name in COMPARISONS):
            rows[name] = Row(name=name, kind="given", method=str(path))
    return replace(experiment, rows=tuple(rows.values()))


def chosen(names: Sequence[str]) -> list[Experiment]:
    """Experiments by their names; all if none is named.

    Raises:
        ConfigError: Unknown name.
    """
    for name in names:
        if name not in EXPERIMENTS:
            raise ConfigError(f"no experiment {name!r}: {meant(name, EXPERIMENTS)}")
    return [EXPERIMENTS[name] for name in dict.fromkeys(names)] if names else list(EXPERIMENTS.values())
