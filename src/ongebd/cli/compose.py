"""`ongebd compose`: labelled videos out of a folder of clips."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn

from ongebd.cli.bars import StderrBar
from ongebd.errors import ConfigError
from ongebd.lab.composites.compose import check_empty
from ongebd.lab.composites.compose import compose as run
from ongebd.lab.composites.config import ComposeConfig
from ongebd.lab.composites.planner import plan_videos
from ongebd.lab.composites.records import CompositeVideo, read_composites
from ongebd.lab.composites.scan import read_clips
from ongebd.lab.composites.sheet import write_contact_sheet

_EVERY = 10.0  # seconds between two lines where there is no terminal


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

    Writes into --out: *.mp4, labels.json (for `ongebd evaluate --labels`), composites.json with the kind of
    each boundary and of each distractor, a list of ids for each part of the split, and contact-sheet.png to
    look at. The same clips, seed and version give the same bytes. Kinds of boundary: cut, jump, action,
    dissolve, fade, speed, reverse, framing, stop, start, and natural where --labels are given. Distractors,
    which are not labelled: shake, pan, exposure, flash, noise, compression, freeze, overlay, zoom.

    Exit status: 0; 2 if something was refused; 130 after Ctrl-C (the labels list the videos that are done).

    Parameters
    ----------
    clips
        Folders of video files, searched with their sub-folders, and video files.
    out
        Folder for everything; it must be empty, and is made if it is not there.
    videos
        How many, over all parts of the split.
    minutes
        Make as many videos as last so long together, instead of --videos.
    seed
        Of everything but the split.
    split
        Three shares for training, validation and test; train, val or test for one of these alone; or all.
        Clips are parted, by their names, and clips of one setting stay together.
    split_seed
        Of the split.
    boundaries
        Kinds with commas between them, all or none.
    distractors
        Likewise.
    seconds
        The shortest and the longest video.
    motion
        What is shown between boundaries: any stretch, calm ones or still pictures; the latter two are for
        --boundaries none, where calm is the default.
    size
        Shorter side, pixels.
    fps
        Frames a second.
    crf
        Quality of the H.264 files, 0 (best) to 51.
    labels
        Labels of the clips, as `ongebd evaluate` takes them; ids are file names without ending.
    groups
        CSV with the columns file and group, or JSON: clips of one group show the same setting.
    contact_sheet
        Draw contact-sheet.png.
    workers
        Processes.
    quiet
        No progress, no summary; warnings only.
    """
    if not clips:
        raise ConfigError("no clips given: name a folder of video files (see: ongebd compose --help)")
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
        raise ConfigError(f"--workers must be 1 or more, not {workers}")
    check_empty(out)
    with _ComposeProgress(out, quiet=quiet) as progress:
        library = read_clips(
            clips,
            labels=labels,
            keep_labelled="natural" in config.boundary_kinds,
            groups=groups,
            progress=progress.reading,
        )
        for warning in library.warnings:
            progress.say(f"ongebd: {warning}")
        plans = plan_videos(library, config)
        progress.planned(len(plans), sum(plan.duration for plan in plans))
        with closing(run(library, config, out, workers=workers, plans=plans)) as made:
            for video in made:
                progress.made(video)
        if contact_sheet:
            progress.drawing()
            write_contact_sheet(read_composites(out))
        progress.complete = True
    return 0


def _two_numbers(text: str) -> tuple[float, float]:
    try:
        shortest, longest = (float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"--seconds {text}: give the shortest and the longest video, as in 8,40") from None
    return shortest, longest


class _ComposeProgress(StderrBar):
    """A bar on a terminal, a line every ten seconds elsewhere, and a summary. Never writes to stdout.

    Args:
        out: The folder.
        quiet: Warnings only.

    Attributes:
        complete: Set when all is made.
    """

    def __init__(self, out: Path, *, quiet: bool) -> None:
        super().__init__(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[now]}"),
            TimeRemainingColumn(),
            quiet=quiet,
        )
        if self._bar is not None:
            self._task = self._bar.add_task("reading clips", total=None, now="")
        self.complete = False
        self._out = out
        self._videos = self._boundaries = self._planned = 0
        self._seconds = 0.0
        self._started = self._last_line = time.monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if not self._quiet and (self.complete or self._videos):
            took = max(time.monotonic() - self._started, 1e-9)
            early = (
                "" if self.complete else f"; stopped early, {self._planned - self._videos} videos are missing"
            )
            videos = f"{self._videos} video{'' if self._videos == 1 else 's'}"
            self.say(
                f"{videos}, {self._seconds / 60:.1f} min with {self._boundaries} boundaries, into {self._out}"
                f" in {took:.1f} s ({self._seconds / took:.1f} s of video a second){early}"
            )

    def reading(self, number: int, count: int, name: str) -> None:
        """A clip is read."""
        self._show(number, count, f"{number}/{count}  {name}")

    def planned(self, videos: int, seconds: float) -> None:
        """So many videos of so many seconds in all are to be made."""
        self._planned = videos
        self._started = time.monotonic()
        if self._bar is not None:
            self._bar.reset(self._task, description="composing", total=seconds, now=f"0/{videos} videos")

    def made(self, video: CompositeVideo) -> None:
        """A video is done."""
        self._videos += 1
        self._boundaries += len(video.boundaries)
        self._seconds += video.duration
        self._show(self._seconds, None, f"{self._videos}/{self._planned} videos")

    def drawing(self) -> None:
        """The contact sheet is drawn."""
        if self._bar is not None:
            self._bar.update(self._task, description="drawing the contact sheet")

    def _show(self, completed: float, total: float | None, now: str) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=completed, now=now)
            if total is not None:
                self._bar.update(self._task, total=total)
        elif not self._quiet and time.monotonic() - self._last_line >= _EVERY:
            self._last_line = time.monotonic()
            self.say(now)
