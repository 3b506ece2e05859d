"""`serve`: the page of a running watcher, over HTTP, in its own thread."""

from __future__ import annotations

import ipaddress
import os
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from ongebd.errors import ConfigError, MissingExtraError, OngebdError
from ongebd.watch.sinks.kept import KeptIncidents
from ongebd.watch.watcher import Watcher

try:
    import uvicorn

    from ongebd.watch.server.access import Access
    from ongebd.watch.server.app import app
    from ongebd.watch.server.feed import Feed
    from ongebd.watch.server.limits import ACCEPTED, HEADER_BYTES, REQUEST_SECONDS, LimitedProtocol
except ModuleNotFoundError as problem:
    if (problem.name or "").startswith("ongebd"):
        raise
    raise MissingExtraError.of(problem.name, "live") from None

_SEND_BUFFER = 128 * 1024
_WAITING = 512


def serve(
    watcher: Watcher,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: str | None = None,
    *,
    names: Sequence[str] = (),
    kept: KeptIncidents | None = None,
) -> Server:
    """Show a watcher on a web page until `Server.stop`.

    Args:
        watcher: It may be running already.
        host: Address or name to listen on. Any but this machine's loopback needs a token.
        port: 0 for any that is free; `Server.url` has it.
        token: What a viewer must know: entered in a form, or sent as `Authorization: Bearer`.
        names: More host names of the page, such as a proxy's.
        kept: The incidents that it shows; None: those from now on, in memory only.

    Raises:
        ConfigError: The address is reachable from the network without a token, the token is too short,
            or the port is out of range.
        OngebdError: The address or port is not available.
        MissingExtraError: Starlette or uvicorn is not installed.
    """
    if not 0 <= port <= 65535:
        raise ConfigError(f"the port must be from 0 to 65535, not {port}")
    family, address = _resolved(host, port)
    loopback = ipaddress.ip_address(address[0].partition("%")[0]).is_loopback
    if not loopback and token is None:
        raise ConfigError(f"{host} is reachable from your network; set ONGEBD_TOKEN, or serve on 127.0.0.1")
    known = {"localhost", *(name.lower() for name in names)}
    if not loopback:
        own = socket.gethostname().lower()
        known |= {host.lower(), own, f"{own.partition('.')[0]}.local"} - {""}
    access = Access(token, known, loopback=loopback)
    listener = _listening(host, family, address)
    access.cookie = f"ongebd_{listener.getsockname()[1]}"  # a host's ports share their cookies
    given, kept = kept, kept or KeptIncidents(watcher, print)
    feed = Feed(watcher, kept)
    config = uvicorn.Config(
        access.guard(app(watcher, feed, kept, access)),
        loop="asyncio",
        http=LimitedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",  # clients that send nonsense are not worth a message
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=ACCEPTED,
        timeout_keep_alive=int(REQUEST_SECONDS),
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=HEADER_BYTES,
    )
    return Server(config, feed, listener, None if given else kept)


class Server(uvicorn.Server, AbstractContextManager["Server"]):
    """A page that is being served in its own thread; made by `serve`, and a context manager.

    Attributes:
        url: Where a browser on this machine finds it.
    """

    def __init__(
        self, config: uvicorn.Config, feed: Feed, listener: socket.socket, ours: KeptIncidents | None
    ) -> None:
        super().__init__(config)
        address, port = listener.getsockname()[:2]
        address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)
        self.url = f"http://[{address}]:{port}/" if ":" in address else f"http://{address}:{port}/"
        self._feed, self._listener, self._ours = feed, listener, ours
        self._thread = threading.Thread(target=self.run, args=[[listener]], name="ongebd-page", daemon=True)
        self._thread.start()
        while not feed.alive:
            if not self._thread.is_alive():
                self.stop()
                raise OngebdError("the page's server didn't start; try another address or port")
            time.sleep(0.005)

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End all connections, and the server's threads; a second call does nothing."""
        self.should_exit = True
        self._thread.join()
        self._listener.close()
        if self._ours is not None:
            self._ours.end()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the feed too."""
        await super().startup(sockets)
        self._listener.listen(_WAITING)  # only asyncio keeps to the smaller number
        self._feed.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the feed first, or viewers would hold up the end."""
        self._feed.close()
        await super().shutdown(sockets)


def _resolved(host: str, port: int) -> tuple[int, tuple[Any, ...]]:
    """The family and socket address of a host; IPv4 if a name has both kinds."""
    try:
        found = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as problem:
        raise OngebdError(f"{host!r} is not an address of this machine: {problem}; try 127.0.0.1") from None
    family, _, _, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    return family, address


def _listening(host: str, family: int, address: tuple[Any, ...]) -> socket.socket:
    try:
        listener = socket.create_server(address, family=family, backlog=_WAITING)
    except OSError as problem:
        why = os.strerror(problem.errno) if problem.errno else str(problem)
        raise OngebdError(f"{host}:{address[1]}: {why}; choose another address or port") from None
    # Connections inherit it: what a slow reader can leave in the kernel.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
    return listener
