"""`ongebd detect`: the boundaries of videos, written as they are found."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ongebd import __version__
from ongebd.cli.options import (
    AccessOption,
    ClusterOption,
    Force,
    Listed,
    ModelName,
    PartOption,
    Quiet,
    SourceFps,
    Sources,
    WhichStream,
    Whole,
    checked_sources,
)
from ongebd.cli.terminal import ClosedOutput, Progress, Videos, counted, span
from ongebd.common.text import spoken_name
from ongebd.detector import Model, StreamConfig, load
from ongebd.detector.models import DEFAULT_MODEL
from ongebd.detector.segments import Selection
from ongebd.errors import ConfigError, OngebdError
from ongebd.output import (
    LineWriter,
    Reading,
    RunEnd,
    RunHeader,
    Writer,
    check_formats,
    check_stem,
    detect_source,
    open_writers,
    output_paths,
    output_stems,
    protect_sources,
)
from ongebd.output.files import writer_of

if TYPE_CHECKING:
    from ongebd.cluster.detect import DetectTask


def detect(
    sources: Sources | None = None,
    /,
    *,
    listed: Listed = None,
    store: Path | None = None,
    out: Annotated[Path | None, Parameter(alias="-o")] = None,
    format: Annotated[str | None, Parameter(alias="-f")] = None,  # noqa: A002
    plot: Annotated[bool, Parameter(negative=())] = False,
    stem: str | None = None,
    model: ModelName = DEFAULT_MODEL,
    config: Annotated[StreamConfig | None, Whole] = None,
    wanted: Annotated[Selection | None, Whole] = None,
    part: Annotated[PartOption | None, Whole] = None,
    stream: WhichStream = None,
    source_fps: SourceFps = None,
    device: str = "cpu",
    access: Annotated[AccessOption | None, Whole] = None,
    where: Annotated[ClusterOption | None, Whole] = None,
    quiet: Quiet = False,
    force: Force = False,
) -> int:
    """Find the event boundaries of videos, as they stream.

    Without --out, each boundary is printed when it is found, with its centre and score. If they differ, its
    onset (the first frame that fired) and the time of the decision are printed too. With --out, the results
    of VIDEO.mp4 go to DIR/VIDEO.jsonl and so on while they are found.

    With --chapters, --min-length or --max-per-minute, the boundaries of a file come at its end, because only
    then is the choice known. Those of a pipe, a camera or a live URL come at once.

    A file that can't be read is reported in one line; the others go on.

    Parameters
    ----------
    sources
        Files, folders (with subfolders; a folder of pictures is one video), URLs (http, rtsp, …), camera:N,
        or - for standard input. Names that begin with - go after --.
    listed
        File with more sources, one per line.
    store
        Instead of sources: a store of `ongebd extract`, so that no video is decoded again. Needs --out.
        --workers N uses N processes. [one per processor]
    out
        Folder for the results.
    format
        One or more, with commas between: jsonl, csv, html, vtt, srt, ffmetadata, youtube, scenes, edl, otio,
        fcpxml, fcp7, qp, elan, labelstudio, fiftyone, json, gebd, gebd-json, png (see docs/formats.md). The
        default with --out is jsonl. Without --out, one text format goes to standard output.
    plot
        Draw DIR/VIDEO.png with score, threshold, boundaries and pictures. Needs --out.
    stem
        Name of the result files, without ending. For a single source; needs --out.
    device
        Where networks run: cpu; cuda or cuda:N (many files in parallel); openvino or openvino:bfloat16 (an
        extra; both move one in ten boundaries of the default model).
    """
    where = where or ClusterOption()
    if store is not None:
        from ongebd.cli.detect_store import detect_store

        used = {
            "a source": sources,
            "--list": listed,
            "--stem": stem,
            "--stream": stream,
            "--source-fps": source_fps,
            "--cluster": where.cluster,
            "--verbose": where.verbose or None,
            "--plot": plot or None,
            "what is for sources": access,
            "what selects a part": part,
        }
        for name, value in used.items():
            if value is not None:
                raise ConfigError(f"--store reads features, not videos: drop {name}")
        formats = _formats(format, plot=False, to_files=True)
        return detect_store(
            store, model, config, out, formats, device, where.workers, wanted, force=force, quiet=quiet
        )
    sources = checked_sources("detect", sources, listed)
    on_gpu = device.partition(":")[0] == "cuda" and where.cluster is None
    where.check(sources, device, workers_here=on_gpu)
    many = len(sources) > 1
    if on_gpu and many and "-" in sources:
        raise ConfigError("--device cuda can't read - together with other sources; give - alone")
    formats = _formats(format, plot=plot, to_files=out is not None)
    _check_places(out, formats, stem, many=many)
    if where.cluster is not None and out is None:
        raise ConfigError("--cluster needs --out DIR for its files")
    if model[:1].isdigit() and not Path(model).exists():
        raise ConfigError(f"unknown model {model}; -m means --model: did you mean --min-length {model}?")
    here = where.cluster is None or device.startswith("openvino")
    if on_gpu:
        from ongebd.cli.detect_gpu import detect_on_gpu, load_for_gpu

        loaded, on_gpu = load_for_gpu(model, device)
    else:
        loaded = load(model, device=device if here else "cpu")
    settings = loaded.configured(config)
    if source_fps is None and config is not None:  # --fps also times a source without timestamps
        source_fps = config.fps
    stems = [stem] if stem is not None else output_stems(sources)
    paths = [[] if out is None else output_paths(formats, out, name) for name in stems]
    protect_sources([path for some in paths for path in some], sources)
    reading = Reading(
        version=__version__,
        settings=settings,
        stream=stream,
        source_fps=source_fps,
        device=device,
        wanted=wanted,
        **asdict(part or PartOption()),
        **asdict(access or AccessOption()),
    )
    reading.part  # noqa: B018 - refused before any work
    if where.cluster is not None and out is not None:
        from ongebd.cluster.detect import DetectTask

        task = DetectTask(
            model=model, formats=tuple(formats), identity=loaded.backbone.identity, reading=reading
        )
        return _on_cluster(where, sources, stems, out, task, force=force, quiet=quiet)

    tasks, shown = [], []
    spoken = [spoken_name(source) for source in sources]
    for number, (source, name, files) in enumerate(zip(sources, stems, paths, strict=True), 1):
        label = f"{number}/{len(sources)}  " if many else ""
        unique = spoken.count(spoken[number - 1]) == 1  # else what tells them apart is hidden
        shown.append(spoken[number - 1] if unique else f"{spoken[number - 1]} ({name})")
        results = partial(_open, out, name, formats, many, force)
        tasks.append(partial(_detect_one, source, reading, results, files, label, shown[-1]))
    with Progress(quiet=quiet) as progress:
        if on_gpu:
            whole = detect_on_gpu(tasks, loaded, settings, device, where.workers, quiet)
        else:
            whole = [task(loaded, progress) for task in tasks]
    failed = [name for name, read in zip(shown, whole, strict=True) if not read]
    if many and failed:
        names = ", ".join(failed[:10]) + (", …" if len(failed) > 10 else "")
        progress.say(f"ongebd: {len(failed)} of {len(sources)} sources failed: {names}")
    return 2 if failed else 0


def _detect_one(
    source: str,
    reading: Reading,
    results: Callable[[RunHeader], list[Writer]],
    files: list[Path],
    label: str,
    name: str,
    model: Model,
    progress: Progress,
) -> bool:
    """Find the boundaries of one source; returns whether it was read to its end."""

    def show(seconds: float, expected: float | None, boundaries: int) -> None:
        now = f"{seconds:.1f} s  {counted(boundaries, 'boundary')}"
        progress.show(label + name, seconds, expected, now)

    def ended(end: RunEnd) -> None:
        for warning in dict.fromkeys(end.warnings):
            progress.say(f"ongebd: {name}: {warning}")
        stopped = "" if end.complete else ", stopped early"
        of = "" if end.found is None else f" of the {end.found} found"
        seconds = max(0.0, end.duration - float(reading.part[0]))
        progress.summary(
            f"{name}: {counted(end.boundaries, 'boundary')}{of} in {seconds:.3f} s of video"
            f" ({seconds / progress.seconds:.1f} × real time{stopped})"
        )

    progress.restart()
    try:
        return detect_source(source, model, reading, results, show, ended) is None
    except OngebdError as problem:
        progress.say(f"ongebd: {str(problem).replace(spoken_name(source), name, 1)}")
        return False
    except KeyboardInterrupt:
        for path in files:
            if not path.exists():
                progress.say(f"ongebd: {name}: stopped before {path} was written")
        raise


def _formats(text: str | None, *, plot: bool, to_files: bool) -> list[str]:
    """The formats to write; none means lines for people."""
    names = [name.strip() for name in text.split(",") if name.strip()] if text is not None else []
    if text is not None and not names:
        raise ConfigError("--format is empty; name one, such as csv")
    if to_files:
        return check_formats([*(names or ["jsonl"]), *(["png"] if plot else [])])
    if plot or len(names) > 1 or {"png", "gebd"}.intersection(names):
        raise ConfigError("a picture, a pickle or several formats need a folder; add --out DIR")
    return check_formats(names)


def _check_places(out: Path | None, formats: list[str], stem: str | None, *, many: bool) -> None:
    """Refuse results that have no place to go to."""
    if out is None and formats and many:
        raise ConfigError(
            f"--format {formats[0]} on standard output works with one source only; add --out DIR"
        )
    if out is None and isinstance(sys.stdout, ClosedOutput):
        raise ConfigError("standard output is closed; add --out DIR for the results")
    if stem is not None:
        check_stem(stem)
        if out is None:
            raise ConfigError("--stem needs --out DIR, the folder of the files")
        if many:
            raise ConfigError("--stem works with one source only; drop it")


def _open(
    out: Path | None, name: str, formats: list[str], many: bool, force: bool, header: RunHeader
) -> list[Writer]:
    if out is not None:
        return open_writers(formats, out, name, header, force=force)
    if formats:
        return [writer_of(formats[0])(sys.stdout, header)]
    return [LineWriter(sys.stdout, prefix=f"{name}  " if many else "")]


def _on_cluster(
    where: ClusterOption,
    sources: list[str],
    stems: list[str],
    out: Path,
    task: DetectTask,
    *,
    force: bool,
    quiet: bool,
) -> int:
    """The same on a cluster; returns the exit status."""
    from ongebd.cluster.detect import detect_on, jobs_of

    jobs = jobs_of(sources, stems, out, task, force=force)
    there = sum(job.done is not None for job in jobs)
    todo = len(jobs) - there
    boundaries, seconds = 0, 0.0
    with (
        where.connected(needed=todo > 0, quiet=quiet) as cluster,
        Progress(quiet=quiet, lines=True) as progress,
        closing(detect_on(jobs, out, task, cluster)) as events,
    ):
        videos = Videos(progress, "detecting", todo, there, out / "manifest.jsonl")

        def summary() -> str:
            found = f"{counted(boundaries, 'boundary')} in {counted(videos.done, 'video')}"
            return f"{found} ({seconds:.0f} s of video), into {out} in {span(progress.seconds)}"

        with videos.summed_up(summary):
            for event in events:
                videos.add(event.failed)
                if event.failed is None and event.end is not None:
                    boundaries += event.end.boundaries
                    seconds += event.end.duration
                    for warning in event.end.warnings:
                        progress.say(f"ongebd: {event.source}: {warning}")
                videos.show()
    return 2 if videos.failed else 0
