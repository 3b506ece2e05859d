"""One call of `ongebd experiment`: from its settings to the report."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Protocol

from ongebd.errors import ConfigError
from ongebd.lab.experiments.catalogue import EXPERIMENTS
from ongebd.lab.experiments.composed_material import ComposedMaterial
from ongebd.lab.experiments.material import Material
from ongebd.lab.experiments.own_data import OwnData
from ongebd.lab.experiments.pictures import draw
from ongebd.lab.experiments.report import Report
from ongebd.lab.experiments.results import TableResult
from ongebd.lab.experiments.runner import Runner
from ongebd.lab.experiments.scales import Scale
from ongebd.lab.experiments.shelf import Shelf
from ongebd.lab.experiments.table import Experiment


class Following(Protocol):
    """Who is told how it goes."""

    def tell(self, line: str) -> None:
        """A line for people."""

    def at(self, what: str, done: float, total: float) -> None:
        """Seconds of work done, of all."""


class Session:
    """Experiments to be run, and where everything goes.

    Args:
        names: Of experiments; none for all.
        data: The paper's data sets; None for composites.
        clips: Of which those are made.
        out: Folder of the report.
        work: Folder of what is kept.
        scale: How large.
        backbone: Of the composites' features.
        device: Where it is trained.
        command: That is run, for the report.
        progress: Is told how it goes.

    Raises:
        ConfigError: A name, a folder or the device is not in order.
    """

    def __init__(
        self,
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
        progress: Following,
    ) -> None:
        self.experiments = chosen(names)
        self._out, self._scale, self._command, self._progress = out, scale, command, progress
        self._shelf = shelf = Shelf(work, progress.tell)
        self.material: Material = (
            ComposedMaterial(clips, scale, shelf, backbone, progress.tell) if data is None else OwnData(data)
        )
        self.runner = Runner(self.material, scale, shelf, device, progress.tell)

    def run(self) -> int:
        """Do all of it; 2 where something failed, of which the report says what."""
        progress = self._progress
        if removed := self._shelf.clear():
            progress.tell(
                f"{removed} half-made piece{'s' * (removed != 1)} of work removed, of a run that was killed"
            )
        steps = self.runner.plan(self.experiments)
        estimate = self.runner.estimate(steps)
        if steps:
            guess = "" if estimate.known == len(steps) else ", partly a guess"
            progress.tell(f"{len(steps)} trainings to do, about {_minutes(estimate.total)}{guess}")
        done = 0.0
        for number, (step, seconds) in enumerate(
            zip(self.runner.train(steps), estimate.seconds, strict=True), start=1
        ):
            done += seconds
            what = f"{number}/{len(steps)}  {step.experiment.name}: {step.row.name}, seed {step.seed}"
            progress.at(what, done, estimate.total)
        tables = [self.runner.table(experiment) for experiment in self.experiments]
        figures = draw(self.runner, tables, self._out)
        report = Report(tables, self._scale, self.material.about, self._command, figures)
        for path in report.write(self._out)[:2]:
            progress.tell(f"wrote {path}")
        failures = [line for table in tables for line in table.failures]
        for line in failures:
            progress.tell(line)
        return 2 if failures else 0


def chosen(names: Sequence[str]) -> list[Experiment]:
    """Experiments by their names; all where none is named.

    Raises:
        ConfigError: There is none of a name.
    """
    for name in names:
        if name not in EXPERIMENTS:
            close = get_close_matches(name, EXPERIMENTS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(EXPERIMENTS)}"
            raise ConfigError(f"no experiment {name!r}: {hint}")
    return [EXPERIMENTS[name] for name in dict.fromkeys(names)] if names else list(EXPERIMENTS.values())


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


__all__ = ["Session", "TableResult", "chosen"]
