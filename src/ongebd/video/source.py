"""Opens what a user names: a file, a URL, a camera, standard input, an open binary file."""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote_to_bytes, urlsplit
from urllib.request import url2pathname

import av
import av.error
from av.container import InputContainer
from av.stream import Disposition
from av.video.stream import VideoStream

from ongebd.common.text import STANDARD_INPUT, public_name, spoken_name
from ongebd.errors import SourceError
from ongebd.video.connecting import Connecting, PipeEnd
from ongebd.video.interruption import interruptible
from ongebd.video.refusals import Kind, where_to_look, why_not_opened

Source = str | os.PathLike[str] | BinaryIO
"""A path, a URL, `-` for standard input, `camera:N` or `/dev/videoN`, or a binary file object."""

_NO_TIMESTAMPS = 0x80  # FFmpeg's AVFMT_NOTIMESTAMPS
# FFmpeg draws any .txt file as a terminal would show it, and calls that a video.
_TEXT_ART = frozenset({"adf", "bin", "idf", "tty", "xbin"})
_CAMERA_FORMATS = {"linux": "v4l2", "darwin": "avfoundation", "win32": "dshow"}


def source_name(source: Source) -> str:
    """Name a source for people, without the secrets that a URL may carry.

    >>> source_name("rtsp://me:secret@camera/1")
    'rtsp://***@camera/1'
    """
    if isinstance(source, str | os.PathLike):
        return spoken_name(os.fspath(source))
    return public_name(str(getattr(source, "name", "a file object")))


def kind_of(source: Source) -> Kind:
    """What a source is; a "file" can be sought in, and what stands in it does not change."""
    if not isinstance(source, str | os.PathLike):
        seekable = getattr(source, "seekable", None)
        return "pipe" if seekable is not None and not seekable() else "file"
    text = os.fspath(source)
    if text == "-":
        return "file" if _stdin_is_a_file() else "pipe"
    if _is_camera(text):
        return "camera"
    if is_url(text):
        return "url"
    path = Path(local_path(text))
    return "pipe" if path.exists() and not path.is_file() else "file"


def mend(source: Source, problem: BaseException | None = None) -> str:
    """Where to look when a source fails."""
    text = os.fspath(source) if isinstance(source, str | os.PathLike) else ""
    return where_to_look(kind_of(source), text, problem)


def check_source(source: object) -> None:
    """Refuse what is no source at all.

    Raises:
        SourceError: It says what a source may be.
    """
    takes = "a source is a path or URL (text or pathlib.Path), camera:N, - or an open binary file"
    if isinstance(source, io.TextIOBase):
        raise SourceError(f"{source_name(source)}: is open as text; open it with mode 'rb'")  # type: ignore[arg-type]
    if isinstance(source, str | os.PathLike) and isinstance(text := os.fspath(source), str):
        if not text:
            raise SourceError(f"a source without a name was given (empty text); {takes}")
        return
    if isinstance(source, bytes | os.PathLike):
        raise SourceError(f"a name in bytes is no source: {takes}; os.fsdecode makes text of bytes")
    if not callable(getattr(source, "read", None)):
        several = " (of several, run each by itself)" if isinstance(source, list | tuple | set) else ""
        raise SourceError(f"{_an(type(source).__name__)} is no source: {takes}{several}")


def open_container(source: Source, connecting: Connecting | None = None) -> InputContainer:
    """Open a source for reading.

    Args:
        source: What to open.
        connecting: Time-outs, options, and whether to stop; None takes the usual ones.

    Raises:
        SourceError: It is missing, a directory, empty, or no video container; one line says which.
    """
    check_source(source)
    name = source_name(source)
    connecting = connecting or Connecting()
    if isinstance(source, str | os.PathLike):
        text = os.fspath(source)
        if text == "-":
            return _open_stdin(connecting)
        if camera := _camera_device(text):
            return _open(camera[0], source, connecting, format=camera[1], timeout=connecting.timeout)
        if is_url(text):
            options = connecting.options_for(text)
            return _open(text, source, connecting, options=options, timeout=connecting.timeout)
        path = local_path(text)
        _refuse_bad_path(path, name)
        # With "file:" in front a colon in the name is not taken for a protocol.
        return _open(f"file:{path}", source, connecting)
    return _open(source, source, connecting)


def pick_stream(container: InputContainer, number: int | None, name: str) -> VideoStream:
    """Choose the video stream to decode; cover art is never one.

    Args:
        container: An open source.
        number: Position among the source's video streams, cover art not counted; None takes the first.
        name: The source's name, for errors.

    Raises:
        SourceError: There is no video, not that many streams, or no decoder for the one chosen.
    """
    videos = [s for s in container.streams.video if not _is_cover_art(s)]
    if not videos:
        held = ", ".join(sorted({s.type for s in container.streams})) or "nothing"
        if container.streams.video:
            held = held.replace("video", "cover art")
        raise SourceError(f"{name}: has no video stream (it holds {held}); give a file with video in it")
    chosen = 0 if number is None else number
    if not 0 <= chosen < len(videos):
        listed = ", ".join(f"{i}: {_described(stream)}" for i, stream in enumerate(videos))
        raise SourceError(f"{name}: has no video stream {chosen}; choose --stream from {listed}")
    if not _decodable(videos[chosen]):
        raise SourceError(f"{name}: its video is in a codec that cannot be decoded here; convert it to H.264")
    return videos[chosen]


def has_stamps(container: InputContainer) -> bool:
    """Whether the container can hold timestamps. Raw H.264, M-JPEG, … cannot: what FFmpeg says is a guess."""
    return not container.format.flags & _NO_TIMESTAMPS


def is_url(text: str) -> bool:
    """Whether the text names something to be fetched by a protocol, rather than a local file."""
    return bool(re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text)) and not text.lower().startswith("file:")


def reason(problem: BaseException, connecting: Connecting | None = None) -> str:
    """FFmpeg's own words for an error, without the number and the address that PyAV puts around them."""
    if isinstance(problem, av.error.ExitError):  # "Immediate exit requested", by PyAV, for it took too long
        connecting = connecting or Connecting()
        return "it was stopped" if connecting.stopped else f"no data for {connecting.read_timeout:g} s"
    if isinstance(problem, OSError) and problem.errno == errno.EIO and is_url(str(problem.filename)):
        return "the connection ended before the source said that it was over"
    return public_name(str(getattr(problem, "strerror", None) or problem) or type(problem).__name__)


def unreadable(source: Source) -> SourceError:
    """The refusal of a source of which nothing can be read."""
    return SourceError(f"{source_name(source)}: is not a video that can be read ({_what_it_lacks(source)})")


def _decodable(stream: VideoStream) -> bool:
    return getattr(stream, "codec_context", None) is not None


def _described(stream: VideoStream) -> str:
    if not _decodable(stream):
        return "an unknown codec"
    return f"{stream.codec_context.name} {stream.width}x{stream.height}"


def _is_cover_art(stream: VideoStream) -> bool:
    return bool(stream.disposition & (Disposition.attached_pic | Disposition.timed_thumbnails))


def _is_camera(text: str) -> bool:
    return bool(re.fullmatch(r"camera:\d+|/dev/video\d+", text))


def _camera_device(text: str) -> tuple[str, str] | None:
    """The device and its FFmpeg format, for `camera:N` and `/dev/videoN`."""
    number = re.fullmatch(r"camera:(\d+)", text)
    if number:
        platform = sys.platform
        if platform not in _CAMERA_FORMATS:
            raise SourceError(f"{text}: cameras are not known on {platform}; give a URL or a file")
        device = f"/dev/video{number[1]}" if platform == "linux" else number[1]
        if platform == "win32":
            device = f"video={number[1]}"
        return device, _CAMERA_FORMATS[platform]
    if re.fullmatch(r"/dev/video\d+", text):
        return text, "v4l2"
    return None


def local_path(text: str) -> str:
    """A plain path from a path or a `file:` URL."""
    if text.lower().startswith("file://"):
        path = urlsplit(text).path
        # As bytes, for not every name on a disk is UTF-8; Windows has its own rules for drives.
        return url2pathname(path) if os.name == "nt" else os.fsdecode(unquote_to_bytes(os.fsencode(path)))
    if text.lower().startswith("file:") and not Path(text).exists():
        return text[len("file:") :]
    return text


def _refuse_bad_path(path: str, name: str) -> None:
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        raise SourceError(f"{name}: no such file; check the path") from None
    except (OSError, ValueError) as problem:
        raise SourceError(f"{name}: cannot be read ({reason(problem)}); check the path") from None
    if Path(path).is_dir():
        raise SourceError(f"{name}: is a directory; name the files in it, as in {Path(name) / '*.mp4'}")
    if Path(path).is_file() and status.st_size == 0:
        raise SourceError(f"{name}: is empty (0 bytes); fetch or record it again")


def _open_stdin(connecting: Connecting) -> InputContainer:
    if sys.stdin is None or sys.stdin.isatty():
        raise SourceError(f"{STANDARD_INPUT}: nothing is piped in; use as in: cat video.ts | ongebd detect -")
    if not _stdin_is_a_file():
        pipe = PipeEnd(sys.stdin.fileno(), connecting)
        try:
            return _open(pipe, "-", connecting)
        finally:
            if pipe.interrupted is not None:
                raise pipe.interrupted
    # FFmpeg reads the descriptor itself: no GIL, and a redirected file can be sought in.
    return _open("fd:", "-", connecting, options={"fd": str(sys.stdin.fileno())})


def _stdin_is_a_file() -> bool:
    try:
        return sys.stdin is not None and stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _an(kind: str) -> str:
    return "None" if kind == "NoneType" else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _open(
    target: str | BinaryIO | PipeEnd,
    source: Source,
    connecting: Connecting,
    *,
    format: str | None = None,  # noqa: A002 - PyAV's own name
    options: Mapping[str, str] | None = None,
    timeout: tuple[float, float] | None = None,
) -> InputContainer:
    name = source_name(source)
    try:
        with interruptible(connecting.stop):
            container = av.open(
                target,
                "r",
                format=format,
                options=dict(options or {}),
                timeout=timeout,
                metadata_errors="replace",
            )
    except av.error.InvalidDataError:
        raise unreadable(source) from None
    except av.error.EOFError:
        raise SourceError(f"{name}: ends before its first frame; fetch or record it again") from None
    except (av.error.FFmpegError, OSError, ValueError) as problem:
        late = isinstance(problem, av.error.ExitError)
        if late and not connecting.stopped:
            why = f"no answer within {connecting.open_timeout:g} s"
        else:
            why = why_not_opened(kind_of(source), problem) or reason(problem, connecting)
        raise SourceError(f"{name}: cannot be opened: {why}; {mend(source, problem)}") from None
    if container.format.name in _TEXT_ART:
        container.close()
        raise SourceError(f"{name}: is a text file, not a video; name a video file")
    return container


def _what_it_lacks(source: Source) -> str:
    if kind_of(source) == "pipe":
        return "no container that can be read without seeking; pipe MPEG-TS or Matroska, or name the file"
    if kind_of(source) == "url":
        return "what it sends is no video, or its beginning is damaged; check the address"
    return "damaged, cut off before its index, or not a video at all; check it with ffprobe"
