"""From clips to a folder of videos with labels: planned at once, then written one by one or side by side."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from pathlib import Path

from ongebd.errors import ConfigError, OngebdError
from ongebd.lab.composites.clips import Clip, ClipLibrary
from ongebd.lab.composites.codec import VideoFile, encoder
from ongebd.lab.composites.config import ComposeConfig, parts
from ongebd.lab.composites.grouping import parted
from ongebd.lab.composites.plan import VideoPlan
from ongebd.lab.composites.planner import plan_videos
from ongebd.lab.composites.records import CompositeVideo, composite_of, write_at_once, write_records
from ongebd.lab.composites.render import render
from ongebd.lab.composites.workers import side_by_side

_WRITE_EVERY = 2.0  # seconds between two writings of the labels


def compose(
    library: ClipLibrary,
    config: ComposeConfig,
    out: Path | str,
    *,
    workers: int = 1,
    plans: Sequence[VideoPlan] | None = None,
) -> Generator[CompositeVideo, None, None]:
    """Make the videos, with `labels.json` and `composites.json` beside them.

    A file has its name only when it is whole. When the generator is closed early, by an interrupt, say, the
    labels list the videos that are done; if there is none, the folder is removed. The bytes do not depend on
    the number of workers.

    Args:
        library: The clips.
        config: What is made.
        out: Folder, made if it is not there; it must be empty.
        workers: Processes; 1 works in this one. A script that asks for more must guard its start with
            `if __name__ == "__main__":`.
        plans: Those of `plan_videos`, if they were made before.

    Yields:
        Each video when it is done, in the order of their ids.

    Raises:
        ConfigError: The clips do not give what is asked for.
        OngebdError: The folder is not empty, or cannot be written.
    """
    if workers < 1:
        raise ConfigError(f"workers must be 1 or more, not {workers}")
    plans = plan_videos(library, config) if plans is None else plans
    folder = check_empty(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise OngebdError(f"{folder}: cannot be made ({problem.strerror}); name another folder") from None
    facts, settings = _clip_facts(library, config), _settings(library, config)
    done: list[CompositeVideo] = []
    written = -_WRITE_EVERY
    try:
        with closing(_made(library, config, plans, folder, workers)) as videos:
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
            write_at_once(folder / f"{part}.csv", "\n".join(lines) + "\n")


def check_empty(out: Path | str) -> Path:
    """The folder, if nothing is in it, or it is not there yet; nothing is made.

    Raises:
        OngebdError: Something is in it, or it is no folder.
    """
    folder = Path(out)
    try:
        if folder.exists() and any(folder.iterdir()):
            raise OngebdError(f"{folder}: is not empty; name another folder with --out, or empty it")
    except OSError as problem:
        raise OngebdError(f"{folder}: cannot be read ({problem.strerror}); name another folder") from None
    return folder


def write_video(plan: VideoPlan, clips: Mapping[str, Clip], folder: Path, crf: int) -> CompositeVideo:
    """Write one video; its name appears when it is whole.

    Raises:
        OngebdError: It cannot be written, or a clip is not what it was.
    """
    video = composite_of(plan, folder)
    aside = folder / _aside(plan)
    try:
        with (
            VideoFile(aside, (plan.width, plan.height), plan.fps, crf) as file,
            closing(render(plan, clips)) as pictures,
        ):
            for picture in pictures:
                file.add(picture)
        aside.replace(video.path)
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
    return video


def _made(
    library: ClipLibrary, config: ComposeConfig, plans: Sequence[VideoPlan], folder: Path, workers: int
) -> Generator[CompositeVideo, None, None]:
    used = {name: library.clips[name] for name in sorted({name for plan in plans for name in plan.clips})}
    job = partial(write_video, clips=used, folder=folder, crf=config.crf)
    if workers == 1 or len(plans) < 2:
        yield from map(job, plans)
        return
    told: set[str] = set()
    try:
        with closing(side_by_side(job, plans, workers)) as videos:
            for video in videos:
                told.add(video.id)
                yield video
    finally:  # what was stopped half-way, or was done before its turn
        for plan in plans:
            with suppress(OSError):
                (folder / _aside(plan)).unlink(missing_ok=True)
                if plan.id not in told:
                    (folder / f"{plan.id}.mp4").unlink(missing_ok=True)


def _aside(plan: VideoPlan) -> str:
    """The name of a video that is being written."""
    return f".{plan.id}.part"


def _clip_facts(library: ClipLibrary, config: ComposeConfig) -> dict[str, dict[str, str]]:
    shares, _ = parts(config.split)
    part_of = {
        clip.name: part
        for part, clips in parted(library, shares, config.split_seed).items()
        for clip in clips
    }
    return {
        name: {"part": part_of[name], "group": clip.group, "sha256": clip.sha256}
        for name, clip in library.clips.items()
    }


def _settings(library: ClipLibrary, config: ComposeConfig) -> dict[str, object]:
    kept = "kept" if "natural" in config.boundary_kinds else "kept out"
    plain = {
        name: list(value) if isinstance(value, tuple) else value for name, value in asdict(config).items()
    }
    plain["fps"] = str(config.rate)
    plain["motion"] = config.shown
    plain["labelled_boundaries"] = kept if library.labelled else None
    return {**plain, "encoder": encoder(), "version": version("ongebd")}
