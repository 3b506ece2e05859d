"""`ongebd experiment figure`: the qualitative figure of a video."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ongebd.common.text import printable
from ongebd.detector.models import DEFAULT_MODEL


def figure(
    video: Path,
    /,
    *,
    labels: Path,
    out: Annotated[list[Path], Parameter(alias="-o", consume_multiple=True, negative=())],
    method: Annotated[str, Parameter(alias="-m")] = DEFAULT_MODEL,
    baseline: str | None = None,
    id: str | None = None,  # noqa: A002
    id_pattern: str | None = None,
    dataset: Literal["auto", "kinetics-gebd", "tapos", "inria", "custom"] = "auto",
    curve: Literal["score", "z"] = "score",
    width: Literal["page", "column"] = "page",
    tolerance: float | None = None,
    moment: Literal["centre", "onset"] = "centre",
    start: float | None = None,
    end: float | None = None,
    title: str = "",
) -> int:
    """Draw a video for a paper: frames, annotators, and under them each method's curve and boundaries.

    A boundary is right (filled) or false (open) by the official rule: against the annotator whom the method's
    boundaries suit best. The shade lies within the tolerance of an annotated boundary; the darker, the more
    annotators have one there.

    Parameters
    ----------
    video
        A file; it is read several times.
    labels
        Labels with the video in it, as of `ongebd evaluate`.
    out
        The figure's files: .pdf, .svg or .png; several may be given.
    method
        A method, or the folder of a trained one; they are listed by: ongebd models.
    baseline
        Another, to stand under it.
    id
        The video's id in the labels. Default: by the file's name, as `ongebd evaluate` has it.
    id_pattern
        Regular expression with one group that takes the id out of the file's name.
    dataset
        Which set's rules hold; auto goes by the file.
    curve
        The score itself, or z: its standard deviations above the recent ones.
    width
        Of the type area of a page (6.875 inches) or of a column (3.25).
    tolerance
        Seconds within which a boundary is right. Default: 0.05 of the labelled length.
    moment
        Which moment of a boundary is shown and judged.
    start
        Seconds: where the part that is shown begins.
    end
        Seconds: where it ends. Default: where the labels do.
    title
        Above the figure; papers have it in the caption.
    """
    from ongebd.lab.experiments.figures.command import draw_video

    files = draw_video(
        video,
        labels,
        method,
        baseline,
        out,
        video_id=id,
        id_pattern=id_pattern,
        dataset=dataset,
        curve=curve,
        width=width,
        tolerance=tolerance,
        moment=moment,
        start=start,
        end=end,
        title=title,
    )
    for file in files:
        print(f"wrote {printable(str(file))}", file=sys.stderr)  # noqa: T201
    return 0
