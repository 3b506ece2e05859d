"""Names of sources and files as text: without credentials, and safe for terminals, files and pictures."""

from __future__ import annotations

import re
import unicodedata
from itertools import accumulate

HIDDEN = "***"
STANDARD_INPUT = "standard input"
# The end of a scheme; pathlib leaves one of the two slashes. (A single letter is a Windows drive.)
_SCHEME = r"([A-Za-z0-9+.-]{2}://?)"
# `user:password@`, up to the last @ of the authority.
_USER_INFO = re.compile(_SCHEME + r"[^/?#|]*@")
# The same for a password with an unescaped / ? or #: what follows the colon isn't a port.
_BROKEN_USER_INFO = re.compile(_SCHEME + r"[^/?#@|\[]*:(?!\d*(?:[/?|]|$))[^|]*@")
# A colon or comma before a space belongs to the sentence around the URL.
_SECRET_QUERY = re.compile(
    r"([?&;#][^=&;#|]*(?:pass|pwd|token|key|secret|sig|auth|cred|user|login)[^=&;#|]*=)"
    r"(?:(?![:,](?:\s|$))[^&;#|\s])*",
    re.IGNORECASE,
)


def public_name(source: str) -> str:
    """Hide the credentials of every URL in a text: user, password, and query values that look secret.

    A key in a URL's path, as some streaming services have, looks like any other path and stays.

    >>> public_name("rtsp://admin:hunter2@10.0.0.7:554/live?channel=1&token=abc")
    'rtsp://***@10.0.0.7:554/live?channel=1&token=***'
    >>> public_name("holiday at 5@home.mp4")
    'holiday at 5@home.mp4'
    """
    if ":/" not in source:
        return source
    for pattern in (_USER_INFO, _BROKEN_USER_INFO):
        source = pattern.sub(rf"\g<1>{HIDDEN}@", source)
    return _SECRET_QUERY.sub(rf"\g<1>{HIDDEN}", source)


def spoken_name(source: str) -> str:
    """The name of a source for people: as `public_name`, with `-` spelled out.

    >>> spoken_name("-"), spoken_name("rtsp://me:secret@camera/1")
    ('standard input', 'rtsp://***@camera/1')
    """
    return STANDARD_INPUT if source == "-" else public_name(source)


def printable(text: str) -> str:
    r"""Escape control characters and stray bytes: one line that any UTF-8 file or terminal takes.

    >>> print(printable("two\nlines, a stray \udcff byte"))
    two\nlines, a stray \udcff byte
    """
    return "".join(
        c.encode("unicode_escape").decode() if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} else c
        for c in text
    )


def shortened(text: str, longest: int) -> str:
    """Leave out the middle of a text that is wider than `longest` Latin letters.

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
