"""What a user can name as a source (file, URL, camera, standard input, open file), and how it is opened."""

from __future__ import annotations

import errno
import io
import os
import re
import socket
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast
from urllib.parse import unquote_to_bytes, urlsplit
from urllib.request import url2pathname

import av
import av.error
from av.container import InputContainer
from av.stream import Disposition
from av.video.stream import VideoStream

from ongebd.common import MAX_PIXELS
from ongebd.common.text import STANDARD_INPUT, public_name, spoken_name
from ongebd.errors import OngebdError, SourceError, os_errors
from ongebd.video.access import (
    DATA_OPTIONS,
    INSECURE,
    PLAYLISTS,
    WEB_OPTIONS,
    Pieces,
    PlaylistFolder,
    options_for_url,
    plain_url,
)
from ongebd.video.connecting import Connecting, PipeEnd, Rest, aside, interruptible

if TYPE_CHECKING:
    from ongebd.video.web import Web

Source = str | os.PathLike[str] | BinaryIO
"""A path (of a file, or a folder or pattern of pictures), a URL, `-` for standard input, `camera:N` or
`/dev/videoN`, or a binary file object."""

Kind = Literal["file", "pipe", "url", "camera"]

_NO_TIMESTAMPS = 0x80  # FFmpeg's AVFMT_NOTIMESTAMPS
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
_NO_VIDEO = (
    "isn't a video, but text, raw pictures or a list of other files; name the video, or a playlist as .m3u8"
    " (raw pictures need a header: ffmpeg -f rawvideo -video_size WxH -i FILE out.mkv)"
)
_ALLOWED = {
    "file": "a playlist opens only files in its own folder; for pieces on the web give the playlist's URL",
    "url": "a web source reaches only its own server and public addresses; --private-network allows others",
}
_LACKING = {
    "pipe": "this isn't a video, or its kind can't be piped; give its name, or pipe MPEG-TS or Matroska",
    "url": "the server doesn't send a video, or its beginning is damaged; check the address",
}

# An encoder that comes back with other PIDs goes on in the same streams of MPEG-TS.
_FOLLOW = {"merge_pmt_versions": "1"}

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
    status = status_of(local_path(text))
    regular = status is None or stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return "file" if regular else "pipe"


def is_url(text: str) -> bool:
    """Whether the text names something to fetch by a protocol, rather than a local file."""
    return bool(re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text)) and not text.lower().startswith("file:")


def status_of(path: str) -> os.stat_result | None:
    """Of a file or folder; None where there is none, also for a name that none can have."""
    try:
        return Path(path).stat()
    except (OSError, ValueError):
        return None


def local_path(text: str) -> str:
    """A plain path from a path or a `file:` URL."""
    if text.lower().startswith("file://"):
        path = urlsplit(text).path
        # As bytes, because names on a disk needn't be UTF-8; Windows has its own rules for drives.
        return url2pathname(path) if os.name == "nt" else os.fsdecode(unquote_to_bytes(os.fsencode(path)))
    if text.lower().startswith("file:") and status_of(text) is None:
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
        raise SourceError(f"the source name is empty; {_SOURCES}")
    if not named and not callable(getattr(source, "read", None)):
        raise SourceError(f"can't read a source of type {type(source).__name__}; {_SOURCES}")


@contextmanager
def source_errors(source: Source) -> Iterator[None]:
    """Whatever opening, reading, decoding or resizing a source raises in the block becomes a SourceError.

    FFmpeg and PyAV meet what strangers made, and nobody knows all that they raise. It ends this source only.
    """
    try:
        yield
    except OngebdError:
        raise
    except Exception as problem:  # noqa: BLE001 - from None, because its text may hold the URL
        raise SourceError(
            f"{source_name(source)}: can't read it: {reason(problem)}; {advice(source)}"
        ) from None


def open_container(
    source: Source, connecting: Connecting | None = None, pieces: Pieces | None = None
) -> InputContainer:
    """Open a source for reading. Every source that ongebd reads is opened here.

    Args:
        source: Any but a folder.
        connecting: None takes the defaults.
        pieces: Told what happens to the pieces of a playlist, also later.

    Raises:
        SourceError: It is missing, a directory, empty, or not a video container.
    """
    check_source(source)
    connecting, pieces = connecting or Connecting(), pieces or Pieces()
    if not isinstance(source, str | os.PathLike):
        return _open(source, source, connecting, options=DATA_OPTIONS)
    text = os.fspath(source)
    if text == "-":
        return _open_stdin(connecting, pieces)
    timeout = (connecting.open_timeout, connecting.read_timeout)
    if kind_of(text) == "camera":
        device, form = _camera_device(text)
        return _open(device, source, connecting, options={}, format=form, timeout=timeout)
    if is_url(text):
        return _open_url(text, connecting, timeout, pieces)
    path = local_path(text)
    _refuse_bad_path(path, source_name(source))
    if kind_of(text) == "pipe":
        with os_errors(f"{source_name(source)}: can't open", _ADVICE["pipe"], SourceError):
            pieces.pipe = PipeEnd(path, connecting)
        return _open(pieces.pipe, source, connecting, options=DATA_OPTIONS)
    # With "file:" in front, a colon in the name doesn't look like a protocol.
    if path.lower().endswith(PLAYLISTS):
        folder = PlaylistFolder(path, pieces)
        how: dict[str, Any] = {"options": WEB_OPTIONS, "timeout": (1e6, 1e6)}  # so that it can be ended
        return _open(f"file:{path}", source, connecting, folder=folder, pieces=pieces, **how)
    return _open(f"file:{path}", source, connecting, options=DATA_OPTIONS)


def pick_stream(
    container: InputContainer,
    number: int | None,
    name: str,
    max_pixels: int = MAX_PIXELS,
    notes: list[str] | None = None,
) -> VideoStream:
    """Choose the video stream to decode, by its number without cover art.

    Args:
        container: That was opened.
        number: None takes the one marked as default, or the first.
        name: Of the source, for errors.
        max_pixels: Of a picture.
        notes: Gets a line if there were others to choose from.

    Raises:
        SourceError: The stream doesn't exist, can't be decoded, or has pictures that are too large.
    """
    videos = videos_of(container)
    if not videos:
        held = ", ".join(sorted({s.type for s in container.streams})) or "nothing"
        if container.streams.video:
            held = held.replace("video", "cover art")
        raise SourceError(f"{name}: has no video stream (it holds {held}); give a file with video in it")
    default = (n for n, stream in enumerate(videos) if stream.disposition & Disposition.default)
    chosen = next(default, 0) if number is None else number
    listed = ", ".join(f"{i}: {_described(stream)}" for i, stream in enumerate(videos))
    if number is None and notes is not None and sum(getattr(one, "width", 0) > 0 for one in videos) > 1:
        notes.append(f"several video streams ({listed}); using {chosen}, choose another with --stream")
    if not 0 <= chosen < len(videos):
        raise SourceError(f"{name}: has no video stream {chosen}; choose --stream from {listed}")
    if getattr(videos[chosen], "codec_context", None) is None:
        raise SourceError(f"{name}: can't decode its video codec; convert it to H.264")
    stream = videos[chosen]
    if stream.width * stream.height > max_pixels:
        size = f"{stream.width}x{stream.height}"
        raise SourceError(f"{name}: its pictures are too large ({size}); raise the limit with --max-pixels")
    # The size may change later. FFmpeg counts what it allocates, a little more than is shown.
    stream.codec_context.options = {"max_pixels": str(max_pixels + max_pixels // 4 + 65536)}
    return stream


def videos_of(container: InputContainer) -> list[VideoStream]:
    """The video streams, without cover art."""
    covers = Disposition.attached_pic | Disposition.timed_thumbnails
    return [stream for stream in container.streams.video if not stream.disposition & covers]


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
    words = str(getattr(problem, "strerror", None) or problem) or type(problem).__name__
    return public_name(" ".join(words.split()))


def advice(source: Source, problem: BaseException | None = None) -> str:
    """What a user can do about a source that failed, with FFmpeg's error if there was one.

    >>> advice("rtsp://me:secret@camera/1")
    'check the address and the network'
    """
    if isinstance(problem, _REFUSED) or getattr(problem, "code", 0) in (401, 403):
        return "check the user and password in its URL"
    if isinstance(problem, av.error.ProtocolNotFoundError):
        return "use another kind of URL (rtsp, rtmp, http, udp, tcp, …)"
    kind = kind_of(source)
    if kind == "url" and str(source).lower().startswith(_DOWNLOADABLE):
        return f"{_ADVICE[kind]}, or download it and name the file"
    return _ADVICE[kind]


def trouble_with(pieces: Pieces, source: Source) -> list[str]:
    """What a user should know about the pieces of a playlist, a line each."""
    lines = []
    if pieces.refused:
        allowed = _ALLOWED["url" if kind_of(source) == "url" else "file"]
        lines.append(f"may not open {public_name(_first_of(pieces.refused))}; {allowed}")
    if pieces.missing:
        fix = "check the server" if kind_of(source) == "url" else "copy them beside it"
        lines.append(f"pieces of the playlist are missing: {public_name(_first_of(pieces.missing))}; {fix}")
    if pieces.cut_off:
        lines.append(
            "the playlist has no end mark: it was cut off, or is still being written; read as it is now"
        )
    return lines


def _first_of(names: Iterable[str]) -> str:
    several = list(dict.fromkeys(names))
    return several[0] + (f" and {len(several) - 1} more" if len(several) > 1 else "")


def unreadable(source: Source) -> SourceError:
    """The refusal of a source that isn't a readable video."""
    lacking = _LACKING.get(
        kind_of(source), "damaged, cut off before its index, or not a video at all; check it with ffprobe"
    )
    return SourceError(f"{source_name(source)}: can't read it as a video: {lacking}")


def _why_not_opened(source: Source, problem: BaseException, connecting: Connecting) -> str:
    """Why a source didn't open, in words that need no knowledge of FFmpeg."""
    if isinstance(problem, av.error.ExitError | TimeoutError) and not connecting.stopped:
        return f"no answer within {connecting.open_timeout:g} s"
    if isinstance(problem, av.error.ProtocolNotFoundError):
        return "unknown protocol"
    if why := getattr(problem, "verify_message", None):
        return f"can't trust its certificate ({why}); {INSECURE} in front of the URL accepts any"
    own = type(problem).__module__.startswith("av.")
    plain = _PLAIN_ERRORS.get((kind_of(source), getattr(problem, "errno", 0))) if own else None
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
        raise SourceError(
            f"{name}: is a directory without pictures; name the videos in it, as in {Path(name) / '*.mp4'}"
        )
    if stat.S_ISREG(status.st_mode) and status.st_size == 0:
        raise SourceError(f"{name}: is empty (0 bytes); download or record it again")


def _open_url(
    text: str, connecting: Connecting, timeout: tuple[float, float], pieces: Pieces
) -> InputContainer:
    url, how = plain_url(text), dict[str, Any]()
    try:
        how["options"] = options_for_url(text) | connecting.options_for(url)
    except SourceError as problem:
        raise SourceError(f"{source_name(text)}: {problem}") from None
    scheme, host = url.partition(":")[0].lower(), urlsplit(url).hostname
    if scheme in ("http", "https", "rtsp", "rtsps"):
        from ongebd.video import web  # here, because ssl is slow to import
    until = time.monotonic() + connecting.open_timeout
    with _opening(text, connecting, pieces), interruptible(connecting.stop, until):
        if scheme in ("http", "https"):
            how["folder"] = web.Web(text, connecting, pieces)
            if how["folder"].is_playlist:  # which FFmpeg would doubt if its name doesn't say so
                how["format"] = "hls"
        elif scheme in ("rtsp", "rtsps"):
            url = web.relay_for(text, connecting, pieces)
        elif host:  # nothing ends FFmpeg's own look-up, which then finds it at once
            aside(lambda: socket.getaddrinfo(host, None), connecting)
    return _open(url, text, connecting, timeout=timeout, pieces=pieces, **how)


def _open_stdin(connecting: Connecting, pieces: Pieces) -> InputContainer:
    if sys.stdin is None or sys.stdin.isatty():
        raise SourceError(f"{STANDARD_INPUT}: nothing is piped in; try cat video.ts | ongebd detect -")
    if _stdin_is_a_file():
        # FFmpeg reads the descriptor itself: no GIL, and it can seek in a redirected file.
        return _open("fd:", "-", connecting, options=DATA_OPTIONS | {"fd": str(sys.stdin.fileno())})
    pieces.pipe = PipeEnd(sys.stdin.fileno(), connecting)
    return _open(pieces.pipe, "-", connecting, options=DATA_OPTIONS)


def _stdin_is_a_file() -> bool:
    try:
        return sys.stdin is not None and stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _open(
    target: str | BinaryIO | PipeEnd | Rest,
    source: Source,
    connecting: Connecting,
    *,
    options: Mapping[str, str],
    folder: PlaylistFolder | Web | None = None,
    pieces: Pieces | None = None,
    **how: Any,
) -> InputContainer:
    """Open with PyAV; `how` are its arguments."""
    follow = {} if isinstance(target, Rest) else _FOLLOW
    until = time.monotonic() + sum(how["timeout"]) if is_url(str(target)) else inf
    listed = folder is not None or ("format" not in how and not is_url(source_name(source)))
    with _opening(source, connecting, pieces, listed=listed), interruptible(connecting.stop, until):
        how |= {"metadata_errors": "replace", "io_open": folder}
        how["options"] = {"max_pixels": str(connecting.max_pixels), **follow, **options}
        if kind_of(source) == "camera":  # whose driver may never answer
            return aside(lambda: cast("InputContainer", av.open(target, "r", **how)), connecting)
        return cast("InputContainer", av.open(target, "r", **how))


@contextmanager
def _opening(
    source: Source, connecting: Connecting, pieces: Pieces | None, *, listed: bool = False
) -> Iterator[None]:
    """Whatever goes wrong in the block becomes a SourceError; `listed` if only some formats may be opened."""
    name = source_name(source)
    try:
        yield
    except (av.error.FFmpegError, OSError, ValueError) as problem:
        if pieces is not None and pieces.close is not None:
            pieces.close()
        if pieces is not None and (troubles := trouble_with(pieces, source)):
            raise SourceError(f"{name}: {troubles[0]}") from None
        if isinstance(problem, av.error.InvalidDataError):
            raise unreadable(source) from None
        if isinstance(problem, av.error.ArgumentError) and listed:
            raise SourceError(f"{name}: {_NO_VIDEO}") from None
        if isinstance(problem, av.error.EOFError):
            raise SourceError(f"{name}: ends before its first frame; download or record it again") from None
        why = _why_not_opened(source, problem, connecting)
        raise SourceError(f"{name}: can't open: {why}; {advice(source, problem)}") from None
