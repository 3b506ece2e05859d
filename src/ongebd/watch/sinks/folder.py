"""Folders of limited size: a picture of each boundary, and a clip of each."""

from __future__ import annotations

import re
import tempfile
import threading
import time
from collections import deque
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

from ongebd.common.text import printable
from ongebd.common.writing import write_whole
from ongebd.errors import ConfigError, OngebdError, os_errors
from ongebd.video.pieces import mp4_of
from ongebd.watch.records import Clip, Footage, Onset
from ongebd.watch.sink import Complain, HubSink
from ongebd.watch.watcher import Watcher

_MOST_WAITING = 8
"""Clips that may wait to be written; each holds its packets in memory."""
_LEFT_BEHIND_SECONDS = 60.0
"""A watch that was killed left an unfinished file; a running one finishes it sooner."""


def file_time(wall: float) -> str:
    """A moment (Unix seconds) as it is in the names of files: `20261128T080000.123Z`."""
    return datetime.fromtimestamp(wall, UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3] + "Z"


class CappedFolder:
    """Holds a file for each onset, `20261128T080000.123Z-door-17.jpg`: time (UTC), stream, number.

    When the files would take more than `most_bytes`, the oldest are deleted, also those of earlier runs.
    Other files in the folder are neither counted nor touched.

    Args:
        what: What the files are, as in the option that names the folder.
        suffix: Of the files, with its dot.
        most_bytes: Of all files together; the newest file is always kept.

    Raises:
        ConfigError: As `check_folder`.
        OngebdError: The folder can't be made or read.
    """

    def __init__(self, folder: Path, what: str, suffix: str, most_bytes: int) -> None:
        check_folder(folder, what, most_bytes)
        self._folder, self._suffix, self._most = folder, suffix, most_bytes
        name = rf"\d{{8}}T\d{{6}}\.\d{{3}}Z-[a-z0-9-]+-\d+{re.escape(suffix)}"
        ours, unfinished = re.compile(name), re.compile(rf"\.{name}\.\d+\.part")
        with _using(folder):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()  # refuses a folder that can't be written
            for path in oldest_first(folder, unfinished):
                if time.time() - path.stat().st_mtime > _LEFT_BEHIND_SECONDS:
                    path.unlink(missing_ok=True)
            self._kept = deque((path, path.stat().st_size) for path in oldest_first(folder, ours))
        self._bytes = sum(size for _, size in self._kept)

    def write(self, onset: Onset, data: bytes) -> Path:
        """Make room by deleting the oldest files, then write the file of an onset.

        Raises:
            OSError: It can't be written; nothing of it is left.
        """
        path = self._folder / f"{file_time(onset.wall)}-{onset.stream}-{onset.number}{self._suffix}"
        while self._kept and self._bytes + len(data) > self._most:
            oldest, size = self._kept[0]
            oldest.unlink(missing_ok=True)
            self._kept.popleft()
            self._bytes -= size
        self._folder.mkdir(parents=True, exist_ok=True)
        with write_whole(path) as part:
            part.write_bytes(data)
        self._kept.append((path, len(data)))
        self._bytes += len(data)
        return path


def oldest_first(folder: Path, name: re.Pattern[str]) -> list[Path]:
    """The files of a folder that have such names, by age and not by name: a clock may have been wrong.

    A file from the future counts as the oldest.
    """
    now = time.time()
    ages = [
        (-1.0 if (changed := path.stat().st_mtime) > now else changed, path)
        for path in folder.iterdir()
        if name.fullmatch(path.name) and path.is_file() and not path.is_symlink()
    ]
    return [path for _, path in sorted(ages)]


def check_folder(folder: Path | None, what: str, most_bytes: int) -> None:
    """Refuse what can't be a `CappedFolder`, before anything is made.

    Raises:
        ConfigError: The size is below 1 MiB, or something else than a folder is there.
        OngebdError: It can't be read.
    """
    if most_bytes < 1024 * 1024:
        raise ConfigError(f"--{what}-size must be at least 1M, not {most_bytes} bytes")
    with _using(folder):
        if folder is None or folder.is_dir() or not (folder.exists() or folder.is_symlink()):
            return
    raise ConfigError(f"--{what} {printable(str(folder))} is not a folder; name a folder, existing or new")


def _using(folder: Path | None) -> AbstractContextManager[None]:
    return os_errors(f"can't use {printable(str(folder))}", "name another folder", OngebdError)


class PictureSink(HubSink):
    """Writes the picture of each onset into a `CappedFolder`, with its errors."""

    def __init__(self, folder: Path, watcher: Watcher, complain: Complain, most_bytes: int = 1 << 30) -> None:
        self._folder = CappedFolder(folder, "thumbnails", ".jpg", most_bytes)
        self._streams = watcher.streams
        super().__init__("thumbnails", watcher.hub, (Onset,), complain, limit=256)

    def handle(self, record: Onset) -> None:
        """Write one picture."""
        picture = self._streams[record.stream].history.picture(record.number)
        if picture is not None:
            self._folder.write(record, picture)


class ClipSink(HubSink):
    """Writes the clip of each onset into a `CappedFolder`, with its errors, as MP4."""

    publishes = True
    tries = 2  # a command that waits for its clip is an alarm

    def __init__(self, folder: Path, watcher: Watcher, complain: Complain, most_bytes: int = 4 << 30) -> None:
        self._folder = CappedFolder(folder, "clips", ".mp4", most_bytes)
        self._streams = watcher.streams
        self._late = threading.Event()
        super().__init__("clips", watcher.footage, (Footage,), complain, limit=_MOST_WAITING)

    def handle(self, record: Footage) -> None:
        """Write one clip, and publish it."""
        onset = record.onset
        if record.piece is None:
            raise OngebdError(f"no clip of boundary {onset.number} of {onset.stream}: no key frame arrived")
        data, seconds = mp4_of(record.piece, self._late)
        path = self._folder.write(onset, data)
        clip = Clip(onset.stream, onset.number, onset.epoch, onset.time, onset.wall, path, seconds)
        self._streams[onset.stream].settle_clip(onset.number, clip)

    def missed(self, record: Footage) -> None:
        """The boundary has no clip."""
        self._streams[record.onset.stream].settle_clip(record.onset.number)

    def abandon(self) -> None:
        """Stop encoding the current clip."""
        self._late.set()

    def tidy(self) -> None:
        """No more clips will come."""
        for stream in self._streams.values():
            for known in stream.history.boundaries():
                stream.settle_clip(known.onset.number)
