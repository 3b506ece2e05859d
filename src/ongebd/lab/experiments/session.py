"""One call of `ongebd experiment`: from its settings to the report."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Protocol

from ongebd.errors import ConfigError
from ongebd.lab.experiments.cache import Cache
from ongebd.lab.experiments.catalogue import EXPERIMENTS
from ongebd.lab.experiments.composed_datasets import ComposedDataSets
from ongebd.lab.experiments.datasets import DataFolder, DataSource
from ongebd.lab.experiments.definition import Experiment
from ongebd.lab.experiments.pictures import draw
from ongebd.lab.experiments.report import Report
from ongebd.lab.experiments.runner import Runner
from ongebd.lab.experiments.scales import Scale


class Progress(Protocol):
    """Shows the user how far it is."""

    def tell(self, line: str) -> None:
        """Print a line."""

    def at(self, what: str, done: float, total: float) -> None:
        """Seconds of work done, of all."""


def run_experiments(
    names: Sequence[str],
    *,
    data: Path | None,
    clips: Sequence[Path],
    out: Path,
    work: Path,
    scale: Scale,
    backbone: str,
    device: str,
    command: str,
    progress: Progress,
) -> int:
    """Run the named experiments, or all, on the data sets in `data` or on composites of `clips`.

    Returns:
        0, or 2 if something failed; the report in `out` says what.

    Raises:
        OngebdError: A name, a folder or the device is wrong, or data can't be read.
    """
    experiments = chosen(names)
    cache = Cache(work, progress.tell)
    source: DataSource = (
        ComposedDataSets(clips, scale, cache, backbone, progress.tell) if data is None else DataFolder(data)
    )
    runner = Runner(source, scale, cache, device, progress.tell)
    if removed := cache.clear():
        progress.tell(f"removed {removed} half-made piece{'s' * (removed != 1)} of work of a killed run")
    _train(runner, experiments, progress)
    tables = [runner.table(experiment) for experiment in experiments]
    figures = draw(runner, tables, out)
    report = Report(tables, scale, source.about, runner.device, command, figures)
    failures = [line for table in tables for line in table.failures]
    for line in (*(f"wrote {path}" for path in report.write(out)[:2]), *failures):
        progress.tell(line)
    return 2 if failures else 0


def _train(runner: Runner, experiments: Sequence[Experiment], progress: Progress) -> None:
    """Do all trainings that the cache lacks."""
    steps = runner.plan(experiments)
    seconds, guessed = runner.estimate(steps)
    total, done = sum(seconds), 0.0
    if steps:
        about = f"{total:.0f} s" if total < 90 else f"{total / 60:.0f} min"
        progress.tell(f"{len(steps)} trainings to do, about {about}{', partly a guess' if guessed else ''}")
    for number, step in enumerate(runner.train(steps)):
        done += seconds[number]
        what = f"{number + 1}/{len(steps)}  {step.experiment.name}: {step.row.name}, seed {step.seed}"
        progress.at(what, done, total)


def chosen(names: Sequence[str]) -> list[Experiment]:
    """Experiments by their names; all if none is named.

    Raises:
        ConfigError: Unknown name.
    """
    for name in names:
        if name not in EXPERIMENTS:
            close = get_close_matches(name, EXPERIMENTS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(EXPERIMENTS)}"
            raise ConfigError(f"no experiment {name!r}: {hint}")
    return [EXPERIMENTS[name] for name in dict.fromkeys(names)] if names else list(EXPERIMENTS.values())
