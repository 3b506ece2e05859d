"""What clients may cost: limits, and a connection class that enforces them."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 256
"""Open at the same time. One more replaces the one that has been idle longest, if one is idle."""
VIEWERS = 64
"""Clients that follow the streams at the same time; one more gets a 503."""
HEADER_BYTES = 16 * 1024
"""Of a request line with its headers."""
BODY_BYTES = 1024
REQUEST_SECONDS = 10.0
"""For a whole request, and between two requests."""
WRITE_SECONDS = 20.0
"""How long a client may leave data unread before it is cut off."""


class LimitedProtocol(H11Protocol):
    """A connection that must ask in time and read in time, and gives way to others while it is idle.

    Uvicorn itself limits neither how slowly a request may come nor how slowly an answer may be read, and its
    `limit_concurrency` lets idle connections keep viewers out.
    """

    _request_due: asyncio.TimerHandle | None = None  # set while it is idle
    _read_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            others = cast("set[LimitedProtocol]", self.connections)
            idle = {one._request_due.when(): one for one in others if one._request_due is not None}
            if not idle:
                transport.abort()
                return
            longest = idle[min(idle)]
            longest._end_idling()
            longest.transport.abort()
        self._begin_idling()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete and not cycle.more_body:
            self._end_idling()

    def on_response_complete(self) -> None:
        unfinished = self.cycle.more_body
        super().on_response_complete()
        if unfinished:  # the rest of the request is useless, however slowly it comes
            self.transport.close()
        if self.transport.is_closing():
            self._end_idling()
            self._limit_reading()
        elif self.cycle.response_complete or self.cycle.more_body:  # else the next request is there
            self._begin_idling()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._limit_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._read_due is not None:
            self._read_due.cancel()
            self._read_due = None

    def shutdown(self) -> None:
        super().shutdown()
        self.loop.call_later(0.5, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._end_idling()
        self.resume_writing()

    def _limit_reading(self) -> None:
        if self._read_due is None:
            self._read_due = self.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def _begin_idling(self) -> None:
        self._end_idling()
        self._request_due = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)

    def _end_idling(self) -> None:
        if self._request_due is not None:
            self._request_due.cancel()
            self._request_due = None
