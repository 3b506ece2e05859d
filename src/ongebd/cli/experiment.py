"""`ongebd experiment`: the paper's tables and figures, and others, as definitions that are run."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ongebd.cli.progress import Progress
from ongebd.cli.tables import print_tables
from ongebd.cli.usage import strict
from ongebd.common.tables import Table
from ongebd.errors import ConfigError, MissingExtraError

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

    For the tables of TSN's features: DATA/kinetics-gebd/features-tsn-sthv2 (ongebd extract --fps 24
    --backbone tsn-sthv2 --weights FILE) and features-tsn-kinetics.
    """
    from ongebd.lab.experiments.catalogue import EXPERIMENTS

    rows = [
        (name, experiment.title + ("" if experiment.printed else " (not in the paper)"), experiment.asks)
        for name, experiment in EXPERIMENTS.items()
    ]
    print_tables(
        [Table("", ("name", "table", "what it asks"), rows)],
        "`ongebd experiment list --help` shows how data sets lie",
    )
    return 0


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOption:
    """On what experiments run, how large, and where everything goes."""

    data: Path | None = None
    """Folder of the data sets; see `ongebd experiment list --help`."""

    clips: Annotated[list[Path] | None, Parameter(consume_multiple=True, negative=())] = None
    """In place of --data: folders of clips, of which composites are made."""

    out: Annotated[Path, Parameter(alias="-o")] = Path("experiments")
    """Folder for report.md, report.html, results.json, tables/*.tex and figures."""

    work: Path | None = None
    """Folder for what is kept between runs: composites, features, errors. Default: OUT/work."""

    scale: str = "small"
    """tiny, small, medium or full: how much is made and trained."""

    seeds: int | None = None
    """Of every training; the scale's if not given."""

    backbone: str = "efficientnet_lite0"
    """Of the composites' features."""

    device: str = "auto"
    """auto, cpu, cuda or cuda:N."""

    quiet: Annotated[bool, Parameter(alias="-q", negative=())] = False
    """No progress."""


Run = Annotated[RunOption | None, Parameter(name="*")]


@app.command(name="run")
def run(*names: str, option: Run = None) -> int:
    """Run some experiments: `ongebd experiment list` names them.

    Parameters
    ----------
    names
        Which.
    option
        How.
    """
    if not names:
        raise ConfigError("which experiments? `ongebd experiment list` names them; `experiment all` runs all")
    return _run(names, option or RunOption())


@app.command(name="all")
def all_(*, option: Run = None) -> int:
    """Run every experiment."""
    return _run((), option or RunOption())


def _run(names: Sequence[str], option: RunOption) -> int:
    from ongebd.lab.experiments.scales import scale_of

    scale = scale_of(option.scale).with_seeds(option.seeds)
    if (option.data is None) == (not option.clips):
        raise ConfigError("give --data with the paper's data sets, or --clips with a folder of clips")
    try:
        from ongebd.lab.experiments.session import Session
    except ModuleNotFoundError as problem:
        if (problem.name or "").split(".")[0] in ("torch", "safetensors", "huggingface_hub", "yaml"):
            raise MissingExtraError.of(problem.name, "train") from None
        raise
    with Progress(quiet=option.quiet) as progress:
        session = Session(
            names,
            data=option.data,
            clips=option.clips or [],
            out=option.out,
            work=option.work or option.out / "work",
            scale=scale,
            backbone=option.backbone,
            device=option.device,
            command=shlex.join(["ongebd", *_plain_arguments(sys.argv[1:])]),
            progress=_Following(progress),
        )
        return session.run()


class _Following:
    """Passes what a session reports to the progress bar."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def tell(self, line: str) -> None:
        self._progress.summary(f"[{self._progress.seconds:5.0f} s] {line}")

    def at(self, what: str, done: float, total: float) -> None:
        self._progress.show(what, done, total)


def _plain_arguments(arguments: Sequence[str]) -> list[str]:
    """The command line without folders of this machine."""
    return [Path(text).name or text if "/" in text else text for text in arguments]
