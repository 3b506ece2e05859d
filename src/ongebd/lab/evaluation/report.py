"""Writing a report: `report.md`, `report.json` and the pictures, all of them or none."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from ongebd.common.tables import escaped, markdown_section
from ongebd.errors import ConfigError
from ongebd.lab.evaluation.evaluation import Evaluation
from ongebd.lab.evaluation.pictures import PICTURES, draw_pictures
from ongebd.lab.evaluation.report_json import Json, to_json
from ongebd.lab.evaluation.report_tables import headline, report_tables

REPORT_FILES = ("report.md", "report.json", *PICTURES)

_CONTROLS = re.compile("[\x7f-\x9f\u2028\u2029]")


def write_report(evaluation: Evaluation, folder: Path) -> list[Path]:
    """Write the report's files into a folder, which is made where it is not there.

    The files are made whole beside it first, so that an error leaves no half-written report.

    Args:
        evaluation: What to report.
        folder: Where to. Files of an older report there are overwritten, or removed where this one has none.

    Returns:
        The files, `report.md` first.

    Raises:
        ConfigError: Where the folder cannot be made or written to.
    """
    pictures = draw_pictures(evaluation)
    contents = {
        "report.md": to_markdown(evaluation, pictures).encode(),
        "report.json": _json(to_json(evaluation)),
        **pictures,
    }
    stale = [name for name in PICTURES if name not in contents]  # an older report's, not of this one
    return write_files(folder, contents, stale)


def write_files(folder: Path, contents: Mapping[str, bytes], stale: Iterable[str] = ()) -> list[Path]:
    """Write files into a folder, which is made where it is not there: all of them, or none.

    Args:
        folder: Where to.
        contents: By the files' names.
        stale: Names of files that are removed then.

    Returns:
        The files.

    Raises:
        ConfigError: Where the folder cannot be made or written to.
    """
    try:
        for name in contents:
            if (folder / name).is_dir():
                raise ConfigError(f"{folder / name}: is a folder where a file of the report belongs; move it")
        folder.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".report-", dir=folder))
        try:
            for name, content in contents.items():
                (staging / name).write_bytes(content)
            for name in contents:
                (staging / name).replace(folder / name)
            for name in stale:
                (folder / name).unlink(missing_ok=True)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as problem:
        raise ConfigError(
            f"--out {folder}: the report cannot be written there ({problem.strerror}); name another folder"
        ) from None
    return [folder / name for name in contents]


def _json(document: Json) -> bytes:
    """JSON as UTF-8. A stray byte of a file's name and control characters are JSON's own escapes."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    text = _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text.encode("utf-8", "backslashreplace")


def check_folder(folder: Path) -> None:
    """Refuse what can be no folder for a report, before anything is measured for it.

    Raises:
        ConfigError: It or one above it is a file, its name cannot be one, or nothing can be written there.
    """
    try:
        there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        is_folder = there.is_dir()
    except OSError as problem:
        raise ConfigError(f"--out {folder}: {problem.strerror}; name another folder") from None
    if not is_folder:
        what = "is a file" if there == folder else f"{there} is a file"
        raise ConfigError(f"--out {folder}: {what}; name a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(f"--out {folder}: nothing can be written there; name another folder")


def to_markdown(evaluation: Evaluation, pictures: Iterable[str]) -> str:
    """The report as Markdown, with links to its pictures."""
    parts = ["# Evaluation of event boundaries", escaped(headline(evaluation)) + "."]
    parts += map(markdown_section, report_tables(evaluation))
    parts += [f"![{Path(name).stem.replace('_', ' ')}]({name})" for name in pictures]
    return "\n\n".join(parts) + "\n"
