"""Writing a report: `report.md`, `report.json` and the pictures, all of them or none."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from ongebd.common.tables import escaped, markdown_section
from ongebd.common.writing import write_whole
from ongebd.errors import ConfigError, MissingExtraError, import_extra, os_errors
from ongebd.lab.evaluation.report_tables import headline, report_tables
from ongebd.lab.evaluation.report_values import Values

_PICTURE = "f1_against_threshold.png"
REPORT_FILES = ("report.md", "report.json", _PICTURE)

_CONTROLS = re.compile("[\x7f-\x9f\u2028\u2029]")


def write_report(report: Values, folder: Path) -> list[Path]:
    """Write the report's files into a folder, `report.md` first; the folder is made if necessary.

    Raises:
        ConfigError: The folder can't be made or written to.
    """
    parts = ["# Evaluation of event boundaries", escaped(headline(report)) + "."]
    parts += map(markdown_section, report_tables(report))
    pictures = {}
    try:
        pictures[_PICTURE] = import_extra(f"{__package__}.pictures", "plot").draw_threshold_picture(report)
        parts.append(f"![F1 against threshold]({_PICTURE})")
    except MissingExtraError as problem:
        parts.append(f"The picture is missing: {escaped(str(problem))}")
    texts = {"report.md": ("\n\n".join(parts) + "\n").encode(), "report.json": json_bytes(report)}
    return write_files(folder, texts | pictures)


def write_files(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write files into a folder, all of them or none; the folder is made if necessary.

    Args:
        folder: Where to write.
        contents: By the files' names.

    Returns:
        The files.

    Raises:
        ConfigError: The folder can't be made or written to.
    """
    files = [folder / name for name in contents]
    with os_errors(f"--out {folder}", "name another folder"):
        for file in files:
            if file.is_dir():
                raise ConfigError(f"{file}: is a folder; the report needs a file here, move it")
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as unfinished:
            for file in files:
                unfinished.enter_context(write_whole(file)).write_bytes(contents[file.name])
    return files


def json_bytes(document: Values) -> bytes:
    """JSON as UTF-8. Control characters, and stray bytes of file names, become JSON's own escapes."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    text = _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text.encode("utf-8", "backslashreplace")


def check_folder(folder: Path) -> None:
    """Raise a ConfigError for a folder in which no report can be written, before any work is done for it."""
    with os_errors(f"--out {folder}", "name another folder"):
        nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        is_folder = nearest.is_dir()
    if not is_folder:
        raise ConfigError(f"--out {folder}: {nearest} is a file; name a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ConfigError(f"--out {folder}: can't write there; name another folder")
