"""`ongebd experiment figure`: the qualitative figure of one or more videos."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ongebd.cli.terminal import say
from ongebd.detector.models import DEFAULT_MODEL
from ongebd.errors import ConfigError, import_extra


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
