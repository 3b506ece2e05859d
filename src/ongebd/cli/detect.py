"""`ongebd detect`: the boundaries of videos, written as they are found."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ongebd import __version__
from ongebd.cli.progress import Progress
from ongebd.cli.sources import Sources, check_sources
from ongebd.errors import ConfigError, OngebdError
from ongebd.output import (
    LineSink,
    RunEnd,
    RunHeader,
    Sink,
    Tee,
    check_formats,
    open_sinks,
    output_stems,
)
from ongebd.output.factory import TEXT_FORMATS
from ongebd.streaming import Seen, SourceRun, StreamConfig, load
from ongebd.streaming.models import DEFAULT_MODEL
from ongebd.types import Boundary, Epoch


def detect(
    sources: Sources,
    /,
    *,
    out: Annotated[Path | None, Parameter(alias="-o")] = None,
    format: Annotated[str | None, Parameter(alias="-f")] = None,  # noqa: A002
    plot: Annotated[bool, Parameter(negative=())] = False,
    stem: str | None = None,
    model: Annotated[str, Parameter(alias="-m")] = DEFAULT_MODEL,
    config: Annotated[StreamConfig | None, Parameter(name="*")] = None,
    stream: int | None = None,
    source_fps: float | None = None,
    quiet: Annotated[bool, Parameter(alias="-q", negative=())] = False,
) -> int:
    """Find the event boundaries of videos, as they stream.

    Without --out each boundary is printed as a line when it is found: its centre, its onset (the first frame
    that fired), the time at which it was known, and its score. With --out the results of VIDEO.mp4 stand in
    DIR/VIDEO.jsonl and so on, written as they are found.

    A file that cannot be read is named in one line; the others go on. Exit status: 0, or 2 if a source was
    refused, or 130 after Ctrl-C (what was found so far is on disk).

    Parameters
    ----------
    sources
        Files, URLs (http, rtsp, …), camera:N, or - for standard input. After -- a name may begin with -.
    out
        Folder for the results; made if it is not there.
    format
        Comma-separated: jsonl, csv, vtt (chapters), png. With --out: jsonl if not given. Without --out: one
        of jsonl, csv, vtt, to standard output.
    plot
        Also draw DIR/VIDEO.png: error curve, threshold, boundaries, thumbnails. Needs --out.
    stem
        Name of the result files without ending, for a single source.
    model
        Which model: window-mean or persistence.
    config
        Settings of the stream.
    stream
        Which video stream of a file with several, from 0; cover art is not counted.
    source_fps
        Frames a second of a source without timestamps (raw H.264); --fps is taken where this is not given.
    quiet
        No progress, no summary; warnings and errors only.
    """
    check_sources(sources)
    formats = _formats(format, plot=plot, to_files=out is not None)
    if out is None and formats and len(sources) > 1:
        raise ConfigError(
            f"--format {formats[0]} to standard output takes one source; give --out DIR for more"
        )
    if stem is not None and len(sources) > 1:
        raise ConfigError("--stem names the results of one source; leave it out for several")
    loaded = load(model)
    settings = loaded.configured(config)
    stems = [stem] if stem is not None else output_stems(sources)

    refused: list[str] = []
    with Progress(len(sources), quiet=quiet) as progress:
        for source, name in zip(sources, stems, strict=True):
            try:
                # What the user left open stays open: a source without timestamps is timed by --fps if given.
                run = SourceRun(source, loaded, config, stream=stream, source_fps=source_fps)
                header = RunHeader(
                    source, loaded.name, asdict(settings), run.video.width, run.video.height, __version__
                )
                with run:
                    sink = _open_sink(out, name, formats, header, many=len(sources) > 1)
                    _follow(run, sink, progress, source)
            except OngebdError as problem:
                refused.append(source)
                progress.say(f"ongebd: {problem}")
    if len(sources) > 1 and refused:
        progress.say(f"ongebd: {len(refused)} of {len(sources)} sources failed: {', '.join(refused)}")
    return 2 if refused else 0


def _formats(text: str | None, *, plot: bool, to_files: bool) -> list[str]:
    """The formats to write; none means lines for people."""
    names = [name.strip() for name in text.split(",") if name.strip()] if text is not None else []
    if text is not None and not names:
        raise ConfigError("--format is empty; give some of jsonl, csv, vtt, png")
    if to_files:
        return check_formats([*(names or ["jsonl"]), *(["png"] if plot else [])])
    if plot or "png" in names:
        raise ConfigError("a picture needs a folder: give --out DIR")
    if len(names) > 1:
        raise ConfigError("several formats need a folder: give --out DIR")
    return check_formats(names)


def _open_sink(out: Path | None, stem: str, formats: list[str], header: RunHeader, *, many: bool) -> Tee:
    sinks: list[Sink]
    if out is not None:
        sinks = open_sinks(formats, out, stem, header)
    elif formats:
        sinks = [TEXT_FORMATS[formats[0]](sys.stdout, header)]
    else:
        sinks = [LineSink(sys.stdout, prefix=f"{stem}  " if many else "")]
    return Tee(sinks)


def _follow(run: SourceRun, sink: Tee, progress: Progress, source: str) -> None:
    """Run one source to its end, or to Ctrl-C; either way the results are finished."""
    frames = boundaries = 0
    complete = False
    try:
        with closing(iter(run)) as events:
            progress.begin(source, run.video.expected_duration)
            for event in events:
                match event:
                    case Seen(frame, decision):
                        frames += 1
                        sink.decision(frame, decision)
                        progress.advance(decision.time)
                    case Boundary():
                        boundaries += 1
                        sink.boundary(event)
                        progress.found(boundaries)
                    case Epoch():
                        sink.epoch(event)
        complete = True
    finally:
        while not complete and (last := run.detector.flush()) is not None:
            boundaries += 1
            sink.boundary(last)
        end = RunEnd(complete, float(run.video.duration), frames, boundaries, run.video.warnings)
        sink.close(end)
        progress.end(source, end)
