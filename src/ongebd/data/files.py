"""Reading bytes, JSON and CSV, with one clear line for each thing that can be wrong."""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path

from ongebd.errors import LabelError


def read_bytes(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        LabelError: Where there is no such file, it is a folder, it cannot be read, or it is empty.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise LabelError(f"{path}: no such file; check the path") from None
    except IsADirectoryError:
        raise LabelError(f"{path}: is a folder, a file is wanted here") from None
    except OSError as problem:
        raise LabelError(
            f"{path}: cannot be read ({problem.strerror}); check the path and its permissions"
        ) from None
    if not data.removeprefix(codecs.BOM_UTF8).strip():
        raise LabelError(f"{path}: the file is empty; it may not have been downloaded in full")
    return data


def is_folder(path: Path) -> bool:
    """Whether it is a folder; a path that cannot even be asked about is none."""
    try:
        return path.is_dir()
    except OSError:  # a name that is too long, say
        return False


def sha256(data: bytes) -> str:
    """The file's fingerprint, in hexadecimal: two papers that name different ones used different labels."""
    return hashlib.sha256(data).hexdigest()


def read_text(data: bytes, path: Path) -> str:
    """The bytes as UTF-8 text, without a byte order mark.

    Raises:
        LabelError: Where they are not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise LabelError(f"{path}: not UTF-8 text (byte {problem.start}); save it as UTF-8") from None


def parse_json(data: bytes, path: Path) -> object:
    """The value of a JSON file; a key that stands twice in one object is refused, not overwritten.

    Raises:
        LabelError: Where the file is not JSON, is cut off, or repeats a key.
    """

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        value: dict[str, object] = {}
        for key, item in pairs:
            if key in value:
                raise LabelError(f"{path}: {key!r} stands twice in one JSON object; keep one of them")
            value[key] = item
        return value

    try:
        return json.loads(read_text(data, path), object_pairs_hook=unique)
    except LabelError:
        raise
    except json.JSONDecodeError as problem:
        raise LabelError(
            f"{path}: not valid JSON at line {problem.lineno} ({problem.msg}); the file may be cut off"
        ) from None
    except RecursionError:
        raise LabelError(f"{path}: JSON nested too deeply to be labels or predictions; flatten it") from None
    except ValueError:  # Python reads no whole number of more than 4300 digits
        raise LabelError(f"{path}: JSON with a number too long to be a time; correct or remove it") from None


def table_columns(data: bytes, path: Path) -> list[str]:
    """The columns that line 1 of a CSV file names, in lower case.

    Raises:
        LabelError: Line 1 is not CSV.
    """
    reader = csv.reader(io.StringIO(read_text(data, path)), strict=True)
    try:
        return [name.strip().lower() for name in next(reader, [])]
    except csv.Error as problem:
        raise LabelError(f"{path}, line {reader.line_num}: not CSV ({problem}); mend the line") from None


def table_rows(data: bytes, path: Path, required: set[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a CSV file with a header line, each with its line number (from 1, the header's is 1).

    Args:
        data: The file's bytes.
        path: Its name, for messages.
        required: Columns that must be there; others are handed on as they are.

    Yields:
        (line number, {column: text}) for each row; blank lines are passed over.

    Raises:
        LabelError: Where a column is missing or a row has more or fewer cells than the header.
    """
    reader = csv.reader(io.StringIO(read_text(data, path)), strict=True)
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        absent = sorted(required - set(header))
        if absent:
            named = ", ".join(header)[:200]
            raise LabelError(f"{path}: column {absent[0]!r} is missing from line 1, which has {named!r}")
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                raise LabelError(
                    f"{path}, line {reader.line_num}: {len(cells)} cells where line 1 has {len(header)}"
                )
            yield reader.line_num, dict(zip(header, (cell.strip() for cell in cells), strict=True))
    except csv.Error as problem:
        raise LabelError(f"{path}, line {reader.line_num}: not CSV ({problem}); mend the line") from None
