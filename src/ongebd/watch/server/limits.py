"""What clients may cost: limits, and a connection class that enforces them."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 256
"""Open at the same time. One more replaces one without the token, or else one that isn't being served."""
STRANGERS = 128
"""Of one address, without the token; one more replaces one of these."""
VIEWERS = 64
"""Clients that follow the streams at the same time; one more gets a 503."""
HEADER_BYTES = 16 * 1024
"""Of a request line with its headers."""
BODY_BYTES = 1024
ACCEPTED = 8
"""In a row, before requests are read: fewer than `STRANGERS`, or a flood replaces what has just come in."""
REQUEST_SECONDS = 10.0
"""For a whole request, and between two requests."""
WRITE_SECONDS = 20.0
"""How long a client may leave data unread before it is cut off; one without the token, REQUEST_SECONDS."""
KNOWN = "ongebd.known"
"""Set in the scope of a request that has the token, or needs none."""


class LimitedProtocol(H11Protocol):
    """A connection that must ask in time and read in time, and gives way to others.

    A client with the token always gets in: its connection replaces another, first one without the token.
    Uvicorn itself limits neither how slowly a request may come nor how slowly an answer may be read,
    and its `limit_concurrency` lets idle connections keep viewers out.
    """

    _request_due: asyncio.TimerHandle | None = None  # set while it is idle
    _read_due: asyncio.TimerHandle | None = None  # set while its answer isn't read
    _replaced = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._network, self._since = network(self.client[0] if self.client else ""), self.loop.time()
        self._begin_idling()
        others = [one for one in cast("set[LimitedProtocol]", self.connections - {self}) if not one._replaced]
        strangers = [one for one in others if one._network == self._network and not one._known]
        crowd = strangers if len(strangers) >= STRANGERS else others if len(others) >= CONNECTIONS else []
        if crowd:
            # Of strangers the oldest: among many that pretend to be busy, a newcomer has had no chance yet.
            gone = min(crowd, key=lambda one: (one._known, one._known and one._served, one._since))
            (self if gone._known and gone._served else gone)._replace()

    @property
    def _known(self) -> bool:
        return self.headers is not None and KNOWN in self.scope  # type: ignore[redundant-expr] # until a request

    @property
    def _served(self) -> bool:
        return self._request_due is None and self._read_due is None

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

    def _replace(self) -> None:
        self._replaced = True
        self._end_idling()
        self.transport.abort()

    def _limit_reading(self) -> None:
        if self._read_due is None:
            seconds = WRITE_SECONDS if self._known else REQUEST_SECONDS
            self._read_due = self.loop.call_later(seconds, self.transport.abort)

    def _begin_idling(self) -> None:
        self._end_idling()
        self._request_due = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)

    def _end_idling(self) -> None:
        if self._request_due is not None:
            self._request_due.cancel()
            self._request_due = None


def network(address: str) -> str:
    """An IPv4 address, or the /64 network of an IPv6 one, all of which one client may have."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv4Address):
        return str(known)
    return str(known.ipv4_mapped or ipaddress.ip_network((known, 64), strict=False))
