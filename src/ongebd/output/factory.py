"""From the names of formats to open writers."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ongebd.common.text import spoken_name
from ongebd.errors import ConfigError
from ongebd.output.base import RunHeader, Sink, Target, writing
from ongebd.output.jsonl import JsonlSink
from ongebd.output.naming import printable
from ongebd.output.plot import PlotSink
from ongebd.output.table import CsvSink
from ongebd.output.vtt import VttSink
from ongebd.video.source import local_path

TEXT_FORMATS: dict[str, Callable[[Target, RunHeader], Sink]] = {
    "jsonl": JsonlSink,
    "csv": CsvSink,
    "vtt": VttSink,
}
"""What can be written to a file or to an open text stream."""

FORMATS: dict[str, Callable[[Path, RunHeader], Sink]] = {**TEXT_FORMATS, "png": PlotSink}
"""What can be written to a file; the name is the file's ending too."""


def check_formats(formats: Sequence[str]) -> list[str]:
    """Return the formats, each once.

    Raises:
        ConfigError: One is not known.
    """
    for name in formats:
        if name not in FORMATS:
            raise ConfigError(f"unknown format {printable(name)!r}; the formats are {', '.join(FORMATS)}")
    return list(dict.fromkeys(formats))


def open_sinks(formats: Sequence[str], directory: str | Path, stem: str, header: RunHeader) -> list[Sink]:
    """Open `DIRECTORY/STEM.FORMAT` for each format; the folder is made where it lacks.

    If one cannot be opened, none is: files of an earlier run stay as they are.

    Args:
        formats: Keys of `FORMATS`.
        directory: The folder to write into.
        stem: File name without ending; `output_stems` makes one from a source.
        header: Of the run.

    Raises:
        ConfigError: An unknown format, or a file that would replace the source itself.
        OngebdError: A folder or a file that cannot be written.
    """
    names = check_formats(formats)
    folder = Path(directory)
    paths = output_paths(names, folder, stem)
    spare_sources(paths, [header.source])
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    new = [path for path in paths if not path.exists()]
    _check_writable(paths)
    try:
        return [FORMATS[name](path, header) for name, path in zip(names, paths, strict=True)]
    except BaseException:  # a header that finds no room on the disk, say
        for path in new:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        raise


def output_paths(formats: Sequence[str], directory: str | Path, stem: str) -> list[Path]:
    """The files that `open_sinks` writes: `DIRECTORY/STEM.FORMAT` for each format."""
    return [Path(directory) / f"{stem}.{name}" for name in formats]


def spare_sources(paths: Sequence[Path], sources: Sequence[str]) -> None:
    """Refuse to write over what is to be read, by whatever name, link or case it is called.

    Args:
        paths: To be written.
        sources: Every source of the run, also those that come later.

    Raises:
        ConfigError: One of the paths is one of the sources.
    """
    read = {}
    for source in sources:
        with contextlib.suppress(OSError, ValueError):  # a URL, a file that does not exist yet, no input
            status = os.fstat(sys.stdin.fileno()) if source == "-" else Path(local_path(source)).stat()
            read[status.st_dev, status.st_ino] = source
    for path in paths:
        try:
            status = path.stat()
        except (OSError, ValueError):  # not there yet
            continue
        own = read.get((status.st_dev, status.st_ino))
        if own is not None:
            what = "the source itself" if len(sources) == 1 else f"the source {spoken_name(own)}"
            raise ConfigError(
                f"{printable(str(path))} is {printable(what)}, and would be written over; write elsewhere,"
                " see --out"
            )


def _check_writable(paths: Sequence[Path]) -> None:
    with contextlib.ExitStack() as undo:
        for path in paths:
            is_new = not path.exists()
            with writing(path):
                path.open("ab").close()
            if is_new:
                undo.callback(path.unlink)
        undo.pop_all()
