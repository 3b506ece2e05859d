"""`ongebd convert`: results and labels in the format of another program."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ongebd.cli.options import Quiet
from ongebd.cli.terminal import Progress, counted
from ongebd.common.text import printable
from ongebd.common.writing import MUXERS, write_whole
from ongebd.errors import ConfigError
from ongebd.output import RunEnd, protect_sources, writing
from ongebd.output.files import check_formats, maker_of, writer_of
from ongebd.output.formats import FORMATS, format_of
from ongebd.output.runs import check_clock, name_of, only, read_runs
from ongebd.output.whole import write_content
from ongebd.video.source import local_path
from ongebd.video.timing import exact_rate


def convert(
    source: Path,
    target: Path,
    /,
    *,
    format: Annotated[str | None, Parameter(alias="-f")] = None,  # noqa: A002
    fps: float | None = None,
    video: str | None = None,
    force: Annotated[bool, Parameter(negative=())] = False,
    quiet: Quiet = False,
) -> int:
    """Turn what `ongebd detect` found, or labels, into another format.

    The names say what is meant: results.jsonl results.otio, or labels.eaf labels.json. A target that ends in
    .mp4, .mov or .mkv is a copy of the video with chapters; nothing is encoded again.

    Parameters
    ----------
    source
        A .jsonl of `ongebd detect`, or labels: .eaf, .json, .csv, .pkl, .edl, .otio, .xml, a video with
        chapters, or a folder of such files.
    target
        The new file.
    format
        The format, such as edl, if the target's name doesn't show it; docs/formats.md lists all.
    fps
        Frames a second, if neither the source nor --video has it.
    video
        The video, if the source doesn't name it or it has moved; or which one of several.
    force
        Overwrite the target.
    """
    name = format or format_of(target.name)
    if name != "chapters":
        (name,) = check_formats([name or target.suffix or target.name])
    form = FORMATS[name]
    if form.how == "pictures":
        raise ConfigError(f"{name} shows the video's pictures and score: ongebd detect VIDEO --format {name}")
    runs = read_runs(source, None if fps is None else exact_rate(fps), video)
    if not form.many:
        runs = [only(runs, source)]
    protect_sources([target], [str(source), *(run.header.source for run in runs)], "TARGET")
    with writing(target):
        if target.exists() and not force:
            raise ConfigError(f"{printable(str(target))} already exists; name another, or add --force")
        target.parent.mkdir(parents=True, exist_ok=True)
    with Progress(quiet=quiet) as progress:
        run = runs[0]
        if name == "chapters":
            from ongebd.video.cutting import copy

            check_clock(run)
            spans = [(one.start, one.end) for one in run.segments]
            show = partial(progress.show, "copying", total=run.duration)
            with writing(target), write_whole(target) as half:
                muxer = MUXERS.get(target.suffix.lower(), "mp4")
                run.warnings.extend(copy(local_path(run.header.source), half, muxer, show, chapters=spans))
        elif form.how == "live":
            writer = writer_of(name)(target, run.header)
            for boundary in run.boundaries:
                writer.boundary(boundary)
            writer.close(run.end or RunEnd(False, 0, 0, 0))
        else:
            write_content(maker_of(form)(runs), target)
        for run in runs:
            for warning in dict.fromkeys(run.warnings):
                progress.say(f"ongebd: {name_of(run)}: {warning}")
        boundaries = sum(len(run.boundaries) for run in runs)
        progress.summary(f"{counted(boundaries, 'boundary')} into {target}")
    return 0
