"""From the watcher to all pages: news in batches, which each client reads at its own pace."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import asdict
from itertools import count
from typing import Any

from ongebd.watch.cameras import OUTPUTS
from ongebd.watch.sinks.kept import KeptIncidents, Row
from ongebd.watch.stream import StreamStatus
from ongebd.watch.watcher import Watcher

BATCHES_A_SECOND = 4
_KEPT_BATCHES = 60 * BATCHES_A_SECOND
_SHOWN = (
    *("id", "stream", "name", "wall", "wall_end", "ended"),
    *("peak", "strength", "count", "kind", "held", "picture", "clip"),
)


class Feed:
    """The last minute of batches, as bytes that all clients share. It lives in the server's event loop.

    A client is a place in that minute, so the memory does not depend on how many there are or how slowly they
    read. A client that falls behind learns how many batches it lost, and loads everything again.
    """

    def __init__(self, watcher: Watcher, kept: KeptIncidents) -> None:
        self.run = kept.run
        self._watcher, self._kept = watcher, kept
        self._states: dict[str, tuple[str, str]] = {}  # as told last, with their reasons
        self._number = 0
        self._batches: deque[bytes] = deque(maxlen=_KEPT_BATCHES)  # the newest has the number `_number`
        self._news = asyncio.Event()
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to gather, in the running loop."""
        self._task = asyncio.get_running_loop().create_task(self._gather())

    def close(self) -> None:
        """End the gathering and every client's stream."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
        self._wake()

    @property
    def alive(self) -> bool:
        """Whether it gathers."""
        return self._task is not None and not self._task.done()

    def overview(self) -> dict[str, Any]:
        """The streams and their status, and the newest batch's number."""
        streams = []
        for key, stream in self._watcher.streams.items():
            sinks = {one.name for one in self._watcher.sinks if one.cameras is None or key in one.cameras}
            about = {"key": key, "name": stream.name, "masks": stream.masks.polygons}
            about["outputs"] = sorted(sinks.intersection(OUTPUTS))
            streams.append(about | _status(stream.status()))
        return {"run": self.run, "q": self._number, "now": self._now(), "streams": streams}

    async def follow(self, after: int) -> AsyncIterator[bytes]:
        """Server-sent events of the batches after a number, until the feed is closed."""
        yield b"retry: 2000\n\n"
        while not self._closed:
            behind = self._number - after
            if behind <= 0:
                await self._news.wait()
            elif behind > len(self._batches):
                yield b'event: gap\ndata: {"lost":%d}\n\n' % (behind - len(self._batches))
                after = self._number  # the client loads everything again
            else:
                yield self._batches[-behind]
                after += 1

    async def _gather(self) -> None:
        for tick in count():
            await asyncio.sleep(1 / BATCHES_A_SECOND)
            self._publish(everyone=tick % BATCHES_A_SECOND == 0)

    def _publish(self, *, everyone: bool) -> None:
        """Make a batch of the news; once a second, `everyone`'s status is in it."""
        streams = {}
        for key, stream in self._watcher.streams.items():
            status = stream.status()
            state = status.state, status.reason
            if everyone or state != self._states.get(key):
                streams[key] = _status(status)
            self._states[key] = state
        incidents = list(map(shown, self._kept.news()))
        content = {name: value for name, value in (("status", streams), ("incidents", incidents)) if value}
        if not content:
            return
        self._number += 1
        data = json.dumps({"q": self._number, "now": self._now(), **content}, separators=(",", ":")).encode()
        self._batches.append(b"id: %s-%d\ndata: %s\n\n" % (self.run.encode(), self._number, data))
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _now(self) -> float:
        return round(self._watcher.clock.wall(), 3)


def shown(row: Row) -> dict[str, Any]:
    """What the page shows of an incident."""
    return {name: row[name] for name in _SHOWN} | {"clip": row["clip"] is not None}


def _status(status: StreamStatus) -> dict[str, Any]:
    return {name: round(one, 3) if isinstance(one, float) else one for name, one in asdict(status).items()}
