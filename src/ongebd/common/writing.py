"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MUXERS = {".mp4": "mp4", ".m4v": "mp4", ".mov": "mov", ".mkv": "matroska", ".webm": "webm"}
"""Endings of videos that can be written, and FFmpeg's names for them."""


@contextmanager
def write_whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`. It replaces `path` at the end of the block.

    An exception in the block, Ctrl-C too, leaves `path` untouched and removes the temporary file.

    >>> with write_whole(Path("report.md")) as part:  # doctest: +SKIP
    ...     part.write_text("# Report")
    """
    part = path.with_name(f".{path.name[:80]}.{os.getpid()}.part")
    try:
        yield part
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise
