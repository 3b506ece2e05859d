"""What one client may cost: limits, and a connection that holds every client to them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle


@dataclass(frozen=True, slots=True)
class Limits:
    """What all clients together, and each of them, may use.

    Attributes:
        connections: Open at once. One more takes the place of the longest waiting one that has asked nothing;
            where all are being answered, it is refused.
        viewers: Clients that follow the streams at once; one more is told so (503).
        header_bytes: Of a request line with its headers.
        body_bytes: Of what a client may send.
        request_seconds: For a whole request, headers and body, and between two of them.
        write_seconds: How long a client may leave unread what was sent to it before it is cut off.
    """

    connections: int = 256
    viewers: int = 64
    header_bytes: int = 16 * 1024
    body_bytes: int = 1024
    request_seconds: float = 10.0
    write_seconds: float = 20.0


def limited_protocol(limits: Limits) -> type[H11Protocol]:
    """A connection class for uvicorn, of one server: its connections know of each other."""
    idle: OrderedDict[LimitedProtocol, None] = OrderedDict()

    class LimitedProtocol(H11Protocol):
        """A connection that must ask in time, read in time, and give way to others while it does neither."""

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._deadline: asyncio.TimerHandle | None = None
            self._unread: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                if not idle:
                    transport.abort()
                    return
                idle.popitem(last=False)[0].transport.abort()
            self._await_request()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            cycle = cast("RequestResponseCycle | None", self.cycle)
            if cycle is not None and not cycle.response_complete and not cycle.more_body:
                self._asked()

        def on_response_complete(self) -> None:
            unfinished = self.cycle.more_body
            super().on_response_complete()
            if unfinished:  # what else it sends is of no use, however slowly it comes
                self.transport.close()
            if self.transport.is_closing():
                self._asked()
                self._limit_reading()
            elif self.cycle.response_complete or self.cycle.more_body:  # else the next one has come already
                self._await_request()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._limit_reading()

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._unread is not None:
                self._unread.cancel()
                self._unread = None

        def shutdown(self) -> None:
            super().shutdown()
            self.loop.call_later(0.5, self.transport.abort)

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._asked()
            if self._unread is not None:
                self._unread.cancel()

        def _await_request(self) -> None:
            self._asked()
            idle[self] = None
            self._deadline = self.loop.call_later(limits.request_seconds, self.transport.abort)

        def _asked(self) -> None:
            idle.pop(self, None)
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _limit_reading(self) -> None:
            if self._unread is None:
                self._unread = self.loop.call_later(limits.write_seconds, self.transport.abort)

    return LimitedProtocol
