"""Why a source could not be opened, and where to look, in words that need no knowledge of FFmpeg."""

from __future__ import annotations

import errno
from typing import Literal

import av.error

Kind = Literal["file", "pipe", "url", "camera"]

_MENDS: dict[Kind, str] = {
    "file": "check the file, and whether it may be read",
    "pipe": "check what writes into it",
    "url": "check the address and the network",
    "camera": "check that it is plugged in and that no other program uses it",
}
# What these serve may be a file as well as a stream.
_DOWNLOADABLE = ("http://", "https://", "ftp://")
_REFUSED = (av.error.HTTPUnauthorizedError, av.error.HTTPForbiddenError)


def where_to_look(kind: Kind, text: str, problem: BaseException | None = None) -> str:
    """What a user can do about a source that failed.

    Args:
        kind: Of the source.
        text: As given; nothing of it is shown.
        problem: FFmpeg's error, where there was one.

    >>> where_to_look("url", "rtsp://me:secret@camera/1")
    'check the address and the network'
    """
    if isinstance(problem, _REFUSED):
        return "check the user and password in its URL"
    if isinstance(problem, av.error.ProtocolNotFoundError):
        return "name another kind of URL (rtsp, rtmp, http, udp, tcp, …)"
    if kind == "url" and text.lower().startswith(_DOWNLOADABLE):
        return f"{_MENDS[kind]}, or download it and name the file"
    return _MENDS[kind]


def why_not_opened(kind: Kind, problem: BaseException) -> str | None:
    """What FFmpeg's errors mean where a source is being opened; None where its own words are as good."""
    number = getattr(problem, "errno", None)
    if kind == "url" and isinstance(problem, av.error.ProtocolNotFoundError):
        return "that protocol is not known here"
    if kind == "url" and number == errno.EIO:
        return "its host is not known, or it ends the connection at once"
    if kind == "url" and number == errno.EINVAL:
        return "its address is wrong or lacks a port (in a password, write / as %2F, ? as %3F, # as %23)"
    if kind == "camera" and number == errno.ENOENT:
        return "there is no such device"
    return None
