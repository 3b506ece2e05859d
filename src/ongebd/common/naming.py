"""How a source is called where others may read it: without the secrets that a URL may carry."""

from __future__ import annotations

import re

HIDDEN = "***"
# The end of a scheme; pathlib leaves one slash of the two. (A single letter is a drive of Windows.)
_SCHEME = r"([A-Za-z0-9+.-]{2}://?)"
# `user:password@`, up to the last @ of the authority.
_USER_INFO = re.compile(_SCHEME + r"[^/?#|]*@")
# The same where the password holds an unescaped / ? or #: what follows the colon is no port.
_BROKEN_USER_INFO = re.compile(_SCHEME + r"[^/?#@|\[]*:(?!\d*(?:[/?|]|$))[^|]*@")
# A colon or comma before a blank is the sentence's that the URL stands in.
_SECRET_QUERY = re.compile(
    r"([?&;#][^=&;#|]*(?:pass|pwd|token|key|secret|sig|auth|cred|user|login)[^=&;#|]*=)"
    r"(?:(?![:,](?:\s|$))[^&;#|\s])*",
    re.IGNORECASE,
)
STANDARD_INPUT = "standard input"


def public_name(source: str) -> str:
    """Hide the credentials of every URL in a text: user and password, and query values that look secret.

    A key that is part of a URL's path (as some streaming services have) cannot be told from a path.

    Example:
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
    """How a source is called in what people read: as `public_name`, and `-` by what it is.

    >>> spoken_name("-"), spoken_name("rtsp://me:secret@camera/1")
    ('standard input', 'rtsp://***@camera/1')
    """
    return STANDARD_INPUT if source == "-" else public_name(source)
