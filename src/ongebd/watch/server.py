"""`serve`: the page of a running watcher, over HTTP, in a thread of its own."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from ongebd.errors import ConfigError, MissingExtraError, OngebdError
from ongebd.watch.server_watched import Watched

try:
    import uvicorn

    from ongebd.watch.server_access import Access
    from ongebd.watch.server_app import OPEN_PATHS, Pages
    from ongebd.watch.server_feed import Feed
    from ongebd.watch.server_guard import Guard
    from ongebd.watch.server_limits import Limits, limited_protocol
except ModuleNotFoundError as problem:
    if (problem.name or "").startswith("ongebd"):
        raise
    raise MissingExtraError.of(problem.name, "live") from None

_SEND_BUFFER = 128 * 1024
_START_SECONDS = 10.0


def serve(
    watcher: Watched,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: str | None = None,
    *,
    names: Sequence[str] = (),
    limits: Limits | None = None,
    clock: Callable[[], float] = time.time,
) -> Server:
    """Show a watcher on a web page until `stop`.

    Args:
        watcher: What is watched; it may be running already.
        host: Address or name to listen at. Any but this machine's loopback needs a token.
        port: 0 for any that is free; `Server.url` tells which.
        token: What a viewer must know: asked for by a form, or sent as `Authorization: Bearer`.
        names: More host names by which the page is called, such as a proxy's.
        limits: Of clients.
        clock: Unix seconds, the one of the records' `wall`.

    Raises:
        ConfigError: No token for an address that others reach, one that is too short, or a port out of range.
        OngebdError: The address or port is not to be had.
        MissingExtraError: Starlette or uvicorn is not installed.
    """
    if not 0 <= port <= 65535:
        raise ConfigError(f"a port is a number from 0 to 65535, not {port}")
    family, where = _resolved(host, port)
    loopback = ipaddress.ip_address(str(where[0]).partition("%")[0]).is_loopback
    if not loopback and token is None:
        raise ConfigError(
            f"others reach {host}, so a token is needed: give one with --token, or serve at 127.0.0.1 only"
        )
    access = Access(token)
    called = {"localhost", *(name.lower() for name in names)}
    if not loopback:
        own = socket.gethostname().lower()
        called |= {host.lower(), own, f"{own.partition('.')[0]}.local"} - {""}
    return Server(watcher, _listening(host, family, where), access, called, limits or Limits(), clock)


class Server:
    """A page that is being served; made by `serve`, and a context manager.

    Attributes:
        url: Where a browser on this machine finds it.
    """

    def __init__(
        self,
        watcher: Watched,
        listener: socket.socket,
        access: Access,
        names: set[str],
        limits: Limits,
        clock: Callable[[], float],
    ) -> None:
        address, port = listener.getsockname()[:2]
        bound = ipaddress.ip_address(address.partition("%")[0])
        self.url = f"http://{_local_host(address)}:{port}/"
        cookie = f"ongebd_{port}"  # browsers share cookies between the ports of a host
        self._feed = Feed(watcher, clock)
        guarded = Guard(
            Pages(watcher, self._feed, access, cookie, limits).app(),
            access=access,
            cookie=cookie,
            names=names,
            loopback=bound.is_loopback,
            limits=limits,
            open_paths=OPEN_PATHS,
        )
        config = uvicorn.Config(
            guarded,
            loop="asyncio",
            http=limited_protocol(limits),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",  # a client's nonsense is no message of ours
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=max(1, int(limits.request_seconds)),
            timeout_graceful_shutdown=2,
            h11_max_incomplete_event_size=limits.header_bytes,
        )
        self._runner = _Runner(config, self._feed)
        self._listener = listener
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ongebd-page", daemon=True)
        self._thread.start()
        self._await_start()

    def stop(self) -> None:
        """End all connections, and the server's threads; a second call does nothing."""
        self._feed.stop()
        self._runner.should_exit = True
        self._thread.join()
        self._listener.close()

    def _await_start(self) -> None:
        if not self._runner.ready.wait(_START_SECONDS) or self._failure is not None:
            self.stop()
            raise OngebdError(f"the page's server did not start: {self._failure or 'it took too long'}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            asyncio.run(self._runner.serve([self._listener]))
        except BaseException as problem:
            self._failure = problem
            raise
        finally:
            self._runner.ready.set()


class _Runner(uvicorn.Server):
    """uvicorn in a thread: it says when it is ready, and takes the feed into its loop."""

    def __init__(self, config: uvicorn.Config, feed: Feed) -> None:
        super().__init__(config)
        self.ready = threading.Event()
        self._feed = feed

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._feed.start(asyncio.get_running_loop())
        self.ready.set()


def _resolved(host: str, port: int) -> tuple[int, tuple[Any, ...]]:
    """The family and socket address of a host: of a name with both kinds, the IPv4 one."""
    try:
        found = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as problem:
        raise OngebdError(f"{host!r} is no address of this machine: {problem}; try 127.0.0.1") from None
    family, _, _, _, where = min(found, key=lambda one: one[0] != socket.AF_INET)
    return family, where


def _listening(host: str, family: int, where: tuple[Any, ...]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Of its connections too: what a slow reader can leave in the kernel.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        listener.bind(where)
        listener.listen(512)
    except OSError as problem:
        listener.close()
        raise OngebdError(_why_not(host, where[1], problem)) from None
    listener.setblocking(False)
    return listener


def _why_not(host: str, port: int, problem: OSError) -> str:
    where = f"{host}:{port}"
    if problem.errno == errno.EADDRINUSE:
        return f"{where} is taken by another program: give another port, or 0 for any that is free"
    if problem.errno == errno.EACCES:
        return f"{where} is not allowed to this user: give a port of 1024 or more"
    if problem.errno == errno.EADDRNOTAVAIL:
        return f"{where}: {host} is no address of this machine; try 127.0.0.1"
    return f"{where} cannot be served: {problem.strerror or problem}; give another address or port"


def _local_host(address: str) -> str:
    bound = ipaddress.ip_address(address.partition("%")[0])
    if bound.is_unspecified:
        return "127.0.0.1" if bound.version == 4 else "[::1]"
    return f"[{address}]" if bound.version == 6 else address
