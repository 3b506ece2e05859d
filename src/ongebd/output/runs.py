"""Reads what other commands found, and what people labelled, as runs that any format can be made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from ongebd.common.text import printable, public_name, shortened
from ongebd.data.files import number
from ongebd.data.label_set import VideoLabels
from ongebd.data.labels import read_labels
from ongebd.errors import ConfigError, LabelError, os_errors
from ongebd.output.files import source_stem
from ongebd.output.formats import FORMATS
from ongebd.output.jsonl import Recording, read_jsonl
from ongebd.output.writer import RunEnd, RunHeader
from ongebd.types import Boundary
from ongebd.video import VideoReader
from ongebd.video.source import is_url, local_path
from ongebd.video.timing import exact_rate


def read_runs(source: Path, fps: Fraction | None = None, video: str | None = None) -> list[Recording]:
    """The runs in a file or folder of results or labels, one for each video and annotator; each has an end.

    With `video` only those of this one, and with what it says of itself; it may be the name of a stream, too.
    `fps` is for what doesn't say it.
    """
    runs: list[Recording] = []
    about: dict[str, Any] = {}
    with os_errors(source, "check the path", LabelError):
        files = sorted(source.glob("*.jsonl")) if source.is_dir() else [source]
    if files and files[0].suffix.lower() == ".jsonl":
        runs = [_checked(run, str(file)) for file in files for run in _streams_of(file)]
        if named := [run for run in runs if run.header.id and run.header.id == video]:
            runs, video = named, None
    if video is not None:
        with VideoReader(video) as reader:
            about = {"source": video, "width": reader.width, "height": reader.height}
            fps = fps or reader.rate
    if not runs:
        runs = [run for one in read_labels(source, fps=fps).videos.values() for run in _runs_of(one)]
    if video is not None:
        runs = [run for run in runs if name_of(run) == source_stem(video)] or runs
    for run in runs:
        rate = run.header.rate or (None if fps is None else str(fps))
        run.header = replace(run.header, rate=rate, **about)
    return runs


def name_of(run: Recording) -> str:
    """The id of a run's video."""
    return run.header.id or source_stem(run.header.source)


def address_of(run: Recording) -> str:
    """The URL of a source, without credentials. A file that isn't there is said."""
    source = run.header.source
    if is_url(source):
        return public_name(source)
    path = Path(local_path(source)).absolute()
    if not path.exists():
        run.warnings.append(f"the result's video {path} is missing; name it with `ongebd convert --video`")
    return path.as_uri()


def only(runs: Sequence[Recording], source: Path) -> Recording:
    """The run of the only video, by the annotator who agrees best with the others, or else the first."""
    if (count := len({name_of(run) for run in runs})) > 1:
        some = ", ".join(key for key, one in FORMATS.items() if one.many)
        names = ", ".join(dict.fromkeys(name_of(run) for run in runs))
        one = f"--video with one of {shortened(printable(names), 80)}, or a format that takes all: {some}"
        raise ConfigError(f"{source} has {count} videos; choose one: add {one}")
    return max(runs, key=lambda run: run.header.settings.get("consistency") or 0)


def check_clock(run: Recording) -> None:
    """Raise a ConfigError if times don't say where in the file something is."""
    if run.epochs:
        at = f"its clock breaks at {run.epochs[0].time:.3f} s, so times don't say where to cut"
        raise ConfigError(f"{name_of(run)}: {at}; repair it first (ffmpeg -i VIDEO -c copy FIXED.mkv)")


def _streams_of(file: Path) -> Iterator[Recording]:
    """The run of a file of results; of several streams, each one's."""
    whole = read_jsonl(file)
    for key, source in whole.streams.items() if len(whole.streams) > 1 else ():
        run = read_jsonl(file, key)
        run.header = replace(run.header, source=source, id=key)
        yield run
    if len(whole.streams) < 2:
        yield whole


def _checked(run: Recording, name: str) -> Recording:
    for time in (run.header.settings.get("start") or 0, *(one.time for one in run.boundaries)):
        number(time, f"{name}, time")
    length = number(run.duration, f"{name}, duration")
    run.end = replace(run.end or RunEnd(False, length, 0, 0), duration=length, warnings=[])
    return run


def _runs_of(labels: VideoLabels) -> Iterator[Recording]:
    """Each annotator's labels as a run of no version, which a person made."""
    agree = labels.annotator_consistency or (None,) * len(labels.boundaries)
    rate = None if labels.fps is None else str(exact_rate(labels.fps))
    for order, (times, consistency) in enumerate(zip(labels.boundaries, agree, strict=True), 1):
        settings = {} if consistency is None else {"consistency": consistency}
        header = RunHeader(labels.id, f"annotator {order}", settings, 0, 0, "", id=labels.id, rate=rate)
        found = [Boundary(time, time, time, 1.0) for time in sorted(times.tolist())]
        yield Recording(header, found, end=RunEnd(True, labels.duration, 0, len(found)))
