"""The way of http(s) sources to the network: a proxy in this process that refuses private addresses.

A playlist or a redirect can name any address, also one behind the firewall, and FFmpeg has no filter for
that. So FFmpeg fetches everything through this proxy, which connects only to public addresses and to the
server that the user named. It checks the address that it connects to, so changing a name's address doesn't
help. TLS stays between FFmpeg and the server. If the environment names a proxy (`http_proxy`), that proxy
decides instead.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import os
import secrets
import socket
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import urlsplit

_HEAD_BYTES = 65536
_PORTS = {"http": 80, "https": 443}
# IPv6 addresses that stand for an IPv4 address: compatible, translated, and of DNS64.
_HOLD_IPV4 = [ipaddress.ip_network(one) for one in ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96")]
_SITE = ipaddress.ip_network("fec0::/10")
_REMEMBERED = 4096  # passes; the oldest go


@dataclass(slots=True)
class Pass:
    """What one source may reach, and what it was refused.

    Attributes:
        host: The server that the user named; always allowed.
        port: Its port.
        private: Whether private addresses are allowed.
        refused: Addresses that the source was not allowed to reach, as host:port.
        failure: Why the last connection failed.
    """

    host: str
    port: int
    private: bool
    refused: list[str] = field(default_factory=list)
    failure: str | None = None

    def allows(self, host: str, port: int, address: str) -> bool:
        """Whether the source may connect to a host that has this IP address."""
        if self.private or (host.lower(), port) == (self.host, self.port):
            return True
        ip = ipaddress.ip_address(address.partition("%")[0])
        if isinstance(ip, ipaddress.IPv6Address):
            holds = any(ip in network for network in _HOLD_IPV4)
            ip = ip.sixtofour or (ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if holds else ip)
        return ip.is_global and not ip.is_multicast and ip not in _SITE


class Gate:
    """The proxy. It runs in a thread of its own, on the loopback address, and asks for a pass."""

    def __init__(self) -> None:
        self._passes: OrderedDict[str, Pass] = OrderedDict()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="ongebd-gate", daemon=True).start()
        serving = asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_HEAD_BYTES)
        server = asyncio.run_coroutine_threadsafe(serving, self._loop).result()
        self._port: int = server.sockets[0].getsockname()[1]
        self._server = server

    def proxy_for(self, granted: Pass) -> str:
        """The proxy URL with which FFmpeg uses a pass."""
        token = secrets.token_urlsafe(16)
        self._passes[token] = granted
        while len(self._passes) > _REMEMBERED:
            self._passes.popitem(last=False)
        return f"http://{token}:x@127.0.0.1:{self._port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._relay(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # one side went away or doesn't speak HTTP; the other side sees its connection close
        finally:
            writer.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            request, *headers = head.removesuffix("\r\n\r\n").split("\r\n")
            granted = self._pass_of(headers)
            if granted is not None:
                break
            writer.write(
                b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=gate\r\n"
                b"Content-Length: 0\r\n\r\n"
            )
        method, target, version = request.split(" ", 2)
        url = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host, port = url.hostname or "", url.port or _PORTS.get(url.scheme, 443)
        try:
            server_reader, server_writer = await self._connect(granted, host, port)
        except OSError as problem:
            number = problem.errno or 0  # an unknown host has one below 0, which the system can't name
            granted.failure = os.strerror(number) if number > 0 else problem.strerror or str(problem)
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                path = url._replace(scheme="", netloc="").geturl() or "/"
                kept = [h for h in headers if not h.lower().startswith(("proxy-", "connection:"))]
                lines = [f"{method} {path} {version}", *kept, "Connection: close", "", ""]
                server_writer.write("\r\n".join(lines).encode("latin-1"))
            # Either side may end the exchange.
            ways = [
                asyncio.ensure_future(_copy(a, b))
                for a, b in ((reader, server_writer), (server_reader, writer))
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
        finally:
            server_writer.close()

    async def _connect(
        self, granted: Pass, host: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        allowed = [ip for where in found if granted.allows(host, port, ip := str(where[4][0]))]
        failure: OSError = PermissionError(f"may not reach {host}:{port}")
        if not allowed:
            granted.refused.append(f"{host}:{port}")
        for address in allowed:
            try:
                return await asyncio.open_connection(address, port)
            except OSError as problem:
                failure = problem
        raise failure

    def _pass_of(self, headers: list[str]) -> Pass | None:
        for header in headers:
            name, _, value = header.partition(":")
            if name.lower() == "proxy-authorization":
                credentials = base64.b64decode(value.removeprefix(" Basic ").strip()).decode("latin-1")
                return self._passes.get(credentials.partition(":")[0])
        return None


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(_HEAD_BYTES):
        sink.write(data)
        await sink.drain()
    if source.at_eof() and sink.can_write_eof():
        sink.write_eof()


@cache
def gate() -> Gate | None:
    """The process's gate; None where the environment names a proxy."""
    if any(os.environ.get(name) for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")):
        return None
    os.environ.pop("no_proxy", None)  # without a proxy it has no meaning, but FFmpeg would go around the gate
    return Gate()


def pass_for(url: str, refused: list[str], *, private: bool = False) -> Pass:
    """A new pass for the source with this URL; `refused` gets the addresses that it may not reach."""
    parts = urlsplit(url)
    port = parts.port or _PORTS.get(parts.scheme.lower(), 0)
    return Pass((parts.hostname or "").lower(), port, private, refused)


os.register_at_fork(after_in_child=gate.cache_clear)  # a thread doesn't survive a fork
