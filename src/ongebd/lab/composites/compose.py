"""From clips to a folder of videos with labels: planned first, then written one by one or side by side."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path

from ongebd.common.processes import side_by_side
from ongebd.common.writing import write_whole
from ongebd.errors import ConfigError, OngebdError, import_extra, os_errors
from ongebd.lab.composites.clips import ClipLibrary
from ongebd.lab.composites.codec import ENCODER, check_encoder, write_mp4
from ongebd.lab.composites.config import ComposeConfig, parts
from ongebd.lab.composites.grouping import parted
from ongebd.lab.composites.plan import VideoPlan
from ongebd.lab.composites.planner import plan_videos
from ongebd.lab.composites.records import CompositeVideo, composite_of, write_records, write_text
from ongebd.lab.composites.render import render

_WRITE_EVERY = 2.0  # seconds between two writes of the labels


def compose(
    library: ClipLibrary,
    config: ComposeConfig,
    out: Path | str,
    *,
    workers: int = 1,
    plans: Sequence[VideoPlan] | None = None,
) -> Generator[CompositeVideo, None, None]:
    """Make the videos, with `labels.json` and `composites.json` beside them.

    Files are written whole. If the generator is closed early, by Ctrl-C for example, the labels list the
    finished videos; if there are none, the folder is removed. The bytes don't depend on the number of
    workers.

    Args:
        library: The clips.
        config: What is made.
        out: Folder, made if it doesn't exist; it must be empty.
        workers: Processes; 1 works in this one. A script that wants more must guard its start with
            `if __name__ == "__main__":`.
        plans: Those of `plan_videos`, if they were made before.

    Yields:
        Each video when it is done, in the order of their ids.

    Raises:
        ConfigError: The clips are too few or too short.
        OngebdError: The folder isn't empty, or can't be written.
    """
    if workers < 1:
        raise ConfigError(f"workers must be 1 or more, not {workers}")
    check_encoder()
    if "overlay" in config.distractor_kinds:  # its letters
        import_extra("matplotlib", "plot")
    plans = plan_videos(library, config) if plans is None else plans
    folder = check_empty(out)
    with os_errors(folder, "name another folder with --out", OngebdError):
        folder.mkdir(parents=True, exist_ok=True)
    facts, settings = _clip_facts(library, config), _settings(library, config)
    done: list[CompositeVideo] = []
    written = -_WRITE_EVERY
    try:
        with closing(_made(config, plans, folder, workers)) as videos:
            for video in videos:
                done.append(video)
                if time.monotonic() - written > _WRITE_EVERY:
                    write_records(folder, done, settings, facts)
                    written = time.monotonic()
                yield video
    finally:
        if done:
            write_records(folder, done, settings, facts)
        else:
            with suppress(OSError):
                folder.rmdir()
        for part in sorted({video.part for video in done} - {"all"}):
            lines = ["id", *(video.id for video in done if video.part == part)]
            write_text(folder / f"{part}.csv", "\n".join(lines) + "\n")


def check_empty(out: Path | str) -> Path:
    """The folder, if it is empty or doesn't exist; nothing is made.

    Raises:
        OngebdError: It isn't empty, or isn't a folder.
    """
    folder = Path(out)
    with os_errors(folder, "name another folder with --out", OngebdError):
        if folder.exists() and any(folder.iterdir()):
            raise OngebdError(f"{folder}: is not empty; name another folder with --out, or empty it")
    return folder


def write_video(plan: VideoPlan, folder: Path, crf: int) -> CompositeVideo:
    """Write one video.

    Raises:
        OngebdError: It can't be written, or a clip has changed.
    """
    video = composite_of(plan, folder)
    with (
        closing(render(plan)) as pictures,
        os_errors(video.path, "free some space or write elsewhere (see --out)", OngebdError),
        write_whole(video.path) as part,
    ):
        write_mp4(part, pictures, (plan.width, plan.height), plan.fps, crf)
    return video


def _made(
    config: ComposeConfig, plans: Sequence[VideoPlan], folder: Path, workers: int
) -> Generator[CompositeVideo, None, None]:
    job = partial(write_video, folder=folder, crf=config.crf)
    done: set[Path] = set()
    try:
        with closing(side_by_side(job, plans, workers)) as videos:
            for video in videos:
                done.add(video.path)
                yield video
    finally:  # remove what was stopped halfway, or was finished out of turn
        for path in {*folder.glob("*.mp4"), *folder.glob(".*.part")} - done:
            with suppress(OSError):
                path.unlink()


def _clip_facts(library: ClipLibrary, config: ComposeConfig) -> dict[str, dict[str, str]]:
    split = parted(library, parts(config.split)[0], config.split_seed)
    return {
        clip.name: {"part": part, "group": clip.group, "sha256": clip.sha256}
        for part, clips in split.items()
        for clip in clips
    }


def _settings(library: ClipLibrary, config: ComposeConfig) -> dict[str, object]:
    kept = "kept" if "natural" in config.boundary_kinds else "kept out"
    return {
        **asdict(config),
        "fps": str(config.rate),
        "boundaries": config.boundary_kinds,
        "distractors": config.distractor_kinds,
        "seconds": config.length,
        "motion": config.shown,
        "labelled_boundaries": kept if library.labelled else None,
        "encoder": ENCODER,
        "version": version("ongebd"),
    }
