"""Reads bytes, JSON, CSV and numbers, with one clear line for anything that can be wrong."""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from ongebd.errors import LabelError, os_errors


def read_bytes(path: Path) -> bytes:
    """The bytes of a file that isn't empty."""
    with os_errors(path, "check the path", LabelError):
        data = path.read_bytes()
    if not data.removeprefix(codecs.BOM_UTF8).strip():
        raise LabelError(f"{path}: the file is empty; it may not have been downloaded in full")
    return data


def sha256(data: bytes) -> str:
    """A file's fingerprint: two papers that name different ones used different labels."""
    return hashlib.sha256(data).hexdigest()


def read_text(data: bytes, path: Path) -> str:
    """UTF-8 text without a byte order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise LabelError(f"{path}: not UTF-8 text (byte {problem.start}); save it as UTF-8") from None


def parse_json(data: bytes, path: Path) -> object:
    """The value of a JSON file. A key that occurs twice in an object is refused."""

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        value = dict(pairs)
        if len(value) < len(pairs):
            twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
            raise LabelError(f"{path}: {twice!r} occurs twice in one JSON object; keep one of them")
        return value

    text = read_text(data, path)
    try:
        return json.loads(text, object_pairs_hook=unique)
    except LabelError:
        raise
    except json.JSONDecodeError as problem:
        where = f"line {problem.lineno} ({problem.msg})"
        raise LabelError(f"{path}: not valid JSON at {where}; the file may be cut off") from None
    except RecursionError:
        raise LabelError(f"{path}: JSON nested too deeply for labels or predictions; flatten it") from None
    except ValueError:  # Python refuses whole numbers of more than 4300 digits
        raise LabelError(f"{path}: a number in the JSON is too long; correct or remove it") from None


def table_rows(data: bytes, path: Path, required: set[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a CSV file with a header line, which must name the required columns (in lower case).

    Yields:
        (the file and the line's number, {column: text}) for each row that isn't blank.
    """
    reader = csv.reader(io.StringIO(read_text(data, path)), strict=True)
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        for column in sorted(required - set(header)):
            raise LabelError(f"{path}: column {column!r} is missing; line 1 has {', '.join(header)[:200]!r}")
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            where = f"{path}, line {reader.line_num}"
            if len(cells) != len(header):
                raise LabelError(f"{where}: {len(cells)} cells where line 1 has {len(header)}")
            yield where, dict(zip(header, (cell.strip() for cell in cells), strict=True))
    except csv.Error as problem:
        raise LabelError(f"{path}, line {reader.line_num}: not CSV ({problem}); correct the line") from None


class UnreadKeys:
    """Counts keys (or columns) that a reader doesn't know. A misspelt key is an error.

    >>> unread = UnreadKeys("times", "onsets")
    >>> unread.see(["times", "note"], "p.json")
    >>> unread.notes()
    ["not read: 'note' (1 time)"]
    >>> unread.see(["times", "onset"], "p.json")
    Traceback (most recent call last):
    ongebd.errors.LabelError: p.json: unknown 'onset'; did you mean 'onsets'? Rename or remove it
    """

    def __init__(self, *known: str) -> None:
        self._known = known
        self._seen: Counter[str] = Counter()

    def see(self, keys: Iterable[object], where: str | None = None) -> None:
        """Count the unknown keys of one entry. Without a place to name, misspelt ones are counted too."""
        present = [str(key) for key in keys]
        for name in present:
            if name in self._known:
                continue
            self._seen[name] += 1
            meant = None if where is None else _closest(name, self._known)
            if meant is not None and meant not in present:
                raise LabelError(
                    f"{where}: unknown {name[:60]!r}; did you mean {meant!r}? Rename or remove it"
                )

    def notes(self) -> list[str]:
        """A line with the unknown keys, at most ten."""
        names = [
            f"{name[:60]!r} ({count} time{'' if count == 1 else 's'})"
            for name, count in self._seen.most_common(10)
        ]
        more = f" and {len(self._seen) - 10} more" if len(self._seen) > 10 else ""
        return [f"not read: {', '.join(names)}{more}"] if names else []


@cache
def _closest(name: str, known: tuple[str, ...]) -> str | None:
    long = sorted(key for key in known if len(key) > 3)  # short ones have too many neighbours
    return next(iter(get_close_matches(name.strip().casefold()[:60], long, n=1, cutoff=0.8)), None)


FloatArray = npt.NDArray[np.float64]
"""Times or scores, in seconds unless stated otherwise."""


def number(value: object, where: str) -> float:
    """A finite number.

    >>> number(2, "clip, duration")
    2.0
    >>> number(float("nan"), "clip, duration")
    Traceback (most recent call last):
    ongebd.errors.LabelError: clip, duration: nan is not a finite number; correct or remove it
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise LabelError(f"{where}: must be a number, not {kind(value)}")
    try:
        result = float(value)
    except OverflowError:
        raise LabelError(f"{where}: the number is too large; correct or remove it") from None
    if not math.isfinite(result):
        cause = " (1e999 reads as inf too)" if math.isinf(result) else ""
        raise LabelError(f"{where}: {result} is not a finite number{cause}; correct or remove it")
    return result


def parse_number(text: str, where: str) -> float:
    """A finite number written as text."""
    try:
        value = float(text)
    except ValueError:
        raise LabelError(f"{where}: {text[:40]!r} is not a number; correct or remove it") from None
    return number(value, where)


def number_list(values: object, where: str) -> FloatArray:
    """Finite numbers, shape (n,), in the given order."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not is_list(values):
        raise LabelError(f"{where}: must be a list of numbers, not {kind(values)}")
    if all(type(value) is float for value in values):  # most lists: quick
        result = np.array(values, dtype=np.float64)
        if np.isfinite(result).all():
            return result
    checked = [number(value, f"{where}, position {place}") for place, value in enumerate(values, start=1)]
    return np.array(checked, dtype=np.float64)


def videos(count: int) -> str:
    """A count of videos, for a note: `1 video`, `3 videos`."""
    return f"{count} video{'' if count == 1 else 's'}"


def kind(value: object) -> str:
    """What a value is, for a message: its type or, where it is text, the start of it."""
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    return "nothing" if value is None else f"a value of type {type(value).__name__}"


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether it is a list or tuple, not text, bytes or a dict."""
    return isinstance(value, list | tuple)
