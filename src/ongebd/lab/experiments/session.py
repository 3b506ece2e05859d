"""One call of `ongebd experiment`: from its settings to the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path

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
    tell: Callable[[str], None],
    show: Callable[[str, int, int], object],
) -> int:
    """Run the named experiments, or all, on the data sets in `data` or on composites of `clips`.

    `tell` prints a line; `show` says what is being trained, how many trainings are done, and of how many.

    Returns:
        0, or 2 if something failed; the report in `out` says what.

    Raises:
        OngebdError: A name, a folder or the device is wrong, or data can't be read.
    """
    experiments = chosen(names)
    cache = Cache(work, tell)
    source: DataSource = (
        ComposedDataSets(clips, scale, cache, backbone, tell) if data is None else DataFolder(data)
    )
    runner = Runner(source, scale, cache, device, tell)
    if removed := cache.clear():
        tell(f"removed {removed} half-made piece{'s' * (removed != 1)} of work of a killed run")
    if steps := runner.plan(experiments):
        tell(f"{len(steps)} trainings to do")
    for done, step in enumerate(steps):
        show(f"{step.experiment.name}: {step.row.name}, seed {step.seed}", done, len(steps))
        runner.train(step)
    tables = [runner.table(experiment) for experiment in experiments]
    figures = draw(runner, tables, out)
    report = Report(tables, scale, source.about, runner.device, command, figures)
    failures = [line for table in tables for line in table.failures]
    for line in (*(f"wrote {path}" for path in report.write(out)[:2]), *failures):
        tell(line)
    return 2 if failures else 0


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
