"""Runs one source into its result files."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from ongebd.common import MAX_PIXELS
from ongebd.common.text import HIDDEN, is_unique, printable, public_name, shortened, spoken_name
from ongebd.detector import Model, Seen, SourceRun, StreamConfig
from ongebd.detector.models import runtime_of
from ongebd.detector.segments import Choice, Selection
from ongebd.detector.source_run import Closed
from ongebd.errors import ConfigError, import_extra, uninterrupted
from ongebd.output.formats import FORMATS, Format, format_of
from ongebd.output.text import COLUMNS, SCENES, SegmentWriter
from ongebd.output.writer import Frames, RunEnd, RunHeader, Setting, Writer, mark, writing
from ongebd.types import Boundary, Epoch
from ongebd.video.source import local_path
from ongebd.video.stills import is_pattern
from ongebd.video.timing import part_of


def writer_of(name: str) -> Callable[[Any, RunHeader], Writer]:
    """What makes the writer of a format, of a target and a run's header."""
    form = FORMATS[name]
    if not form.write:
        return partial(SegmentWriter, name)
    maker: Callable[..., Any] = maker_of(form)
    if form.how == "live":
        return maker
    from ongebd.output.whole import WholeWriter  # here, because few runs need it

    return partial(WholeWriter, maker, pictures=form.how == "pictures")


def maker_of(form: Format) -> Any:
    """The class or function that writes a format; MissingExtraError if what it needs is not installed."""
    module, _, attribute = form.write.partition(":")
    return getattr(import_extra(f"ongebd.output.{module}", "plot"), attribute)


def check_formats(names: Sequence[str]) -> list[str]:
    """Return the formats without repetitions; raise a ConfigError for one that `detect` doesn't write."""
    known = [name for name, form in FORMATS.items() if form.how != "copy"]
    for name in names:
        if name not in known:
            raise ConfigError(f"unknown format {printable(name)!r}; choose from {', '.join(known)}")
        writer_of(name)
    return list(dict.fromkeys(names))


def output_paths(formats: Sequence[str], directory: str | Path, stem: str) -> list[Path]:
    """The files that `open_writers` writes: `DIRECTORY/STEM` with each format's ending."""
    return [Path(directory) / f"{stem}{FORMATS[name].suffix}" for name in formats]


def open_writers(
    formats: Sequence[str], directory: str | Path, stem: str, header: RunHeader, *, force: bool = False
) -> list[Writer]:
    """Open `DIRECTORY/STEM` with each format's ending; the folder is made if it does not exist.

    If one file can't be opened, none is: files of an earlier run stay as they are.

    Args:
        formats: Keys of `FORMATS`.
        directory: Where.
        stem: The files' name without ending.
        header: Of the run.
        force: Overwrite what isn't a result of this source too.

    Raises:
        ConfigError: An unknown format, a file that would overwrite the source or what isn't its result, or an
            unknown frame rate where frames are counted.
        OngebdError: A folder or a file can't be written.
    """
    names = check_formats(formats)
    folder = Path(directory)
    paths = output_paths(names, folder, stem)
    if any(FORMATS[name].frames for name in names):
        Frames(header)
    with writing(folder):
        protect_sources(paths, [header.source])
        folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as undo:
        for path in paths:
            with writing(path):
                new = not path.exists()
                if not force:
                    protect_others(path, header.source)
                path.open("ab").close()
            if new:
                undo.callback(path.unlink, missing_ok=True)
        writers = [writer_of(name)(path, header) for name, path in zip(names, paths, strict=True)]
        undo.pop_all()
    return writers


def protect_sources(paths: Sequence[Path], sources: Sequence[str], option: str = "--out") -> None:
    """Refuse to overwrite a source, whatever name, link or letter case it is called by.

    Args:
        paths: Files that will be written.
        sources: All sources of the run, also those that come later.
        option: The command-line option that the error message points to.

    Raises:
        ConfigError: One of the paths is one of the sources.
    """
    read = {}
    for source in sources:
        with contextlib.suppress(OSError, ValueError):  # a URL, or a file that does not exist
            status = os.fstat(sys.stdin.fileno()) if source == "-" else Path(local_path(source)).stat()
            read[status.st_dev, status.st_ino] = source
    for path in paths:
        try:
            status = path.stat()
        except (OSError, ValueError):  # does not exist yet
            continue
        own = read.get((status.st_dev, status.st_ino))
        if own is not None:
            what = "the source itself" if len(sources) == 1 else f"the source {spoken_name(own)}"
            raise ConfigError(
                f"{printable(str(path))} is {printable(what)} and would be overwritten; write elsewhere,"
                f" see {option}"
            )


def protect_others(path: Path, source: str) -> None:
    """Refuse to overwrite a file unless it is empty, or says that ongebd wrote it for this source.

    Raises:
        ConfigError: It is something else: made by hand, or the result of another source.
    """
    if path.exists() and path.stat().st_size and not _result_of(path, source):
        raise ConfigError(
            f"{printable(str(path))} already exists and may not be a result of"
            f" {printable(spoken_name(source))}; write elsewhere (--out, --stem), or add --force"
        )


def _result_of(path: Path, source: str) -> bool:
    """Whether a file says that it is the result of a source. A table can't: the JSONL beside it says it."""
    if not is_unique(public_name(source)):  # another source may have the same name
        return False
    names = {source}
    if source != "-" and "://" not in source:  # it may have been named from another folder
        relative = os.path.relpath(local_path(source))
        names |= {str(Path(local_path(source)).absolute()), relative, f"./{relative}"}
    with path.open("rb") as file:
        head = file.read(1 << 16)
    if path.suffix == ".jsonl":
        try:
            record = json.loads(head.partition(b"\n")[0])
        except (ValueError, RecursionError):
            return False
        known = isinstance(record, dict) and record.get("type") == "header" and record.get("source")
        return known in {public_name(name) for name in names}
    if any(mark(name).encode() in head for name in names):
        return True
    stem = path.name.removesuffix(FORMATS[format_of(path.name) or "csv"].suffix)
    beside = path.with_name(f"{stem}.jsonl")
    return any(text in head for text in _UNMARKED) and beside.is_file() and _result_of(beside, source)


_UNMARKED = (",".join(COLUMNS[:4]).encode(), SCENES.partition(",End")[0].encode(), b"Event 1\n", b" I -1\n")
"""What tables, SRT, YouTube's chapters and QP files hold, which can't say whose they are."""

_NOT_IN_FILE_NAMES = re.compile(r'[/\\:*?"<>|\x00-\x1f]+')
_LONGEST_STEM = 200  # bytes: leaves room for an ending and for a number


def output_stems(sources: Sequence[str]) -> list[str]:
    """Name the result files of each source, without ending; all names differ, even ignoring letter case.

    Example:
        >>> output_stems(["a/clip.mp4", "b/Clip.avi", "-", "rtsp://me:secret@host/cam/1?token=x"])
        ['clip', 'Clip-2', 'stdin', '1']
    """
    taken: set[str] = set()
    stems = []
    for source in sources:
        raw = os.fsencode(source_stem(source))
        stem = raw[:_LONGEST_STEM].decode("utf-8", "ignore") if len(raw) > _LONGEST_STEM else os.fsdecode(raw)
        unique, number = stem, 1
        while unique.casefold() in taken:
            number += 1
            unique = f"{stem}-{number}"
        taken.add(unique.casefold())
        stems.append(unique)
    return stems


def check_stem(stem: str, option: str = "--stem") -> None:
    """Raise a ConfigError if files in a folder can't have this name."""
    unfit = re.search(r"[/\\\x00-\x1f\x7f-\x9f]", stem) or stem in {".", ".."}
    if unfit or len(os.fsencode(stem)) > _LONGEST_STEM:
        raise ConfigError(
            f"{option} {printable(shortened(stem, 40))}: must be a plain name of at most {_LONGEST_STEM}"
            " bytes; --out sets the folder"
        )


def source_stem(source: str) -> str:
    """The name of a source without folder and ending."""
    if source == "-":
        return "stdin"
    if "://" in source:
        address = re.split(r"[?#]", public_name(source).replace(f"{HIDDEN}@", "").replace(HIDDEN, ""))[0]
        stem = _NOT_IN_FILE_NAMES.sub("_", PurePosixPath(address.rstrip("/")).stem)
    else:
        path = Path(source)
        many = "*" in path.name and is_pattern(source)
        stem = path.parent.absolute().name if many else path.stem
    return stem or "video"


Show = Callable[[float, float | None, int], object]
"""Takes the time of a frame, the expected duration (seconds, None if unknown), and the boundaries so far."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """How a source is read and judged.

    Attributes:
        version: Version of ongebd, for the header.
        settings: As `model.configured` gives them; None takes the model's own.
        stream: Which video stream of a source.
        source_fps: Frames per second of a source without timestamps.
        max_pixels: As in `SourceRun`; `private_network` too.
        device: Where the networks compute; see `ongebd.load`.
        workers: Frames that the backbone processes in parallel; None uses up to four processors.
        start: As in `ongebd.detect`; `end` and `duration` too.
        wanted: Which boundaries are wanted; None: all.
    """

    version: str
    settings: StreamConfig | None = None
    stream: int | None = None
    source_fps: float | None = None
    max_pixels: int = MAX_PIXELS
    private_network: bool = False
    device: str = "cpu"
    workers: int | None = None
    start: str | None = None
    end: str | None = None
    duration: str | None = None
    wanted: Selection | None = None

    @property
    def part(self) -> tuple[Fraction, Fraction | None]:
        """Where to begin and to end, in seconds; ConfigError if they aren't times."""
        return part_of(self.start, self.end, self.duration)

    def described(self, settings: StreamConfig) -> dict[str, Setting]:
        """What a header says of it: the settings of the stream, and what was asked for beside them."""
        start, end = self.part
        asked: dict[str, Setting] = {} if self.wanted is None else asdict(self.wanted)
        asked |= {"start": float(start) or None, "end": None if end is None else float(end)}
        return asdict(settings) | {name: value for name, value in asked.items() if value is not None}


def detect_source(
    source: str,
    model: Model,
    reading: Reading,
    open_writers: Callable[[RunHeader], Sequence[Writer]],
    show: Show,
    ended: Callable[[RunEnd], object],
) -> str | None:
    """Run one source to its end, or to Ctrl-C; either way the results are finished.

    Args:
        source: As the user named it.
        model: Whose boundaries.
        reading: How the source is read and judged.
        open_writers: Called when there is something to write, so a refused source leaves no file.
        show: Called at the start and after each frame.
        ended: Called when the results are finished; never for a source refused before its first frame.

    Returns:
        Why the source wasn't read to its end (it broke off, or is cut off), in one line; None if it was.

    Raises:
        OngebdError: Reading or writing failed. What was found until then is in the results.
    """
    settings = reading.settings or model.configured()
    start, end = reading.part
    run = SourceRun(
        source,
        model,
        settings,
        stream=reading.stream,
        source_fps=reading.source_fps,
        max_pixels=reading.max_pixels,
        private_network=reading.private_network,
        workers=reading.workers,
        start=start,
        end=end,
    )
    video, runtime = run.video, runtime_of(reading.device)
    about = reading.described(settings)
    header = RunHeader(source, model.name, about, video.width, video.height, reading.version, *runtime)
    header = replace(header, rate=None if video.rate is None else str(video.rate))
    writers: Sequence[Writer] = ()
    frames = boundaries = 0
    choice: Choice | None = None

    def write(chosen: Iterable[Boundary]) -> None:
        nonlocal boundaries
        for boundary in chosen:
            boundaries += 1
            for writer in writers:
                writer.boundary(boundary)

    def take(boundary: Boundary) -> None:
        if choice is None:
            return write([boundary])
        for writer in writers:
            writer.found(boundary)
        return write(choice.take(boundary))

    def close(boundary: Boundary) -> None:
        if choice is None or choice.closes(boundary):
            for writer in writers:
                writer.closed(boundary)

    complete = stopped = False
    with run:
        if reading.wanted is not None:
            choice = Choice(reading.wanted, float(start), None if video.is_file else video.name)
        try:
            with contextlib.closing(iter(run)) as events:
                show(0.0, video.expected_duration, 0)
                for event in events:
                    with uninterrupted():
                        writers = writers or open_writers(header)
                        match event:
                            case Seen(frame, decision):
                                frames += 1
                                for writer in writers:
                                    writer.decision(frame, decision)
                                count = boundaries if choice is None else choice.found
                                show(decision.time, video.expected_duration, count)
                            case Boundary():
                                take(event)
                            case Closed(boundary):
                                close(boundary)
                            case Epoch():
                                for writer in writers:
                                    writer.epoch(event)
            complete = video.broken is None and video.cut_off is None
        except KeyboardInterrupt:
            stopped = True
            raise
        finally:
            if complete or stopped or writers:
                with uninterrupted():
                    writers = writers or open_writers(header)
                    while not complete and (last := run.detector.flush()) is not None:
                        take(last)
                    for boundary in run.detector.closed():
                        close(boundary)
                    seconds = float(video.duration)
                    if choice is not None:
                        write(choice.rest(seconds))
                    all_found = None if choice is None else choice.found
                    ending = RunEnd(complete, seconds, frames, boundaries, video.warnings, all_found)
                try:
                    close_all(writers, ending)
                finally:
                    with uninterrupted():
                        ended(ending)
    return video.broken or video.cut_off


def close_all(writers: Sequence[Writer], end: RunEnd) -> None:
    """Close every writer, even if one fails; then raise that error. Ctrl-C ends only slow ones."""

    def close(writer: Writer) -> None:
        with contextlib.nullcontext() if writer.slow else uninterrupted():
            writer.close(end)

    with contextlib.ExitStack() as closing:
        for writer in reversed(writers):
            closing.callback(close, writer)
