"""`ongebd split`: a file for each segment of a video, and pictures of it."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Annotated

from cyclopts import Parameter

from ongebd.cli.options import Quiet
from ongebd.cli.terminal import Progress, counted
from ongebd.common.text import printable, spoken_name
from ongebd.common.writing import MUXERS, write_whole
from ongebd.detector.segments import Segment, keyframes
from ongebd.detector.trace import jpeg
from ongebd.errors import ConfigError
from ongebd.output import check_stem, clock, protect_sources, writing
from ongebd.output.files import source_stem
from ongebd.output.runs import check_clock, only, read_runs
from ongebd.video import VideoReader
from ongebd.video.cutting import copy, key_frames
from ongebd.video.source import local_path


def split(
    video: str,
    results: Path,
    /,
    *,
    out: Annotated[Path, Parameter(alias="-o")],
    exact: Annotated[bool, Parameter(negative=())] = False,
    save_images: int = 0,
    name: str = "$VIDEO_NAME-Scene-$SCENE_NUMBER",
    force: Annotated[bool, Parameter(negative=())] = False,
    quiet: Quiet = False,
) -> int:
    """Write each segment of a video into a file of its own, with its sound.

    Without --exact nothing is encoded again: quick and without loss, but each cut moves to the nearest key
    frame. The last line says how far.

    Parameters
    ----------
    video
        The video file.
    results
        Its results from `ongebd detect` (.jsonl), or any file that `ongebd convert` reads.
    out
        Folder for the files: .mp4 or .mov if the video is, otherwise .mkv.
    exact
        Cut exactly at the boundaries, and encode the video again (H.264, crf 18).
    save_images
        Also write this many sharp pictures of each segment.
    name
        Name of the files, without ending; $START_TIME and $END_TIME work too.
    force
        Overwrite files in --out.
    """
    if save_images < 0:
        raise ConfigError(f"--save-images must be at least 0, not {save_images}")
    run = only(read_runs(results, video=video), results)
    check_clock(run)
    suffix = Path(video).suffix.lower()
    suffix = suffix if suffix in (".mp4", ".m4v", ".mov") else ".mkv"
    path, length, segments = local_path(video), run.duration, run.segments
    edges = [*(one.start for one in segments), *(one.end for one in segments[-1:])]
    if edges and run.header.settings.get("end") is None:
        edges[-1] = length + 1  # nothing at the end is lost to rounding
    with Progress(quiet=quiet) as progress:
        keys = key_frames(path, lambda at: progress.show("looking for frames", at, length), exact=exact)
        ends = [*map(float, keys), length + 1]
        places = (max(0, bisect(ends, edge) - 1) for edge in edges)
        nearby = [ends[place : place + 2] for place in places]
        near = [min(two, key=lambda one: abs(one - edge)) for two, edge in zip(nearby, edges, strict=True)]
        moved = max((abs(one - edge) for one, edge in zip(near, edges, strict=True)), default=0)
        how = f"copied; cuts moved to key frames by up to {moved:.3f} s (--exact keeps the boundaries)"
        how, edges = "encoded again" if exact else how, sorted(set(near))
        pairs = list(pairwise(edges))
        if not pairs:
            raise ConfigError(f"{results}: has no segment, or none with a key frame; check the file")
        names = [_filled(name, source_stem(video), number, *pair) for number, pair in enumerate(pairs, 1)]
        files = [out / f"{one}{suffix}" for one in names]
        images = [out / f"{one}-{order:02}.jpg" for one in names for order in range(1, save_images + 1)]
        _make_room([*files, *images], [video, str(results)], force=force)
        with writing(out), TemporaryDirectory(prefix=".ongebd-", dir=out) as half:
            pattern = Path(half.replace("%", "%%")) / f"%d{suffix}"
            how_far = partial(progress.show, "cutting", total=length)
            for line in copy(path, pattern, MUXERS[suffix], how_far, edges=edges, exact=exact):
                progress.say(f"ongebd: {spoken_name(video)}: {line}")
            for number, file in enumerate(files):
                (Path(half) / f"{number}{suffix}").replace(file)
        times = [(a, (min(b, length) - a) / save_images) for a, b in pairs] if save_images else []
        middles = [(a + (n + 0.5) * step, step / 2) for a, step in times for n in range(save_images)]
        for image, (at, half_step) in zip(images, middles, strict=True):
            progress.show("writing pictures", at, length)
            around = Segment(at - half_step, at + half_step, None, at)
            for _, picture in keyframes(partial(VideoReader, video), [around]):
                with writing(image), write_whole(image) as part:
                    part.write_bytes(jpeg(picture, quality=2))
        parts = f"{counted(len(segments), 'segment')} in {counted(len(files), 'part')}"
        progress.summary(f"{spoken_name(video)}: {parts} into {out}, {how}")
    return 0


def _filled(name: str, stem: str, number: int, start: float, end: float) -> str:
    """The name of a part."""
    times = {"START_TIME": clock(start).replace(":", "-"), "END_TIME": clock(end).replace(":", "-")}
    known = {"VIDEO_NAME": stem, "SCENE_NUMBER": f"{number:03}", **times}
    try:
        filled = Template(name).substitute(known)
    except (KeyError, ValueError):
        raise ConfigError(f"--name {name}: use ${', $'.join(known)}, and $$ for a dollar") from None
    check_stem(filled, "--name")
    return filled


def _make_room(files: Sequence[Path], read: Sequence[str], *, force: bool) -> None:
    """Make the folder; refuse names that are taken, or the same for two parts."""
    if len({str(file).casefold() for file in files}) < len(files):
        raise ConfigError("--name gives two parts the same name; add $SCENE_NUMBER")
    protect_sources(files, read)
    for file in files:
        with writing(file):
            if file.exists() and not force:
                raise ConfigError(f"{printable(str(file))} already exists; write elsewhere, or add --force")
            file.parent.mkdir(parents=True, exist_ok=True)
