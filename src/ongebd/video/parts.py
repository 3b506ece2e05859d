"""What follows in a file after the video that was read: videos joined with `cat`, a new encoder's streams."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO

from av.packet import Packet
from av.video.stream import VideoStream

from ongebd.video.connecting import Rest
from ongebd.video.source import Source, local_path, source_name

_TS_PACKET = 188
_STEP = 1 << 20
_BOXES = {b"ftyp", b"moov", b"wide"}
_MAGICS = {b"FLV\1", b"DKIF", b"\x30\x26\xb2\x75", b"\x89PNG"}
"""How files begin of which FFmpeg reads only the first, if several are joined. (Of others it reads all.)"""

# How key frames begin, after a start code. In MPEG-TS nothing else tells what a packet is, if an encoder
# changes its codec and the tables don't say so.
_MPEG = {0xB3: "mpeg2video", 0xB0: "mpeg4"}
_H264_PARAMETERS, _H264_DELIMITER = (0x67, 0x47, 0x27), 0x09
_H264_PROFILES = (44, 66, 77, 88, 100, 110, 118, 122, 128, 244)
_HEVC = (0x40, 0x42, 0x46)
_CODECS = {"h264": "h264", "hevc": "hevc", "mpeg1video": "mpeg2video", "mpeg2video": "mpeg2video"}


def rest_of(source: Source, after: int, *, transport: bool) -> Rest | None:
    """What of a file may hold another video.

    Args:
        source: A file.
        after: Where the last packet of its video begins.
        transport: Whether it is MPEG-TS, of which every part can be opened. Other files begin as their first
            video did.
    """
    if not isinstance(source, str | os.PathLike) and not callable(getattr(source, "seek", None)):
        return None
    file = _opened(source)
    size = file.seek(0, os.SEEK_END)
    start: int | None = after + _TS_PACKET
    if not transport:
        file.seek(0)
        head = file.read(8)
        shift = 4 if head[4:8] in _BOXES else 0  # MP4 and MOV begin with a length
        magic = head[shift : shift + 4]
        found = _find(file, magic, after + 1) if magic in _BOXES | _MAGICS else None
        start = None if found is None else found - shift
    return None if start is None or start >= size else Rest(file, start, source_name(source))


def codec_of(packet: Packet[VideoStream], codec: str) -> str:
    """The codec of a packet out of MPEG-TS, as its bytes show it; `codec` where they don't."""
    head = bytes(memoryview(packet)[:6])
    at = head.find(b"\0\0\1") + 3
    if codec not in _CODECS or not 3 <= at <= 4 or len(head) < 6:
        return codec
    first, second = head[at], head[at + 1]
    shown = _MPEG.get(first)
    if (first in _H264_PARAMETERS and second in _H264_PROFILES) or (
        first == _H264_DELIMITER and second & 31 == 16
    ):
        shown = "h264"
    if first in _HEVC and second == 1:
        shown = "hevc"
    return codec if shown in (None, _CODECS[codec]) else shown


def is_animated_webp(source: Source) -> bool:
    """Whether a file is an animation that FFmpeg has no decoder for."""
    file = _opened(source)
    file.seek(0)
    head = file.read(_STEP)
    return head[8:12] == b"WEBP" and b"ANMF" in head


def _opened(source: Source) -> BinaryIO:
    if not isinstance(source, str | os.PathLike):
        return source
    if os.fspath(source) == "-":
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    return Path(local_path(os.fspath(source))).open("rb")


def _find(file: BinaryIO, magic: bytes, begin: int) -> int | None:
    """Where some bytes are found, from `begin` on."""
    file.seek(begin)
    at, before = begin, b""
    while data := file.read(_STEP):
        found = (before + data).find(magic)
        if found >= 0:
            return at - len(before) + found
        at, before = at + len(data), data[-len(magic) + 1 :]
    return None
