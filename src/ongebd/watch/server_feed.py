"""From the hub to all pages: a thread gathers records into batches, which clients read at their pace."""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

from ongebd.watch.records import Clip, Dropped, Found, Onset, Point, Retuned, StateChanged
from ongebd.watch.server_curves import pack_points
from ongebd.watch.server_past import Past
from ongebd.watch.server_watched import Status, Watched

BATCHES_A_SECOND = 12
STATUS_SECONDS = 1.0
_KEPT_BATCHES = 60 * BATCHES_A_SECOND
_KEPT_BYTES = 8 * 1024 * 1024
_LARGEST_CHUNK = 64 * 1024
_HUB_LIMIT = 16 * 1024


class Feed:
    """The streams' pasts, and the last minute of batches as bytes that are shared by all clients.

    A client is a place in that minute: however many there are and however slowly they read, the memory is the
    same. One that falls out of the minute is told how many batches it lost, and loads the past again.

    Args:
        watcher: What is watched.
        clock: Unix seconds, the same that the records' `wall` comes from.
    """

    def __init__(self, watcher: Watched, clock: Callable[[], float] = time.time) -> None:
        self.run = secrets.token_hex(4)
        self._watcher, self._clock = watcher, clock
        self._pasts: dict[str, Past] = {}
        self._seeded: dict[str, float] = {}
        self._number = 0
        self._lock = threading.Lock()
        self._records = watcher.hub.subscribe(
            Point, Onset, Found, StateChanged, Dropped, Retuned, Clip, limit=_HUB_LIMIT
        )
        self._thread = threading.Thread(target=self._gather, name="ongebd-page-feed", daemon=True)
        self._stopping = threading.Event()
        # These belong to the server's loop.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._batches: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._news = asyncio.Event()
        self._closed = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take over what was seen until now, and begin to gather."""
        self._loop = loop
        self._thread.start()

    def stop(self) -> None:
        """End the thread and every client's stream; from any thread but the loop's."""
        self._stopping.set()
        self._records.close()
        if self._thread.ident is not None:
            self._thread.join()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._close)

    @property
    def alive(self) -> bool:
        """Whether records are being gathered."""
        return self._thread.is_alive()

    def overview(self) -> dict[str, Any]:
        """What streams there are and how they do, and the newest batch's number."""
        streams = [
            {"key": key, "name": stream.name, **_told(stream.status())}
            for key, stream in self._watcher.streams.items()
        ]
        with self._lock:
            return {"run": self.run, "q": self._number, "now": round(self._clock(), 3), "streams": streams}

    def past(self, key: str) -> bytes:
        """The last hour of a stream as JSON, up to the batch of number `q`."""
        now = self._clock()
        with self._lock:
            past = self._pasts.get(key)
            packed = (past or Past()).packed(now)
            number = self._number
        return _json({"run": self.run, "q": number, "now": round(now, 3), **packed})

    async def follow(self, after: int) -> AsyncIterator[bytes]:
        """Server-sent events from the batch behind number `after` on, until the feed stops."""
        yield b"retry: 2000\n\n"
        place = after
        while not self._closed:
            if not self._batches or self._batches[-1][0] <= place:
                await self._news.wait()
                continue
            lost = self._batches[0][0] - place - 1
            if lost > 0:
                yield b'event: gap\ndata: {"lost":%d}\n\n' % lost
                place = self._batches[-1][0]  # it loads the past, which reaches further
                continue
            chunk, place = self._chunk(place)
            yield chunk

    def _chunk(self, place: int) -> tuple[bytes, int]:
        """The messages behind a place, as many as a connection takes at once, and the last one's number."""
        newest = self._batches[-1][0]
        joined: list[bytes] = []
        size = 0
        for number, message in itertools.islice(self._batches, len(self._batches) - (newest - place), None):
            if joined and size + len(message) > _LARGEST_CHUNK:
                break
            joined.append(message)
            size, place = size + len(message), number
        return b"".join(joined), place

    # What follows runs in the feed's own thread.

    def _gather(self) -> None:
        self._seed()
        due = time.monotonic()
        status_due, lost = due, self._records.lost
        while not self._stopping.is_set():
            due = max(due + 1 / BATCHES_A_SECOND, time.monotonic())
            self._stopping.wait(due - time.monotonic())
            records = self._waiting()
            missed, lost = self._records.lost - lost, self._records.lost
            everyone = time.monotonic() >= status_due or missed > 0
            if everyone:
                status_due = time.monotonic() + STATUS_SECONDS
            if records or everyone:
                self._publish(records, everyone, missed)

    def _waiting(self) -> list[Any]:
        """The records that wait now, but no more than the hub keeps."""
        records: list[Any] = []
        while len(records) < _HUB_LIMIT and (record := self._records.get(0)) is not None:
            records.append(record)
        return records

    def _seed(self) -> None:
        """Learn what the watcher remembers; what is under way from the hub may be in it already."""
        with self._lock:
            for key, stream in self._watcher.streams.items():
                self._seeded[key] = self._pasts.setdefault(key, Past()).seed(stream)

    def _publish(self, records: list[Any], everyone: bool, missed: int) -> None:
        if missed:  # this thread was kept waiting: the watcher still knows what was missed
            self._seed()
        seeded, self._seeded = self._seeded, {}
        points: dict[str, list[tuple[Point, int]]] = {}
        told: dict[str, list[Any]] = {"events": [], "states": []}
        concerned = set(self._watcher.streams if everyone else ())
        with self._lock:
            for record in records:
                past = self._pasts.setdefault(record.stream, Past())
                match record:
                    case Point() if record.wall <= seeded.get(record.stream, 0.0):
                        pass
                    case Point():
                        flags = past.point(record)
                        points.setdefault(record.stream, []).append((record, flags))
                    case Onset():
                        told["events"].append(past.onset(record))
                    case Found():
                        told["events"].append(past.found(record))
                    case Clip():
                        told["events"].extend(past.clip(record))
                    case StateChanged():
                        told["states"].append(past.state(record))
                        concerned.add(record.stream)
                    case _:
                        concerned.add(record.stream)
            self._number += 1
            number = self._number
        statuses = {
            key: _told(self._watcher.streams[key].status()) for key in concerned & set(self._watcher.streams)
        }
        batch: dict[str, Any] = {"q": number, "now": round(self._clock(), 3)}
        if points:
            batch["points"] = {key: pack_points(rows) for key, rows in points.items()}
        batch.update({name: rows for name, rows in told.items() if rows})
        if statuses:
            batch["status"] = statuses
        kind = b"event: gap\n" if missed else b""
        data = _json({"lost": missed, "q": number}) if missed else _json(batch)
        message = b"id: %s-%d\n%sdata: %s\n\n" % (self.run.encode(), number, kind, data)
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._append, number, message)

    # What follows runs in the server's loop.

    def _append(self, number: int, message: bytes) -> None:
        self._batches.append((number, message))
        self._bytes += len(message)
        while len(self._batches) > _KEPT_BATCHES or self._bytes > _KEPT_BYTES:
            self._bytes -= len(self._batches.popleft()[1])
        self._wake()

    def _close(self) -> None:
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


def _told(status: Status) -> dict[str, Any]:
    return {
        "state": status.state,
        "reason": status.reason,
        "epoch": status.epoch,
        "frames": status.frames,
        "fps": round(status.fps, 1),
        "lag": round(status.lag, 3),
        "dropped": status.dropped,
        "boundaries": status.boundaries,
        "reconnects": status.reconnects,
        "sensitivity": round(status.sensitivity, 3),
        "since": round(status.since, 3),
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
