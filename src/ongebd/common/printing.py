"""Names of sources and files as text that any terminal, file or picture takes."""

from __future__ import annotations

import unicodedata
from itertools import accumulate


def printable(text: str) -> str:
    r"""One line that any UTF-8 file or terminal takes: control characters and stray bytes are escaped.

    Example:
        >>> print(printable("two\nlines, a stray \udcff byte"))
        two\nlines, a stray \udcff byte
    """
    return "".join(
        c.encode("unicode_escape").decode() if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} else c
        for c in text
    )


def shortened(text: str, longest: int) -> str:
    """Leave out the middle of a text that is wider than `longest` Latin letters.

    Example:
        >>> shortened("a_very_long_name_of_a_video.mp4", 12)
        'a_very_l….mp4'
    """
    cells = [2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text]
    total = sum(cells)
    if total <= longest:
        return text
    ends = list(accumulate(cells))
    head = "".join(c for c, end in zip(text, ends, strict=True) if end <= longest * 2 // 3)
    tail = "".join(c for c, end in zip(text, ends, strict=True) if total - end < longest // 3)
    return f"{head}…{tail}"
