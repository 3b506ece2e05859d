"""Folders of limited size: a picture of each boundary, and a clip of each."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from ongebd.common.text import printable
from ongebd.errors import ConfigError, OngebdError
from ongebd.video.pieces import mp4_of
from ongebd.watch.hub import Hub
from ongebd.watch.records import Clip, Footage, Onset, Record
from ongebd.watch.sinks.base import Complain, HubSink

_LEFT_BEHIND_SECONDS = 60.0


class CappedFolder:
    """Holds a file for each onset, `20261128T080000.123Z-door-17.jpg`: when (UTC), stream, number.

    A file has its name when it is whole. When all take more than `most_bytes` the oldest are deleted, those
    of earlier runs too. Other files in the folder are neither counted nor touched.

    Args:
        folder: Made if it is not there.
        what: That it is of, for people.
        ending: Of the files, with its dot.
        most_bytes: Of all files together; the newest one is kept in any case.

    Raises:
        ConfigError: As `check_folder`.
        OngebdError: The folder cannot be made or read.
    """

    def __init__(self, folder: Path, what: str, ending: str, most_bytes: int) -> None:
        check_folder(folder, what, most_bytes)
        self._folder, self._ending, self._most = folder, ending, most_bytes
        ours = re.compile(rf"\d{{8}}T\d{{6}}\.\d{{3}}Z-[a-z0-9-]+-\d+{re.escape(ending)}(\.part)?")
        with _using(folder):
            folder.mkdir(parents=True, exist_ok=True)
            there = sorted(path for path in folder.iterdir() if ours.fullmatch(path.name))
            self._kept = deque((path, path.stat().st_size) for path in there if path.suffix != ".part")
            for path in there:  # a watch that was killed was writing it; a running one takes no minute
                if path.suffix == ".part" and time.time() - path.stat().st_mtime > _LEFT_BEHIND_SECONDS:
                    path.unlink(missing_ok=True)
        self._bytes = sum(size for _, size in self._kept)

    def write(self, onset: Onset, data: bytes) -> Path:
        """Write the file of an onset, and delete the oldest where they are too many.

        Raises:
            OSError: It cannot be written; nothing of it is left.
        """
        when = datetime.fromtimestamp(onset.wall, UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
        path = self._folder / f"{when}Z-{onset.stream}-{onset.number}{self._ending}"
        part = path.with_name(f"{path.name}.part")
        try:
            part.write_bytes(data)
            part.replace(path)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        self._kept.append((path, len(data)))
        self._bytes += len(data)
        while self._bytes > self._most and len(self._kept) > 1:
            oldest, size = self._kept.popleft()
            oldest.unlink(missing_ok=True)
            self._bytes -= size
        return path


def check_folder(folder: Path | None, what: str, most_bytes: int) -> None:
    """Refuse what can be no `CappedFolder`, before anything is made.

    Raises:
        ConfigError: The size is below 1 MiB, or there is something else than a folder.
        OngebdError: It cannot be looked at.
    """
    if most_bytes < 1024 * 1024:
        raise ConfigError(f"a folder of {what} takes at least 1 MiB, not {most_bytes} bytes")
    with _using(folder):
        if folder is None or folder.is_dir() or not (folder.exists() or folder.is_symlink()):
            return
    raise ConfigError(f"--{what} {printable(str(folder))} is no folder; name one, or one to be made")


@contextlib.contextmanager
def _using(folder: Path | None) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as problem:
        cause = getattr(problem, "strerror", None) or problem
        raise OngebdError(f"cannot use {printable(str(folder))}: {cause}; name another") from None


class PictureSink(HubSink):
    """Writes the picture of each onset into a `CappedFolder`.

    Args:
        folder: Made if it is not there.
        hub: Where records come from.
        thumbnail: The picture of a stream's boundary, by key and number.
        complain: Who hears of trouble.
        most_bytes: Of all pictures together.

    Raises:
        ConfigError: As `check_folder`.
        OngebdError: The folder cannot be made or read.
    """

    def __init__(
        self,
        folder: Path,
        hub: Hub,
        thumbnail: Callable[[str, int], bytes | None],
        complain: Complain,
        *,
        most_bytes: int = 1024 * 1024 * 1024,
    ) -> None:
        self._folder, self._thumbnail = CappedFolder(folder, "thumbnails", ".jpg", most_bytes), thumbnail
        super().__init__("thumbnails", hub, (Onset,), complain, limit=256)

    def handle(self, record: Record) -> None:
        """Write one picture."""
        assert isinstance(record, Onset)
        picture = self._thumbnail(record.stream, record.number)
        if picture is not None:
            self._folder.write(record, picture)


class ClipSink(HubSink):
    """Writes the clip of each onset into a `CappedFolder`, as MP4 (`ongebd.video.pieces.mp4_of`).

    Args:
        folder: Made if it is not there.
        footage: Where clips to be written come from: `Watcher.footage`.
        tell: Hears of each that is written: `Watcher.wrote`.
        tell_missed: Hears of each onset that there will be no clip of: `Watcher.missed`.
        complain: Who hears of trouble.
        most_bytes: Of all clips together.
        limit: Clips that may wait to be written; each holds its packets in memory.

    Raises:
        ConfigError: As `check_folder`.
        OngebdError: The folder cannot be made or read.
    """

    tells = True

    def __init__(
        self,
        folder: Path,
        footage: Hub,
        tell: Callable[[Clip], object],
        tell_missed: Callable[[Onset], object],
        complain: Complain,
        *,
        most_bytes: int = 4 * 1024 * 1024 * 1024,
        limit: int = 8,
    ) -> None:
        self._folder, self._tell_clip = CappedFolder(folder, "clips", ".mp4", most_bytes), tell
        self._tell_missed = tell_missed
        self._late = threading.Event()
        super().__init__("clips", footage, (Footage,), complain, limit=limit)

    def handle(self, record: Record) -> None:
        """Write one clip, and tell it."""
        assert isinstance(record, Footage)
        onset = record.onset
        if record.piece is None:
            raise OngebdError(f"there is none of boundary {onset.number} of {onset.stream}: no keyframe came")
        data, seconds = mp4_of(record.piece, self._late)
        path = self._folder.write(onset, data)
        self._tell_clip(Clip(onset.stream, onset.number, onset.epoch, onset.time, onset.wall, path, seconds))

    def missed(self, record: Record) -> None:
        """Tell that there is no clip."""
        assert isinstance(record, Footage)
        self._tell_missed(record.onset)

    def abandon(self) -> None:
        """Give up the clip that is being coded."""
        self._late.set()
