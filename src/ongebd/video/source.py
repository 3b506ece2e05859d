"""What a user can name as a source (file, URL, camera, standard input, open file), and how it is opened."""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import sys
from pathlib import Path
from typing import Any, BinaryIO, Literal
from urllib.parse import unquote_to_bytes, urlsplit
from urllib.request import url2pathname

import av
import av.error
from av.container import InputContainer
from av.stream import Disposition
from av.video.stream import VideoStream

from ongebd.common.text import STANDARD_INPUT, public_name, spoken_name
from ongebd.errors import SourceError
from ongebd.video.connecting import Connecting, PipeEnd, interruptible

Source = str | os.PathLike[str] | BinaryIO
"""A path, a URL, `-` for standard input, `camera:N` or `/dev/videoN`, or a binary file object."""

Kind = Literal["file", "pipe", "url", "camera"]

_NO_TIMESTAMPS = 0x80  # FFmpeg's AVFMT_NOTIMESTAMPS
# FFmpeg draws any .txt file as a terminal would show it, and calls that a video.
_TEXT_ART = frozenset({"adf", "bin", "idf", "tty", "xbin"})
_CAMERA_FORMATS = {"linux": "v4l2", "darwin": "avfoundation", "win32": "dshow"}
_SOURCES = "a source is a path or URL (text or pathlib.Path), camera:N, - or an open binary file"
_ADVICE: dict[Kind, str] = {
    "file": "check the file and its permissions",
    "pipe": "check the program that writes to it",
    "url": "check the address and the network",
    "camera": "check that it is plugged in and that no other program uses it",
}
# These serve files as well as streams.
_DOWNLOADABLE = ("http://", "https://", "ftp://")
_REFUSED = (av.error.HTTPUnauthorizedError, av.error.HTTPForbiddenError)
_LACKING = {
    "pipe": "no container that can be read without seeking; pipe MPEG-TS or Matroska, or name the file",
    "url": "the server doesn't send a video, or its beginning is damaged; check the address",
}

_PLAIN_ERRORS = {
    ("url", errno.EIO): "unknown host, or the host closed the connection",
    ("url", errno.EINVAL): "the address is wrong or lacks a port"
    " (in a password, write / as %2F, ? as %3F, # as %23)",
    ("camera", errno.ENOENT): "no such device",
}


def source_name(source: Source) -> str:
    """Name a source for people, without the secrets that a URL may carry.

    >>> source_name("rtsp://me:secret@camera/1")
    'rtsp://***@camera/1'
    """
    if isinstance(source, str | os.PathLike):
        return spoken_name(os.fspath(source))
    return public_name(str(getattr(source, "name", "a file object")))


def kind_of(source: Source) -> Kind:
    """What a source is. A "file" can be sought in, and its content doesn't change."""
    if not isinstance(source, str | os.PathLike):
        seekable = getattr(source, "seekable", None)
        return "pipe" if seekable is not None and not seekable() else "file"
    text = os.fspath(source)
    if text == "-":
        return "file" if _stdin_is_a_file() else "pipe"
    if re.fullmatch(r"camera:\d+|/dev/video\d+", text):
        return "camera"
    if is_url(text):
        return "url"
    path = Path(local_path(text))
    return "pipe" if path.exists() and not path.is_file() else "file"


def is_url(text: str) -> bool:
    """Whether the text names something to fetch by a protocol, rather than a local file."""
    return bool(re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text)) and not text.lower().startswith("file:")


def local_path(text: str) -> str:
    """A plain path from a path or a `file:` URL."""
    if text.lower().startswith("file://"):
        path = urlsplit(text).path
        # As bytes, because names on a disk needn't be UTF-8; Windows has its own rules for drives.
        return url2pathname(path) if os.name == "nt" else os.fsdecode(unquote_to_bytes(os.fsencode(path)))
    if text.lower().startswith("file:") and not Path(text).exists():
        return text[len("file:") :]
    return text


def check_source(source: object) -> None:
    """Refuse anything that can't be a source, before any work.

    Raises:
        SourceError: It says what a source may be.
    """
    if isinstance(source, io.TextIOBase):
        raise SourceError(f"{getattr(source, 'name', 'a file')}: opened as text; open it with mode 'rb'")
    named = isinstance(source, str | os.PathLike) and isinstance(os.fspath(source), str)
    if named and not os.fspath(source):  # type: ignore[call-overload]
        raise SourceError(f"the source is an empty text; {_SOURCES}")
    if not named and not callable(getattr(source, "read", None)):
        raise SourceError(f"can't read a source of type {type(source).__name__}; {_SOURCES}")


def open_container(source: Source, connecting: Connecting | None = None) -> InputContainer:
    """Open a source for reading. Every source that ongebd reads is opened here.

    Raises:
        SourceError: It is missing, a directory, empty, or not a video container.
    """
    check_source(source)
    connecting = connecting or Connecting()
    if not isinstance(source, str | os.PathLike):
        return _open(source, source, connecting)
    text = os.fspath(source)
    if text == "-":
        return _open_stdin(connecting)
    timeout = (connecting.open_timeout, connecting.read_timeout)
    if kind_of(text) == "camera":
        device, form = _camera_device(text)
        return _open(device, source, connecting, format=form, timeout=timeout)
    if is_url(text):
        return _open(text, source, connecting, options=connecting.options_for(text), timeout=timeout)
    path = local_path(text)
    _refuse_bad_path(path, source_name(source))
    # With "file:" in front, a colon in the name doesn't look like a protocol.
    return _open(f"file:{path}", source, connecting)


def pick_stream(container: InputContainer, number: int | None, name: str) -> VideoStream:
    """Choose the video stream to decode, by its number without cover art, or the first; `name` is for errors.

    Raises:
        SourceError: There is no such video stream, or no decoder for it.
    """
    covers = Disposition.attached_pic | Disposition.timed_thumbnails
    videos = [stream for stream in container.streams.video if not stream.disposition & covers]
    if not videos:
        held = ", ".join(sorted({s.type for s in container.streams})) or "nothing"
        if container.streams.video:
            held = held.replace("video", "cover art")
        raise SourceError(f"{name}: has no video stream (it holds {held}); give a file with video in it")
    chosen = 0 if number is None else number
    if not 0 <= chosen < len(videos):
        listed = ", ".join(f"{i}: {_described(stream)}" for i, stream in enumerate(videos))
        raise SourceError(f"{name}: has no video stream {chosen}; choose --stream from {listed}")
    if getattr(videos[chosen], "codec_context", None) is None:
        raise SourceError(f"{name}: can't decode its video codec; convert it to H.264")
    return videos[chosen]


def has_timestamps(container: InputContainer) -> bool:
    """Whether the container can hold timestamps. For raw H.264, M-JPEG, … FFmpeg only guesses them."""
    return not container.format.flags & _NO_TIMESTAMPS


def reason(problem: BaseException, connecting: Connecting | None = None) -> str:
    """FFmpeg's own words for an error, without the number and the address that PyAV puts around them."""
    if isinstance(problem, av.error.ExitError):  # "Immediate exit requested": by PyAV, after the time-out
        connecting = connecting or Connecting()
        return "it was stopped" if connecting.stopped else f"no data for {connecting.read_timeout:g} s"
    if isinstance(problem, OSError) and problem.errno == errno.EIO and is_url(str(problem.filename)):
        return "the connection was cut"
    return public_name(str(getattr(problem, "strerror", None) or problem) or type(problem).__name__)


def advice(source: Source, problem: BaseException | None = None) -> str:
    """What a user can do about a source that failed, with FFmpeg's error if there was one.

    >>> advice("rtsp://me:secret@camera/1")
    'check the address and the network'
    """
    if isinstance(problem, _REFUSED):
        return "check the user and password in its URL"
    if isinstance(problem, av.error.ProtocolNotFoundError):
        return "use another kind of URL (rtsp, rtmp, http, udp, tcp, …)"
    kind = kind_of(source)
    if kind == "url" and str(source).lower().startswith(_DOWNLOADABLE):
        return f"{_ADVICE[kind]}, or download it and name the file"
    return _ADVICE[kind]


def unreadable(source: Source) -> SourceError:
    """The refusal of a source that isn't a readable video."""
    lacking = _LACKING.get(
        kind_of(source), "damaged, cut off before its index, or not a video at all; check it with ffprobe"
    )
    return SourceError(f"{source_name(source)}: can't read it as a video: {lacking}")


def _why_not_opened(source: Source, problem: BaseException, connecting: Connecting) -> str:
    """Why a source didn't open, in words that need no knowledge of FFmpeg."""
    if isinstance(problem, av.error.ExitError) and not connecting.stopped:
        return f"no answer within {connecting.open_timeout:g} s"
    if isinstance(problem, av.error.ProtocolNotFoundError):
        return "unknown protocol"
    plain = _PLAIN_ERRORS.get((kind_of(source), getattr(problem, "errno", 0)))
    return plain or reason(problem, connecting)


def _described(stream: VideoStream) -> str:
    context = getattr(stream, "codec_context", None)
    return "an unknown codec" if context is None else f"{context.name} {stream.width}x{stream.height}"


def _camera_device(text: str) -> tuple[str, str]:
    """The device and its FFmpeg format, for `camera:N` and `/dev/videoN`."""
    if text.startswith("/dev/"):
        return text, "v4l2"
    if sys.platform not in _CAMERA_FORMATS:
        raise SourceError(f"{text}: can't read cameras on {sys.platform}; give a URL or a file")
    number = text.removeprefix("camera:")
    device = {"linux": f"/dev/video{number}", "win32": f"video={number}"}.get(sys.platform, number)
    return device, _CAMERA_FORMATS[sys.platform]


def _refuse_bad_path(path: str, name: str) -> None:
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        raise SourceError(f"{name}: no such file; check the path") from None
    except (OSError, ValueError) as problem:
        raise SourceError(f"{name}: can't read ({reason(problem)}); check the path") from None
    if stat.S_ISDIR(status.st_mode):
        raise SourceError(f"{name}: is a directory; name the files in it, as in {Path(name) / '*.mp4'}")
    if stat.S_ISREG(status.st_mode) and status.st_size == 0:
        raise SourceError(f"{name}: is empty (0 bytes); download or record it again")


def _open_stdin(connecting: Connecting) -> InputContainer:
    if sys.stdin is None or sys.stdin.isatty():
        raise SourceError(f"{STANDARD_INPUT}: nothing is piped in; use cat video.ts | ongebd detect -")
    if _stdin_is_a_file():
        # FFmpeg reads the descriptor itself: no GIL, and it can seek in a redirected file.
        return _open("fd:", "-", connecting, options={"fd": str(sys.stdin.fileno())})
    pipe = PipeEnd(sys.stdin.fileno(), connecting)
    try:
        return _open(pipe, "-", connecting)
    finally:
        if pipe.interrupted is not None:
            raise pipe.interrupted


def _stdin_is_a_file() -> bool:
    try:
        return sys.stdin is not None and stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _open(
    target: str | BinaryIO | PipeEnd, source: Source, connecting: Connecting, **how: Any
) -> InputContainer:
    """Open with PyAV; `how` are its arguments."""
    name = source_name(source)
    try:
        with interruptible(connecting.stop):
            container: InputContainer = av.open(target, "r", metadata_errors="replace", **how)
    except av.error.InvalidDataError:
        raise unreadable(source) from None
    except av.error.EOFError:
        raise SourceError(f"{name}: ends before its first frame; download or record it again") from None
    except (av.error.FFmpegError, OSError, ValueError) as problem:
        why = _why_not_opened(source, problem, connecting)
        raise SourceError(f"{name}: can't open: {why}; {advice(source, problem)}") from None
    if container.format.name in _TEXT_ART:
        container.close()
        raise SourceError(f"{name}: is a text file, not a video; name a video file")
    return container
