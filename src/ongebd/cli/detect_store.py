"""`ongebd detect --store`: the boundaries of stored features, in several processes."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from ongebd import __version__
from ongebd.cli.terminal import Progress, counted, span
from ongebd.common.processes import side_by_side
from ongebd.detector import Model, StreamConfig
from ongebd.detector.segments import Selection, selected
from ongebd.detector.stored import check_rate, detect_stored, load_for
from ongebd.errors import ConfigError, FeatureError
from ongebd.features.store import FeatureStore
from ongebd.output import FORMATS, Reading, RunEnd, RunHeader, open_writers, output_stems
from ongebd.output.files import close_all
from ongebd.types import Boundary

_TOGETHER = 8  # videos of one task
_FEW = 20_000  # frames that are done before other processes have started

Found = list[Boundary] | str
"""The boundaries of a video, or why there are none."""


def detect_store(
    path: Path,
    name: str,
    config: StreamConfig | None,
    out: Path | None,
    formats: list[str],
    device: str,
    workers: int | None,
    wanted: Selection | None,
    *,
    force: bool,
    quiet: bool,
) -> int:
    """Write the boundaries of all videos of a store; returns the exit status."""
    if out is None:
        raise ConfigError("--store needs --out DIR for its files")
    if pictures := [name for name in formats if FORMATS[name].how == "pictures"]:
        raise ConfigError(f"--format {pictures[0]} shows pictures, which a store doesn't have")
    if device.startswith("openvino"):
        raise ConfigError(f"--device {device} is for videos; with --store use cpu or cuda")
    count = (os.cpu_count() or 1) if workers is None else workers
    if count < 1:
        raise ConfigError(f"--workers must be at least 1, not {count}")
    store = FeatureStore.open(path)
    model = load_for(store, name, device)
    settings = model.configured(config)
    about = Reading(version=__version__, wanted=wanted).described(settings)
    check_rate(store, model, settings)
    ids = store.ids()
    if not ids:
        raise ConfigError(f"{path}: has no video yet; fill it with: ongebd extract … --out {path}")
    stems = output_stems([f"{video_id}.features" for video_id in ids])
    frames = [len(store[video_id]) for video_id in ids]
    if device != "cpu" or sum(frames) < _FEW:
        count = 1
    done = boundaries = failed = 0
    with (
        Progress(quiet=quiet, lines=True) as progress,
        closing(_found(store, model, settings, ids, count)) as results,
    ):
        for number, found in enumerate(results):
            if isinstance(found, str):
                failed += 1
                progress.say(f"ongebd: {ids[number]}: {found}")
            else:
                video, all_found = store[ids[number]], None
                header = RunHeader(video.source, model.name, about, 0, 0, __version__, id=video.id)
                writers = open_writers(formats, out, stems[number], header, force=force)
                if wanted is not None:
                    for writer in writers:
                        for boundary in found:
                            writer.found(boundary)
                    all_found, found = len(found), selected(found, 0.0, video.duration, wanted)
                for writer in writers:
                    for boundary in found:
                        writer.boundary(boundary)
                boundaries += len(found)
                close_all(writers, RunEnd(True, video.duration, frames[number], len(found), found=all_found))
            done += frames[number]
            left = span(progress.seconds / max(done, 1) * (sum(frames) - done))
            now = f"{number + 1}/{len(ids)} videos  {done / progress.seconds:.0f} frames/s  about {left} left"
            progress.show("scoring", done, sum(frames), now)
        progress.summary(
            f"{counted(boundaries, 'boundary')} in {counted(len(ids) - failed, 'video')}, into {out} in"
            f" {span(progress.seconds)}{f'; {failed} failed' if failed else ''}"
        )
    return 2 if failed else 0


def _found(
    store: FeatureStore, model: Model, settings: StreamConfig, ids: Sequence[str], workers: int
) -> Generator[Found, None, None]:
    """The result of each video, in order."""
    tasks = [ids[first : first + _TOGETHER] for first in range(0, len(ids), _TOGETHER)]
    with closing(side_by_side(partial(_together, store, model, settings), tasks, workers)) as results:
        for each in results:
            yield from each


def _together(store: FeatureStore, model: Model, settings: StreamConfig, ids: Sequence[str]) -> list[Found]:
    """The results of some videos."""
    found: list[Found] = []
    for video_id in ids:
        try:
            found.append(detect_stored(store[video_id], model, settings)[0])
        except FeatureError as problem:
            found.append(str(problem))
    return found
