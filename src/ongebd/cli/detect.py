"""`ongebd detect`: the boundaries of videos, written as they are found."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ongebd import __version__
from ongebd.cli.cluster_option import ClusterOption
from ongebd.cli.progress import Progress
from ongebd.cli.sources import Listed, Sources, check_sources, with_listed
from ongebd.cli.standard_streams import ClosedOutput
from ongebd.common.text import spoken_name
from ongebd.detector import SourceRun, StreamConfig, load
from ongebd.detector.models import DEFAULT_MODEL
from ongebd.detector.openvino import as_asked, asked_runtime
from ongebd.errors import ConfigError, OngebdError
from ongebd.output import (
    LineSink,
    RunHeader,
    Sink,
    check_formats,
    check_stem,
    open_sinks,
    output_paths,
    output_stems,
    spare_sources,
)
from ongebd.output.factory import TEXT_FORMATS
from ongebd.output.follow import Results, follow

if TYPE_CHECKING:
    from ongebd.cluster import DetectTask


def detect(
    sources: Sources | None = None,
    /,
    *,
    listed: Listed = None,
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
    device: str | None = None,
    where: Annotated[ClusterOption | None, Parameter(name="*")] = None,
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
    listed
        File with more of them, one a line.
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
    device
        Where a trained model computes, with PyTorch: cpu, cuda or cuda:N.
    where
        Where the work is done. Results of a cluster go to --out; what is there already is not done again.
    quiet
        No progress, no summary; warnings and errors only.
    """
    sources = with_listed(sources, listed)
    check_sources(sources, "detect")
    where = where or ClusterOption()
    where.check(sources, device)
    formats = _formats(format, plot=plot, to_files=out is not None)
    _check_places(out, formats, stem, many=len(sources) > 1)
    if where.cluster is not None and out is None:
        raise ConfigError("--cluster writes files: give --out DIR")
    loaded = load(model, device=device if where.cluster is None else None)
    settings = loaded.configured(config)
    stems = [stem] if stem is not None else output_stems(sources)
    if out is not None:
        spare_sources([path for name in stems for path in output_paths(formats, out, name)], sources)

    loaded = as_asked(loaded, runtime, precision)
    if where.cluster is not None and out is not None:
        from ongebd.cluster import DetectTask

        task = DetectTask(
            model=model,
            formats=tuple(formats),
            identity=loaded.backbone.identity,
            config=config,
            device=device,
            stream=stream,
            source_fps=source_fps,
            runtime=runtime,
            precision=precision,
        )
        return _on_cluster(where, sources, stems, out, task, quiet=quiet)

    refused: list[str] = []
    with Progress(len(sources), quiet=quiet) as progress:
        for source, name in zip(sources, stems, strict=True):
            progress.next_source()
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
                results = Results(
                    partial(_sinks, out, name, formats, header, many=len(sources) > 1),
                    [] if out is None else output_paths(formats, out, name),
                )
                with run:
                    follow(run, results, progress, source)
                if run.video.broken is not None:
                    refused.append(source)
            except OngebdError as problem:
                refused.append(source)
                progress.say(f"ongebd: {problem}")
    if len(sources) > 1 and refused:
        names = ", ".join(spoken_name(source) for source in refused)
        progress.say(f"ongebd: {len(refused)} of {len(sources)} sources failed: {names}")
    return 2 if refused else 0


def _check_places(out: Path | None, formats: list[str], stem: str | None, *, many: bool) -> None:
    """Refuse what cannot be written where it is asked for.

    Raises:
        ConfigError: It says what.
    """
    if out is None and formats and many:
        raise ConfigError(
            f"--format {formats[0]} to standard output takes one source; give --out DIR for more"
        )
    if out is None and isinstance(sys.stdout, ClosedOutput):
        raise ConfigError("standard output is closed, where the results would go; give --out DIR")
    if stem is not None:
        check_stem(stem)
        if out is None:
            raise ConfigError("--stem names the files in a folder: give --out DIR")
        if many:
            raise ConfigError("--stem names the results of one source; leave it out for several")


def _on_cluster(
    where: ClusterOption, sources: list[str], stems: list[str], out: Path, task: DetectTask, *, quiet: bool
) -> int:
    """The same, with the videos read elsewhere; the exit status."""
    from ongebd.cli.cluster_progress import DetectProgress
    from ongebd.cluster import Detected, Refused, detect_on, jobs_of

    jobs = jobs_of(sources, stems, out, task)
    there = sum(job.done is not None for job in jobs)
    with (
        where.connected(needed=there < len(jobs), quiet=quiet) as cluster,
        DetectProgress(len(jobs) - there, there, out, quiet=quiet) as progress,
        closing(detect_on(jobs, out, task, cluster)) as events,
    ):
        for event in events:
            match event:
                case Detected():
                    progress.detected(event)
                case Refused():
                    progress.refused(event)
        progress.complete = True
    return 2 if progress.failures else 0


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


def _sinks(out: Path | None, name: str, formats: list[str], header: RunHeader, *, many: bool) -> list[Sink]:
    if out is not None:
        return open_sinks(formats, out, name, header)
    if formats:
        return [TEXT_FORMATS[formats[0]](sys.stdout, header)]
    return [LineSink(sys.stdout, prefix=f"{name}  " if many else "")]
