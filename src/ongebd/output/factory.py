"""From the names of formats to open writers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from ongebd.errors import ConfigError
from ongebd.output.base import RunHeader, Sink, Target, writing
from ongebd.output.jsonl import JsonlSink
from ongebd.output.naming import printable
from ongebd.output.plot import PlotSink
from ongebd.output.table import CsvSink
from ongebd.output.vtt import VttSink

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
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{stem}.{name}" for name in names]
    for path in paths:
        _spare_source(path, header.source)
    _check_writable(paths)
    return [FORMATS[name](path, header) for name, path in zip(names, paths, strict=True)]


def _check_writable(paths: Sequence[Path]) -> None:
    with contextlib.ExitStack() as undo:
        for path in paths:
            is_new = not path.exists()
            with writing(path):
                path.open("ab").close()
            if is_new:
                undo.callback(path.unlink)
        undo.pop_all()


def _spare_source(path: Path, source: str) -> None:
    same = False
    with contextlib.suppress(OSError, ValueError):  # a URL, or a file that does not exist yet
        same = path.samefile(source)
    if same:
        raise ConfigError(f"{printable(str(path))} is the source itself; write elsewhere, see --out")
