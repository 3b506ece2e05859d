"""Names of result files, and times as people read them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from ongebd.common.text import HIDDEN, printable, public_name
from ongebd.errors import ConfigError

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
        stem = _stem(source)
        unique, number = stem, 1
        while unique.casefold() in taken:
            number += 1
            unique = f"{stem}-{number}"
        taken.add(unique.casefold())
        stems.append(unique)
    return stems


def check_stem(stem: str) -> None:
    """Raise a ConfigError if files in a folder can't have this name."""
    shown = printable(stem if len(stem) <= 40 else f"{stem[:39]}…")
    if re.search(r"[/\\]", stem) or stem in {".", ".."}:
        raise ConfigError(f"--stem {shown}: must be a name, not a path; --out sets the folder")
    if any(ord(c) < 32 or 127 <= ord(c) < 160 for c in stem):
        raise ConfigError(f"--stem {shown}: contains a line break or another control character")
    if len(os.fsencode(stem)) > _LONGEST_STEM:
        raise ConfigError(f"--stem {shown}: is longer than {_LONGEST_STEM} bytes; use a shorter name")


def _stem(source: str) -> str:
    if source == "-":
        return "stdin"
    if "://" in source:
        address = re.split(r"[?#]", public_name(source))[0].removesuffix("/")
        stem = _NOT_IN_FILE_NAMES.sub("_", PurePosixPath(address).stem.replace(f"{HIDDEN}@", ""))
    else:
        stem = Path(source).stem
    raw = os.fsencode(stem or "video")
    return stem or "video" if len(raw) <= _LONGEST_STEM else raw[:_LONGEST_STEM].decode("utf-8", "ignore")


def clock(seconds: float, *, digits: int = 3, hours: int = 1) -> str:
    """Write a time as hours, minutes and seconds; a time below 0 as 0.

    Args:
        seconds: The time.
        digits: Digits of the fraction of a second, 0 to 9.
        hours: Minimum number of digits of the hours.

    Example:
        >>> clock(3.25), clock(360_000, digits=0), clock(59.9996, hours=2)
        ('0:00:03.250', '100:00:00', '00:01:00.000')
    """
    ticks = max(0, round(seconds * 10**digits))  # whole ticks first: 59.9996 s must not become 60.000 s
    whole, fraction = divmod(ticks, 10**digits)
    minutes, second = divmod(whole, 60)
    text = f"{minutes // 60:0{hours}d}:{minutes % 60:02d}:{second:02d}"
    return f"{text}.{fraction:0{digits}d}" if digits else text
