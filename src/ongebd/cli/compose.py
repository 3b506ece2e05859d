"""`ongebd compose`: labelled videos out of a folder of clips."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ongebd.cli.options import Quiet, Whole
from ongebd.cli.terminal import Progress, counted
from ongebd.errors import ConfigError
from ongebd.lab.composites.compose import check_empty
from ongebd.lab.composites.compose import compose as run
from ongebd.lab.composites.config import ComposeConfig
from ongebd.lab.composites.planner import plan_videos
from ongebd.lab.composites.records import CompositeVideo
from ongebd.lab.composites.scan import read_clips


def compose(
    clips: Annotated[list[Path], Parameter(negative=())],
    /,
    *,
    out: Annotated[Path, Parameter(alias="-o")],
    config: Annotated[ComposeConfig | None, Whole] = None,
    labels: Path | None = None,
    groups: Path | None = None,
    workers: int = 1,
    quiet: Quiet = False,
) -> int:
    """Make videos with known event boundaries out of clips.

    Writes to --out: *.mp4, labels.json (for `ongebd evaluate --labels`), composites.json with the kind of
    each boundary and distractor, and a list of ids for each part of the split. The same
    clips, seed and version give the same bytes. Kinds of boundary: cut, jump, action, dissolve, fade, speed,
    reverse, framing, stop, start, and natural with --labels. Distractors, which are not labelled: shake, pan,
    exposure, flash, noise, compression, freeze, overlay, zoom.

    After Ctrl-C the labels list the finished videos.

    Parameters
    ----------
    clips
        Video files, and folders of video files with their sub-folders.
    out
        Folder for all results; must be empty.
    labels
        Labels of the clips, as for `ongebd evaluate`; ids are file names without ending.
    groups
        CSV with the columns file and group: clips of one group show the same setting.
    workers
        Processes.
    """
    if not clips:
        raise ConfigError("no clips: name a folder of video files (see: ongebd compose --help)")
    config = config or ComposeConfig()
    if workers < 1:
        raise ConfigError(f"--workers must be at least 1, not {workers}")
    check_empty(out)
    made: list[CompositeVideo] = []
    with Progress(quiet=quiet, lines=True) as progress:
        library = read_clips(
            clips,
            labels=labels,
            keep_labelled="natural" in config.boundary_kinds,
            groups=groups,
            progress=lambda at, count, name: progress.show(
                "reading clips", at, count, f"{at}/{count}  {name}"
            ),
        )
        for warning in library.warnings:
            progress.say(f"ongebd: {warning}")
        plans = plan_videos(library, config)
        progress.restart()
        total, length = sum(plan.duration for plan in plans), 0.0
        try:
            with closing(run(library, config, out, workers=workers, plans=plans)) as videos:
                for video in videos:
                    made.append(video)
                    length += video.duration
                    progress.show("composing", length, total, f"{len(made)}/{len(plans)} videos")
        finally:
            if made:
                missing = len(plans) - len(made)
                stopped = f"; stopped early, {missing} videos are missing" if missing else ""
                progress.summary(
                    f"{counted(len(made), 'video')}, {length / 60:.1f} min with"
                    f" {sum(len(video.boundaries) for video in made)} boundaries, into {out} in"
                    f" {progress.seconds:.1f} s ({length / progress.seconds:.1f} × real time){stopped}"
                )
    return 0
