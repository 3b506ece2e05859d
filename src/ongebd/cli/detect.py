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
from ongebd.cli.standard_streams import ClosedOutput
from ongebd.errors import ConfigError, OngebdError
from ongebd.output import (
    LineSink,
    RunEnd,
    RunHeader,
    Sink,
    Tee,
    check_formats,
    check_stem,
    open_sinks,
    output_paths,
    output_stems,
    spare_sources,
)
from ongebd.output.factory import TEXT_FORMATS
from ongebd.streaming import Seen, SourceRun, StreamConfig, load
from ongebd.streaming.cpu_runtime import as_asked, asked_runtime
from ongebd.streaming.models import DEFAULT_MODEL
from ongebd.text.naming import spoken_name
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
    runtime: str | None = None,
    precision: str | None = None,
    quiet: Annotated[bool, Parameter(alias="-q", negative=())] = False,
) -> int:
    """Find the event boundaries of videos, as they stream.

    Without --out each boundary is printed as a line when it is found: its centre, its onset (the first frame
    that fired), the time at which it was known, and its score. With --out the results of VIDEO.mp4 stand in
    DIR/VIDEO.jsonl and so on, written as they are found.

    A file that cannot be read is named in one line; the others go on. Exit status: 0, or 2 if a source was
    refused or broke off (a network that failed, say: what was found until then is kept, and its end record
    says "complete": false), or 130 after Ctrl-C (what was found so far is on disk).

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
        Name of the result files without ending, for a single source. Needs --out.
    model
        Which method, or the folder of a trained model; they are listed by: ongebd models.
    config
        Settings of the stream.
    stream
        Which video stream of a file with several, from 0; cover art is not counted.
    source_fps
        Frames a second of a source without timestamps (raw H.264); --fps is taken where this is not given.
    runtime
        What runs the networks: onnxruntime, or openvino (an extra). [the model's own]
    precision
        In what they compute: float32, or with openvino bfloat16, where the processor has it. bfloat16 moves
        some boundaries: of the default models' one in ten. [float32]
    quiet
        No progress, no summary; warnings and errors only.
    """
    check_sources(sources, "detect")
    formats = _formats(format, plot=plot, to_files=out is not None)
    if out is None and formats and len(sources) > 1:
        raise ConfigError(
            f"--format {formats[0]} to standard output takes one source; give --out DIR for more"
        )
    if out is None and isinstance(sys.stdout, ClosedOutput):
        raise ConfigError("standard output is closed, where the results would go; give --out DIR")
    if stem is not None:
        check_stem(stem)
        if out is None:
            raise ConfigError("--stem names the files in a folder: give --out DIR")
        if len(sources) > 1:
            raise ConfigError("--stem names the results of one source; leave it out for several")
    loaded = load(model)
    settings = loaded.configured(config)
    stems = [stem] if stem is not None else output_stems(sources)
    if out is not None:
        spare_sources([path for name in stems for path in output_paths(formats, out, name)], sources)

    loaded = as_asked(loaded, runtime, precision)

    refused: list[str] = []
    with Progress(len(sources), quiet=quiet) as progress:
        for source, name in zip(sources, stems, strict=True):
            try:
                # What the user left open stays open: a source without timestamps is timed by --fps if given.
                run = SourceRun(source, loaded, config, stream=stream, source_fps=source_fps)
                header = RunHeader(
                    source,
                    loaded.name,
                    asdict(settings),
                    run.video.width,
                    run.video.height,
                    __version__,
                    *asked_runtime(runtime, precision),
                )
                results = _Results(out, name, formats, header, many=len(sources) > 1)
                with run:
                    _follow(run, results, progress, source)
                if run.video.broken is not None:
                    refused.append(source)
            except OngebdError as problem:
                refused.append(source)
                progress.say(f"ongebd: {problem}")
    if len(sources) > 1 and refused:
        names = ", ".join(spoken_name(source) for source in refused)
        progress.say(f"ongebd: {len(refused)} of {len(sources)} sources failed: {names}")
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


class _Results:
    """The sinks of one source, opened when there is something to write: a refused source leaves no file."""

    def __init__(
        self, out: Path | None, stem: str, formats: list[str], header: RunHeader, *, many: bool
    ) -> None:
        self._out, self._stem, self._formats, self._header, self._many = out, stem, formats, header, many
        self._tee: Tee | None = None

    @property
    def opened(self) -> Tee:
        """The sinks."""
        if self._tee is None:
            self._tee = Tee(self._sinks())
        return self._tee

    @property
    def is_open(self) -> bool:
        """Whether there are files."""
        return self._tee is not None

    def lacking(self) -> list[Path]:
        """Files that are not there, though the sinks were closed."""
        paths = [] if self._out is None else output_paths(self._formats, self._out, self._stem)
        return [path for path in paths if not path.exists()]

    def _sinks(self) -> list[Sink]:
        if self._out is not None:
            return open_sinks(self._formats, self._out, self._stem, self._header)
        if self._formats:
            return [TEXT_FORMATS[self._formats[0]](sys.stdout, self._header)]
        return [LineSink(sys.stdout, prefix=f"{self._stem}  " if self._many else "")]


def _follow(run: SourceRun, results: _Results, progress: Progress, source: str) -> None:
    """Run one source to its end, or to Ctrl-C; either way the results are finished."""
    frames = boundaries = 0
    complete = stopped = False
    try:
        with closing(iter(run)) as events:
            progress.begin(source, run.video.expected_duration)
            for event in events:
                match event:
                    case Seen(frame, decision):
                        frames += 1
                        results.opened.decision(frame, decision)
                        progress.advance(decision.time)
                    case Boundary():
                        boundaries += 1
                        results.opened.boundary(event)
                        progress.found(boundaries)
                    case Epoch():
                        results.opened.epoch(event)
        complete = run.video.broken is None
    except KeyboardInterrupt:
        stopped = True
        raise
    finally:
        # Of a source that was refused before its first frame nothing is left behind.
        if complete or stopped or results.is_open:
            while not complete and (last := run.detector.flush()) is not None:
                boundaries += 1
                results.opened.boundary(last)
            end = RunEnd(complete, float(run.video.duration), frames, boundaries, run.video.warnings)
            _close(results, end, progress, source)
            progress.end(source, end)
        else:
            progress.drop()


def _close(results: _Results, end: RunEnd, progress: Progress, source: str) -> None:
    try:
        results.opened.close(end)
    except KeyboardInterrupt:
        for path in results.lacking():
            progress.say(f"ongebd: {spoken_name(source)}: stopped before {path} was made")
        raise
