"""From the streams' histories to all pages: news in batches, which each client reads at its own pace."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import asdict
from itertools import count
from typing import Any

from ongebd.watch.history import History, KnownBoundary, Place, packed_past, packed_points
from ongebd.watch.records import StateChanged
from ongebd.watch.stream import StreamStatus
from ongebd.watch.watcher import Watcher

BATCHES_A_SECOND = 12
_KEPT_BATCHES = 60 * BATCHES_A_SECOND


class Feed:
    """The last minute of batches, as bytes that all clients share. It lives in the server's event loop.

    A client is a place in that minute, so the memory does not depend on how many there are or how slowly they
    read. A client that falls behind learns how many batches it lost, and loads the past again.
    """

    def __init__(self, watcher: Watcher) -> None:
        self.run = secrets.token_hex(4)
        self._watcher = watcher
        self._places = {key: stream.history.place for key, stream in watcher.streams.items()}
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
        streams = [
            {"key": key, "name": stream.name, **_status(stream.status())}
            for key, stream in self._watcher.streams.items()
        ]
        return {"run": self.run, "q": self._number, "now": self._now(), "streams": streams}

    async def past(self, key: str) -> bytes:
        """The last hour of a stream as JSON, up to the batch with number `q`."""
        start = {"run": self.run, "q": self._number, "now": self._now()}
        history, place = self._watcher.streams[key].history, self._places[key]
        return await asyncio.to_thread(_past, start, history, place)

    async def follow(self, after: int) -> AsyncIterator[bytes]:
        """Server-sent events of the batches after a number, until the feed is closed."""
        yield b"retry: 2000\n\n"
        while not self._closed:
            behind = self._number - after
            if behind <= 0:
                await self._news.wait()
            elif behind > len(self._batches):
                yield b'event: gap\ndata: {"lost":%d}\n\n' % (behind - len(self._batches))
                after = self._number  # the client loads the past, which reaches further
            else:
                yield self._batches[-behind]
                after += 1

    async def _gather(self) -> None:
        for tick in count():
            await asyncio.sleep(1 / BATCHES_A_SECOND)
            self._publish(everyone=tick % BATCHES_A_SECOND == 0)

    def _publish(self, *, everyone: bool) -> None:
        """Make a batch of the news; once a second, `everyone`'s status is in it."""
        content: dict[str, Any] = {"points": {}, "events": [], "states": [], "status": {}}
        for key, stream in self._watcher.streams.items():
            news = stream.history.news(self._places[key])
            self._places[key] = news.place
            if len(news.rows):
                content["points"][key] = packed_points(news.rows)
            content["events"] += map(_event, news.boundaries)
            content["states"] += map(_state, news.states)
            if everyone or news.states:
                content["status"][key] = _status(stream.status())
        content = {name: value for name, value in content.items() if value}
        if not content:
            return
        self._number += 1
        data = _json({"q": self._number, "now": self._now(), **content})
        self._batches.append(b"id: %s-%d\ndata: %s\n\n" % (self.run.encode(), self._number, data))
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _now(self) -> float:
        return round(self._watcher.clock.wall(), 3)


def _past(start: dict[str, Any], history: History, place: Place) -> bytes:
    rows, boundaries, states = history.until(place, start["now"])
    past = {"events": list(map(_event, boundaries)), "states": list(map(_state, states))}
    return _json({**start, **packed_past(rows), **past})


def _event(known: KnownBoundary) -> dict[str, Any]:
    """What the page shows of a boundary."""
    onset, found = known.onset, known.found
    event: dict[str, Any] = {
        "s": onset.stream,
        "n": onset.number,
        "w": round(onset.wall, 3),
        "t": round(onset.time, 3),
        "z": round(onset.score if found is None else found.boundary.score, 4),
        "img": onset.has_thumbnail,
    }
    if found is not None:
        one = found.boundary
        event |= {"c": round(one.time, 3), "d": round(one.decided, 3), "k": one.kind}
        event["p"] = None if one.peak is None else round(one.peak, 4)
    return {**event, "clip": True} if known.clip is not None else event


def _state(change: StateChanged) -> dict[str, Any]:
    return {"s": change.stream, "state": change.state, "reason": change.reason, "w": round(change.wall, 3)}


def _status(status: StreamStatus) -> dict[str, Any]:
    return {name: round(one, 3) if isinstance(one, float) else one for name, one in asdict(status).items()}


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
