"""`ongebd compose`: labelled videos out of a folder of clips."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ongebd.cli.terminal import Progress, counted
from ongebd.errors import ConfigError
from ongebd.lab.composites.compose import check_empty
from ongebd.lab.composites.compose import compose as run
from ongebd.lab.composites.config import ComposeConfig
from ongebd.lab.composites.planner import plan_videos
from ongebd.lab.composites.records import CompositeVideo, read_composites
from ongebd.lab.composites.scan import read_clips
from ongebd.lab.composites.sheet import write_contact_sheet


def compose(
    clips: Annotated[list[Path], Parameter(negative=())],
    /,
    *,
    out: Annotated[Path, Parameter(alias="-o")],
    videos: int = 20,
    minutes: float | None = None,
    seed: int = 0,
    split: str = "0.7,0.15,0.15",
    split_seed: int = 0,
    boundaries: str = "all",
    distractors: str = "all",
    seconds: str = "8,40",
    motion: Literal["any", "calm", "still"] | None = None,
    size: int = 256,
    fps: float = 24.0,
    crf: int = 20,
    labels: Path | None = None,
    groups: Path | None = None,
    contact_sheet: bool = True,
    workers: int = 1,
    quiet: Annotated[bool, Parameter(alias="-q", negative=())] = False,
) -> int:
    """Make videos with known event boundaries out of clips.

    Writes to --out: *.mp4, labels.json (for `ongebd evaluate --labels`), composites.json with the kind of
    each boundary and distractor, a list of ids for each part of the split, and contact-sheet.png. The same
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
    videos
        Number of videos, over all parts of the split.
    minutes
        Total length of the videos, instead of --videos.
    seed
        Seed of everything but the split.
    split
        Three shares for training, validation and test; or train, val or test for one of them; or all. Clips
        are divided by their names, and clips of one setting stay together.
    split_seed
        Seed of the split.
    boundaries
        Comma-separated kinds, all, or none.
    distractors
        Comma-separated kinds, all, or none.
    seconds
        The shortest and the longest video.
    motion
        What is shown between boundaries: any stretch, calm stretches, or still pictures. calm and still need
        --boundaries none, whose default is calm.
    size
        Shorter side, pixels.
    fps
        Frames per second.
    crf
        Quality of the H.264 files, 0 (best) to 51.
    labels
        Labels of the clips, as for `ongebd evaluate`; ids are file names without ending.
    groups
        CSV with the columns file and group, or JSON: clips of one group show the same setting.
    contact_sheet
        Draw contact-sheet.png.
    workers
        Processes.
    quiet
        Only warnings.
    """
    if not clips:
        raise ConfigError("no clips: name a folder of video files (see: ongebd compose --help)")
    config = ComposeConfig(
        videos=videos,
        minutes=minutes,
        seed=seed,
        split=split,
        split_seed=split_seed,
        boundaries=boundaries,
        distractors=distractors,
        seconds=_two_numbers(seconds),
        motion=motion,
        size=size,
        fps=fps,
        crf=crf,
    )
    if workers < 1:
        raise ConfigError(f"--workers must be at least 1, not {workers}")
    check_empty(out)
    made: list[CompositeVideo] = []
    with Progress(quiet=quiet, lines=True) as progress:

        def reading(number: int, count: int, name: str) -> None:
            progress.show("reading clips", number, count, f"{number}/{count}  {name}")

        library = read_clips(
            clips,
            labels=labels,
            keep_labelled="natural" in config.boundaries,
            groups=groups,
            progress=reading,
        )
        for warning in library.warnings:
            progress.say(f"ongebd: {warning}")
        plans = plan_videos(library, config)
        progress.restart()
        total, complete = sum(plan.duration for plan in plans), False
        try:
            with closing(run(library, config, out, workers=workers, plans=plans)) as videos_made:
                for video in videos_made:
                    made.append(video)
                    done = sum(video.duration for video in made)
                    progress.show("composing", done, total, f"{len(made)}/{len(plans)} videos")
            if contact_sheet:
                progress.show("drawing the contact sheet", total, total)
                write_contact_sheet(read_composites(out))
            complete = True
        finally:
            if complete or made:
                length = sum(video.duration for video in made)
                missing = "" if complete else f"; stopped early, {len(plans) - len(made)} videos are missing"
                progress.summary(
                    f"{counted(len(made), 'video')}, {length / 60:.1f} min with"
                    f" {sum(len(video.boundaries) for video in made)} boundaries, into {out} in"
                    f" {progress.seconds:.1f} s ({length / progress.seconds:.1f} × real time){missing}"
                )
    return 0


def _two_numbers(text: str) -> tuple[float, float]:
    try:
        shortest, longest = (float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"--seconds {text}: use the shortest and the longest video, such as 8,40") from None
    return shortest, longest
