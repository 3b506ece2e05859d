"""`ongebd experiment`: the paper's tables and figures, and others, as definitions that are run."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from ongebd.cli.options import strict
from ongebd.cli.tables import print_tables
from ongebd.cli.terminal import Progress, say
from ongebd.common.tables import Table
from ongebd.detector.models import DEFAULT_MODEL
from ongebd.errors import ConfigError, import_extra

app = App(
    name="experiment",
    help="Run the paper's tables and figures, and more, on your data.",
    help_format="plaintext",
    default_parameter=Parameter(converter=strict),
)


@app.command(name="list")
def list_() -> int:
    """List the experiments: names, titles, and the question of each.

    All data sets are in one folder, --data DATA:

    DATA/kinetics-gebd/features (ongebd extract --fps 24), train.pkl, test.pkl, and videos/ for methods that
    need pictures; DATA/tapos with the same at 6 frames per second; DATA/inria with features and test labels.

    For the tables of TSN's features: DATA/kinetics-gebd/features-tsn-sthv2 (ongebd extract --fps 24
    --backbone tsn-sthv2 --weights FILE) and features-tsn-kinetics.
    """
    from ongebd.lab.experiments.catalogue import EXPERIMENTS

    rows = [
        (name, f"{experiment.title}{'' if experiment.paper else ' (not in the paper)'}. {experiment.asks}")
        for name, experiment in EXPERIMENTS.items()
    ]
    print_tables(
        [Table("", ("", ""), rows)], "`ongebd experiment list --help` shows the layout of the data sets"
    )
    return 0


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOption:
    """Data, size and results of experiments."""

    data: Path | None = None
    """Folder of the data sets; see `ongebd experiment list --help`."""

    clips: Annotated[list[Path] | None, Parameter(consume_multiple=True, negative=())] = None
    """Instead of --data: folders of clips for composites."""

    ids: Path | None = None
    """CSV file whose first column lists the test videos to score; the others are left out. With --data."""

    row: Annotated[list[str] | None, Parameter(negative=())] = None
    """NAME=FILE: also score another system's predictions, in a file or folder, as NAME; can be repeated."""

    out: Annotated[Path, Parameter(alias="-o")] = Path("experiments")
    """Folder for report.md, report.html, results.json, tables/*.tex and figures."""

    work: Path | None = None
    """Folder for what is kept between runs: composites, features, errors. [OUT/work]"""

    scale: str | None = None
    """How much to make and train: tiny, small, medium or full. [full with --data, small with --clips]"""

    seeds: int | None = None
    """Seeds per training. [the scale's]"""

    backbone: str = "efficientnet_lite0"
    """Backbone for the composites' features."""

    device: str = "auto"
    """auto, cpu, cuda or cuda:N."""

    quiet: Annotated[bool, Parameter(alias="-q", negative=())] = False
    """Show no progress."""


Run = Annotated[RunOption | None, Parameter(name="*")]


@app.command(name="run")
def run(*names: str, option: Run = None) -> int:
    """Run some experiments; `ongebd experiment list` lists them.

    Parameters
    ----------
    names
        Names of experiments.
    """
    if not names:
        raise ConfigError("no experiment: name some of `ongebd experiment list`, or use `experiment all`")
    return _run(names, option or RunOption())


@app.command(name="all")
def all_(*, option: Run = None) -> int:
    """Run every experiment."""
    return _run((), option or RunOption())


def _run(names: Sequence[str], option: RunOption) -> int:
    from ongebd.lab.experiments.scales import scale_of

    scale = scale_of(option.scale or ("full" if option.data else "small"), option.seeds)
    if (option.data is None) == (not option.clips):
        raise ConfigError("use either --data with the paper's data sets or --clips with folders of clips")
    if option.ids is not None and option.data is None:
        raise ConfigError("--ids lists videos of the paper's data sets; add --data, or drop --ids")
    session = import_extra("ongebd.lab.experiments.session", "train")
    with Progress(quiet=option.quiet, lines=True) as progress:
        return session.run_experiments(  # type: ignore[no-any-return]
            names,
            data=option.data,
            clips=option.clips or [],
            ids=option.ids,
            given=_files(option.row or []),
            out=option.out,
            work=option.work or option.out / "work",
            scale=scale,
            backbone=option.backbone,
            device=option.device,
            command=shlex.join(["ongebd", *_plain_arguments(sys.argv[1:])]),
            tell=lambda line: progress.summary(f"[{progress.seconds:5.0f} s] {line}"),
            show=lambda what, done, of: progress.show(what, done, of, f"{done}/{of} trainings: {what}"),
        )


def _files(texts: Sequence[str]) -> dict[str, Path]:
    """NAME=FILE pairs."""
    files = {}
    for text in texts:
        name, equals, file = text.partition("=")
        if not (name and equals and file) or name in files:
            raise ConfigError(f"--row {text}: use NAME=FILE, each name once, such as --row DyBDet=dybdet.pkl")
        if not Path(file).exists():
            raise ConfigError(f"--row {text}: no such file or folder; name predictions")
        files[name] = Path(file)
    return files


def _plain_arguments(arguments: Sequence[str]) -> list[str]:
    """The command line without folders of this machine."""
    return [Path(text).name or text if "/" in text else text for text in arguments]


@app.command(name="figure")
def figure(
    *videos: Path,
    labels: Path,
    out: Annotated[list[Path], Parameter(alias="-o", consume_multiple=True, negative=())],
    method: Annotated[str, Parameter(alias="-m")] = DEFAULT_MODEL,
    baseline: str | None = None,
    id: str | None = None,  # noqa: A002
    dataset: Literal["auto", "kinetics-gebd", "tapos", "inria", "custom"] = "auto",
    width: Literal["page", "column"] = "page",
    tolerance: float | None = None,
    start: float | None = None,
    end: float | None = None,
) -> int:
    """Draw videos for a paper: frames, annotators, and under them each method's curve and boundaries.

    A boundary is right (filled) or false (open) by the official rule: compared with the annotator who agrees
    best with the method. Shades show the tolerance around annotated boundaries; the darker, the more
    annotators marked one there.

    Parameters
    ----------
    videos
        Video files; each is read several times.
    labels
        Labels that include the videos, as for `ongebd evaluate`.
    out
        Files to write: .pdf, .svg or .png; can be repeated.
    method
        A method or the folder of a trained model; `ongebd models` lists them.
    baseline
        A second method, drawn below.
    id
        The id in the labels of a single video. [from the file's name, as in `ongebd evaluate`]
    dataset
        Whose rules apply; auto chooses by the file.
    width
        Width of a page (6.875 inches) or of a column (3.25 inches).
    tolerance
        Seconds within which a boundary is right. [0.05 of the labelled length]
    start
        Start of the drawn part, seconds. [the beginning]
    end
        End of the drawn part, seconds. [the end of the labels]
    """
    if not videos:
        raise ConfigError("no video: name one or more files")
    files = import_extra("ongebd.lab.experiments.figures.video", "plot").draw_video(
        videos,
        labels,
        method,
        baseline,
        out,
        video_id=id,
        dataset=dataset,
        width=width,
        tolerance=tolerance,
        start=start,
        end=end,
    )
    for file in files:
        say(f"wrote {file}")
    return 0
