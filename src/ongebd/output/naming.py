"""How a source is called in what we write: without credentials, printable, and as a file name."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from ongebd.common.text import HIDDEN
from ongebd.common.text import printable as printable
from ongebd.common.text import public_name as public_name
from ongebd.errors import ConfigError

_NOT_IN_FILE_NAMES = re.compile(r'[/\\:*?"<>|\x00-\x1f]+')
_LONGEST_STEM = 200  # bytes: leaves room for an ending and for a number


def output_stems(sources: Sequence[str]) -> list[str]:
    """Name the output files of each source, without ending; no two are the same, letter case aside.

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


def check_stem(stem: str) -> str:
    """Return the stem, if it can be the name of files in a folder.

    Raises:
        ConfigError: It is empty, leads out of the folder, or no file can have that name.
    """
    shown = printable(stem if len(stem) <= 40 else f"{stem[:39]}…")
    if not stem.strip():
        raise ConfigError("--stem is empty; give the name of the result files, without ending")
    if re.search(r"[/\\]", stem) or stem in {".", ".."}:
        raise ConfigError(f"--stem {shown}: is a name, not a path; the folder is given with --out")
    if any(ord(c) < 32 or 127 <= ord(c) < 160 for c in stem):
        raise ConfigError(f"--stem {shown}: has a line break or another control character in it")
    if len(os.fsencode(stem)) > _LONGEST_STEM:
        raise ConfigError(f"--stem {shown}: is longer than {_LONGEST_STEM} bytes; give a shorter name")
    return stem


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
    """Write a time as hours, minutes and seconds.

    Args:
        seconds: The time; below 0 it is written as 0.
        digits: Digits of the fraction of a second, 0 to 9.
        hours: The least number of digits of the hours.

    Example:
        >>> clock(3.25), clock(360_000, digits=0), clock(59.9996, hours=2)
        ('0:00:03.250', '100:00:00', '00:01:00.000')
    """
    ticks = max(0, round(seconds * 10**digits))  # whole ticks first: 59.9996 s must not become 60.000 s
    whole, fraction = divmod(ticks, 10**digits)
    minutes, second = divmod(whole, 60)
    text = f"{minutes // 60:0{hours}d}:{minutes % 60:02d}:{second:02d}"
    return f"{text}.{fraction:0{digits}d}" if digits else text
