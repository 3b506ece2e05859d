"""`ongebd experiment`: the paper's tables and figures, and others, as definitions that are run."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.markup import escape
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ongebd.cli.bars import StderrBar
from ongebd.cli.tables import print_tables
from ongebd.cli.usage import strict
from ongebd.errors import ConfigError, MissingExtraError
from ongebd.evaluation.report_tables import Table

app = App(
    name="experiment",
    help="The paper's tables and figures, and others, as definitions that are run.",
    help_format="plaintext",
    default_parameter=Parameter(converter=strict),
)
app.command("ongebd.cli.experiment_figure:figure", name="figure", help="Draw a video for a paper.")


@app.command(name="list")
def list_() -> int:
    """List what can be run: names, titles, and what each asks.

    Data sets lie in one folder, --data DATA:

    DATA/kinetics-gebd/features (ongebd extract --fps 24), train.pkl, test.pkl, and videos/ for methods that
    need pictures; DATA/tapos likewise, at 6 frames a second; DATA/inria with features and test labels.
    """
    from ongebd.experiments.catalogue import EXPERIMENTS

    rows = [
        (name, experiment.title + ("" if experiment.printed else " (not in the paper)"), experiment.asks)
        for name, experiment in EXPERIMENTS.items()
    ]
    print_tables(
        [Table("", ("name", "table", "what it asks"), rows)],
        "`ongebd experiment list --help` shows how data sets lie",
    )
    return 0


@app.command(name="run")
def run(
    *names: str,
    data: Path | None = None,
    clips: Annotated[list[Path] | None, Parameter(consume_multiple=True, negative=())] = None,
    out: Annotated[Path, Parameter(alias="-o")] = Path("experiments"),
    work: Path | None = None,
    scale: str = "small",
    seeds: int | None = None,
    backbone: str = "efficientnet_lite0",
    device: str = "auto",
    quiet: Annotated[bool, Parameter(alias="-q", negative=())] = False,
) -> int:
    """Run some experiments: `ongebd experiment list` names them.

    Parameters
    ----------
    names
        Which.
    data
        Folder of the data sets; see `ongebd experiment list --help`.
    clips
        In place of --data: folders of clips, of which composites are made.
    out
        Folder for report.md, report.html, results.json, tables/*.tex and figures.
    work
        Folder for what is kept between runs: composites, features, errors. Default: OUT/work.
    scale
        tiny, small, medium or full: how much is made and trained.
    seeds
        Of every training; the scale's if not given.
    backbone
        Of the composites' features.
    device
        auto, cpu, cuda or cuda:N.
    quiet
        No progress.
    """
    if not names:
        raise ConfigError("which experiments? `ongebd experiment list` names them; `experiment all` runs all")
    return _run(names, data, clips, out, work, scale, seeds, backbone, device, quiet=quiet)


@app.command(name="all")
def all_(
    *,
    data: Path | None = None,
    clips: Annotated[list[Path] | None, Parameter(consume_multiple=True, negative=())] = None,
    out: Annotated[Path, Parameter(alias="-o")] = Path("experiments"),
    work: Path | None = None,
    scale: str = "small",
    seeds: int | None = None,
    backbone: str = "efficientnet_lite0",
    device: str = "auto",
    quiet: Annotated[bool, Parameter(alias="-q", negative=())] = False,
) -> int:
    """Run every experiment; the parameters are those of `ongebd experiment run`."""
    return _run((), data, clips, out, work, scale, seeds, backbone, device, quiet=quiet)


def _run(
    names: Sequence[str],
    data: Path | None,
    clips: list[Path] | None,
    out: Path,
    work: Path | None,
    scale: str,
    seeds: int | None,
    backbone: str,
    device: str,
    *,
    quiet: bool,
) -> int:
    from ongebd.experiments.scales import scale_of

    chosen = scale_of(scale).with_seeds(seeds)
    if (data is None) == (not clips):
        raise ConfigError("give --data with the paper's data sets, or --clips with a folder of clips")
    try:
        from ongebd.experiments.session import Session
    except ModuleNotFoundError as problem:
        if (problem.name or "").split(".")[0] in ("torch", "safetensors", "huggingface_hub", "yaml"):
            raise MissingExtraError.of(problem.name, "train") from None
        raise
    with Progress(quiet=quiet) as progress:
        session = Session(
            names,
            data=data,
            clips=clips or [],
            out=out,
            work=work or out / "work",
            scale=chosen,
            backbone=backbone,
            device=device,
            command=shlex.join(["ongebd", *_plain_arguments(sys.argv[1:])]),
            progress=progress,
        )
        return session.run()


def _plain_arguments(arguments: Sequence[str]) -> list[str]:
    """The command line without folders of this machine."""
    return [Path(text).name or text if "/" in text else text for text in arguments]


class Progress(StderrBar):
    """A bar over all trainings, weighted by what they should take; lines for what is done."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            quiet=quiet,
        )
        self._begun = False
        self._started = time.monotonic()

    def tell(self, line: str) -> None:
        """A line, above the bar if there is one; none where all is to be quiet."""
        if not self._quiet:
            self.say(f"[{time.monotonic() - self._started:5.0f} s] {line}")

    def at(self, what: str, done: float, total: float) -> None:
        """Seconds of work done, of all."""
        if self._bar is None:
            return
        if not self._begun:
            self._begun = True
            self._task = self._bar.add_task("", total=total)
        self._bar.update(self._task, description=escape(what), completed=done, total=total)
