"""Keeps a picture of each boundary in a folder of limited size."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from ongebd.errors import ConfigError, OngebdError
from ongebd.live.hub import Hub
from ongebd.live.records import Onset, Record
from ongebd.live.sinks.base import Complain, HubSink

_OURS = re.compile(r"\d{8}T\d{6}\.\d{3}Z-[a-z0-9-]+-\d+\.jpg")


class PictureSink(HubSink):
    """Writes the picture of each onset as `20261128T080000.123Z-door-17.jpg`: when (UTC), stream, number.

    When the pictures take more than `most_bytes` the oldest are deleted, those of earlier runs too. Other
    files in the folder are neither counted nor touched.

    Args:
        folder: Made if it is not there.
        hub: Where records come from.
        thumbnail: The picture of a stream's boundary, by key and number.
        complain: Who hears of trouble.
        most_bytes: Of all pictures together.

    Raises:
        ConfigError: The size is below 1 MiB.
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
        if most_bytes < 1024 * 1024:
            raise ConfigError(f"a folder of thumbnails takes at least 1 MiB, not {most_bytes} bytes")
        self._folder, self._thumbnail, self._most = folder, thumbnail, most_bytes
        try:
            folder.mkdir(parents=True, exist_ok=True)
            there = sorted(path for path in folder.iterdir() if _OURS.fullmatch(path.name))
            self._kept = deque((path, path.stat().st_size) for path in there)
        except OSError as problem:
            raise OngebdError(f"cannot use {folder}: {problem.strerror or problem}; name another") from None
        self._bytes = sum(size for _, size in self._kept)
        super().__init__("thumbnails", hub, (Onset,), complain, limit=256)

    def handle(self, record: Record) -> None:
        """Write one picture, and delete the oldest where they are too many."""
        assert isinstance(record, Onset)
        picture = self._thumbnail(record.stream, record.number)
        if picture is None:
            return
        when = datetime.fromtimestamp(record.wall, UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
        path = self._folder / f"{when}Z-{record.stream}-{record.number}.jpg"
        part = path.with_suffix(".part")
        try:
            part.write_bytes(picture)
            part.replace(path)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        self._kept.append((path, len(picture)))
        self._bytes += len(picture)
        while self._bytes > self._most and len(self._kept) > 1:
            oldest, size = self._kept.popleft()
            oldest.unlink(missing_ok=True)
            self._bytes -= size
