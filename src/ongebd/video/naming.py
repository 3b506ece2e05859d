"""How a source is called where others may read it: without the secrets that a URL may carry."""

from __future__ import annotations

import re

HIDDEN = "***"
# `user:password@`, up to the last @ of the authority.
_USER_INFO = re.compile(r"(?<=://)[^/?#|]*@")
# The same where the password holds an unescaped / ? or #: what follows the colon is no port.
_BROKEN_USER_INFO = re.compile(r"(?<=://)[^/?#@|\[]*:(?!\d*(?:[/?|]|$))[^|]*@")
_SECRET_QUERY = re.compile(
    r"([?&;#][^=&;#|]*(?:pass|pwd|token|key|secret|sig|auth|cred|user|login)[^=&;#|]*=)[^&;#|\s]*",
    re.IGNORECASE,
)


def public_name(source: str) -> str:
    """Hide the credentials of every URL in a text: user and password, and query values that look secret.

    A key that is part of a URL's path (as some streaming services have) cannot be told from a path.

    Example:
        >>> public_name("rtsp://admin:hunter2@10.0.0.7:554/live?channel=1&token=abc")
        'rtsp://***@10.0.0.7:554/live?channel=1&token=***'
        >>> public_name("holiday at 5@home.mp4")
        'holiday at 5@home.mp4'
    """
    if "://" not in source:
        return source
    for pattern in (_USER_INFO, _BROKEN_USER_INFO):
        source = pattern.sub(f"{HIDDEN}@", source)
    return _SECRET_QUERY.sub(rf"\g<1>{HIDDEN}", source)
