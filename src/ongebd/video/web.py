"""The way of sources to the web. FFmpeg opens no web address itself: it asks for each one here.

A playlist or a redirect can name any address, also one behind the firewall. So only the server that the user
named and public addresses are connected to, and the address that is checked is the one that is connected to.
If the environment names a proxy (`http_proxy`), that proxy decides instead.
"""

from __future__ import annotations

import base64
import errno
import http.client
import io
import ipaddress
import re
import selectors
import socket
import ssl
import threading
import urllib.request as requests
from contextlib import suppress
from functools import cached_property
from math import inf
from typing import Any, BinaryIO, cast
from urllib.parse import quote, unquote, urljoin, urlsplit

import av

from ongebd.video.access import INSECURE, Pieces, plain_url
from ongebd.video.connecting import SLICE, Connecting, aside, turns

# IPv6 addresses that stand for an IPv4 address: compatible, translated, and of DNS64.
_HOLD_IPV4 = [ipaddress.ip_network(one) for one in ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96")]
_SITE = ipaddress.ip_network("fec0::/10")
_PORTS = {"http": 80, "https": 443, "rtsp": 554, "rtsps": 322}
_SKIPPED = 1 << 18  # bytes that are sooner read than asked for again
_WHOLE = 1 << 24  # the most bytes of a playlist or an encrypted piece
_STEP = 1 << 16
_MOST = 64  # idle connections, and cookies
_NAMES = re.compile(r'(?m)^(?!#)\S.*$|(?<=URI=")[^"\n]+')
_REDIRECT = re.compile(rb"RTSP/[^ \t\n]*[ \t][\s+0]*3\d\d")
_KEPT = "!$%&'()*+,-./:;=?@[]_~"  # of an address; all else is sent as %XX


def is_public(address: str) -> bool:
    """Whether an IP address is one of the internet, whatever form it has."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        holds = any(ip in network for network in _HOLD_IPV4)
        ip = ip.sixtofour or (ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if holds else ip)
    return ip.is_global and not ip.is_multicast and ip not in _SITE


class _Socket(socket.socket):
    """A connection whose wait for bytes can be ended."""

    connecting = Connecting()

    def recv_into(self, *args: Any, **named: Any) -> int:
        for _ in turns(self.connecting, self.connecting.read_timeout):
            with suppress(TimeoutError):
                return super().recv_into(*args, **named)
        raise AssertionError  # the turns have no other end


class _SafeSocket(_Socket, ssl.SSLSocket):
    """The same with TLS."""


class Server:
    """The server that a user named, and how to connect to it and to what it names."""

    def __init__(self, url: str, connecting: Connecting, pieces: Pieces) -> None:
        parts = urlsplit(plain_url(url))
        self.host, self.port = (parts.hostname or "").lower(), parts.port or _PORTS[parts.scheme.lower()]
        self.connecting, self._pieces, self._checked = connecting, pieces, not url.startswith(INSECURE)

    @cached_property
    def tls(self) -> ssl.SSLContext:
        """How to make a connection safe."""
        context = ssl.create_default_context()
        context.sslsocket_class = _SafeSocket
        if not self._checked:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context

    def connect(self, host: str, port: int, *, named: bool = False) -> socket.socket:
        """Connect to a host, which may have a private address if the user named it."""
        named |= self.connecting.private_network or (host.lower(), port) == (self.host, self.port)
        failure: OSError | None = None
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            if not (named or is_public(str(address[0]))):
                continue
            link = _Socket(family, kind, protocol)
            link.settimeout(self.connecting.open_timeout)
            try:
                link.connect(address)
            except OSError as problem:
                link.close()
                failure = problem
            else:
                return link
        if failure is None:
            self._pieces.refused.append(f"{host}:{port}")
        raise failure or PermissionError(errno.EACCES, f"may not open {host}:{port}")


class _Ways(requests.BaseHandler):
    """Sends urllib's requests over connections that are kept for the next one."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._ways: dict[http.client.HTTPResponse, tuple[object, http.client.HTTPConnection]] = {}

    def http_open(self, request: requests.Request) -> http.client.HTTPResponse:
        """Send a request; OSError or HTTPException if no answer comes."""
        tunnel: str | None = getattr(request, "_tunnel_host", None)  # to the host, through a proxy
        key = request.type, request.host, tunnel
        if len(self._ways) > _MOST:
            self.end(idle=True)
        idle = next((old for old, (to, _) in self._ways.items() if to == key and old.isclosed()), None)
        way = self._new(request, tunnel) if idle is None else self._ways.pop(idle)[1]
        kept = way.sock is not None
        while True:
            try:
                if way.sock is None:
                    aside(way.connect, self._server.connecting)
                    link = cast("_Socket", way.sock)
                    link.settimeout(SLICE)
                    link.connecting = self._server.connecting
                way.request(request.get_method(), request.selector, headers=dict(request.header_items()))
                answer = way.getresponse()
                break
            except (OSError, http.client.HTTPException):
                way.close()
                if not kept:
                    raise
                kept = False  # the server ended it meanwhile
        self._ways[answer] = key, way
        if answer.status >= 300:  # read it, and the connection can be used again
            answer.read(_STEP)
            self.leave(answer)
        answer.msg, answer.url = answer.reason, request.full_url  # type: ignore[assignment]  # as urllib has it
        return answer

    https_open = http_open

    def _new(self, request: requests.Request, tunnel: str | None) -> http.client.HTTPConnection:
        host, by_proxy = request.host.rpartition("@")[2], tunnel is not None or request.has_proxy()
        way = http.client.HTTPConnection(host)
        if request.type == "https":
            way = http.client.HTTPSConnection(host, context=self._server.tls)
        way._create_connection = lambda to, *_: self._server.connect(*to, named=by_proxy)  # type: ignore[attr-defined]
        if tunnel is not None:
            secret = request.unredirected_hdrs.pop("Proxy-authorization", None)
            way.set_tunnel(tunnel, headers={"Proxy-Authorization": secret} if secret else {})
        return way

    def leave(self, answer: http.client.HTTPResponse) -> None:
        """Read no more of an answer. Its connection ends, unless all of it came."""
        if answer.length == 0:
            answer.close()
        if not answer.isclosed():
            self._ways.pop(answer)[1].close()
            answer.close()  # it may hold the socket alone

    def end(self, *, idle: bool = False) -> None:
        """Close all connections, or the idle ones."""
        for answer, (_, way) in [*self._ways.items()]:
            if answer.isclosed() or not idle:
                del self._ways[answer]
                way.close()
                answer.close()


class _Body:
    """What a server sends, as a file object for PyAV.

    Args:
        begin: Where in the file; None asks for the whole file, in which nobody can seek.
        end: The byte behind the last one.
        piece: Whether a cut connection is noted; it raises an OSError otherwise, once.
    """

    def __init__(self, web: Web, url: str, begin: int | None, end: int | None, piece: bool) -> None:
        self._web, self._url, self._begin, self._end, self._piece = web, url, begin or 0, end, piece
        self._place = self._came = self._begin  # of the next byte that is wanted, and that comes
        self._failed = False
        self._answer = self._ask(begin)
        whole = re.fullmatch(r"bytes .*/(\d+)", self._answer.headers.get("Content-Range", ""))
        self._size = None if whole is None else int(whole[1])
        self.url, self.begins = self._answer.url, self._answer.peek(_STEP)

    def _ask(self, begin: int | None) -> http.client.HTTPResponse:
        answer = self._web.ask(self._url, begin, self._end)
        self._came = begin or 0 if answer.status == 206 else 0
        return answer

    def read(self, size: int) -> bytes:
        """Up to so many bytes; none at the end, and after a connection was cut."""
        if self._failed:
            return b""
        try:
            if self.seekable() and not 0 <= self._place - self._came <= _SKIPPED:
                self.close()
                self._answer = self._ask(self._place)
            while self._came < self._place and (skipped := self._next(self._place - self._came)):
                self._came += len(skipped)
            data = self._next(size if self._end is None else min(size, self._end - self._place))
        except (OSError, http.client.HTTPException) as problem:
            self._failed = True
            self.close()
            if not isinstance(problem, TimeoutError) and getattr(problem, "errno", 0) != errno.ECANCELED:
                problem = OSError(errno.EIO, "the connection was cut")
            if not self._piece:
                raise problem from None
            return self._web.miss(self._url, problem).read()
        self._came += len(data)
        self._place += len(data)
        return data

    def _next(self, size: int) -> bytes:
        data = self._answer.read1(max(0, min(size, _STEP)))
        if not data and size > 0 and self._answer.length:
            raise http.client.IncompleteRead(b"")
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        """Where the next byte is read; -1 if that can't be."""
        if whence == 2 and self._size is None:
            return -1
        self._place = offset + {0: self._begin, 1: self._place, 2: self._size or 0}[whence]
        return self.tell()

    def tell(self) -> int:
        return self._place - self._begin

    def seekable(self) -> bool:
        return self._size is not None

    def close(self) -> None:
        self._web.ways.leave(self._answer)


class Web:
    """Opens a web address, and what its playlist names, for PyAV. Whatever doesn't come is an empty piece.

    Attributes:
        is_playlist: Whether it is one.

    Raises:
        OSError: The server can't be reached, or refuses.
    """

    def __init__(self, url: str, connecting: Connecting, pieces: Pieces) -> None:
        self._connecting, self._pieces = connecting, pieces
        self.ways = _Ways(Server(url, connecting, pieces))
        self._passwords = requests.HTTPPasswordMgrWithPriorAuth()
        self._opener = requests.OpenerDirector()
        self._cookies = requests.HTTPCookieProcessor()
        ways = (requests.ProxyHandler, requests.DataHandler, requests.UnknownHandler)
        answers = (
            requests.HTTPRedirectHandler,
            requests.HTTPErrorProcessor,
            requests.HTTPDefaultErrorHandler,
        )
        logins = (requests.HTTPBasicAuthHandler, requests.HTTPDigestAuthHandler)
        handlers: list[requests.BaseHandler] = [kind() for kind in (*ways, *answers)]
        for handler in (self.ways, self._cookies, *handlers, *(login(self._passwords) for login in logins)):
            self._opener.add_handler(handler)
        pieces.close = self.ways.end
        self._first: BinaryIO | _Body | None = self._opened(plain_url(url), 0, None, piece=False)
        self.is_playlist = isinstance(self._first, io.BytesIO)

    def __call__(self, url: str, flags: int, options: dict[str, str]) -> BinaryIO | _Body:
        """Open what FFmpeg asks for, without an exception: PyAV would print the second one."""
        next(turns(self._connecting, inf))
        first, self._first = self._first, None
        if first is not None:
            return first
        name = url.removeprefix("crypto:").removeprefix("crypto+")
        try:
            begin, end = (int(options[key]) if key in options else None for key in ("offset", "end_offset"))
            file = self._opened(name, begin, end, piece=True)
            return file if name == url else io.BytesIO(_decrypted(_all_of(file), options))
        except (OSError, ValueError) as problem:
            return self.miss(name, problem)

    def miss(self, url: str, problem: Exception) -> BinaryIO:
        """Note that a piece didn't come; an empty one instead."""
        if not isinstance(problem, PermissionError):  # which was noted
            self._pieces.missing.append(f"{url} ({getattr(problem, 'strerror', None) or problem})")
        self._pieces.check()
        return io.BytesIO()

    def _opened(self, url: str, begin: int | None, end: int | None, *, piece: bool) -> BinaryIO | _Body:
        """A file; a redirected playlist with whole addresses, because FFmpeg doesn't know of that."""
        if url.startswith("data:"):
            return io.BytesIO(self._opener.open(url).read())
        body = _Body(self, url, begin, end, piece)
        if not body.begins.startswith(b"#EXTM3U"):
            return body
        text = _all_of(body).decode(errors="replace")
        if body.url != _plain(url):
            text = _NAMES.sub(lambda name: urljoin(body.url, name[0].strip()), text)
        return io.BytesIO(text.encode())

    def ask(self, url: str, begin: int | None, end: int | None) -> http.client.HTTPResponse:
        """Ask for a file or for some of its bytes, also where the server sends us for it."""
        parts = urlsplit(url)
        if parts.scheme.lower() not in ("http", "https"):
            self._pieces.refused.append(url)
            raise PermissionError(errno.EACCES, "may not open it")
        user, _, host = parts.netloc.rpartition("@")
        place = f"{parts.scheme}://{host}/"
        if user and self._passwords.find_user_password(None, place) == (None, None):
            name, _, password = map(unquote, user.partition(":"))
            self._passwords.add_password(None, place, name, password)
        if len(self._cookies.cookiejar) > _MOST:
            self._cookies.cookiejar.clear()
        request = requests.Request(_plain(url), headers={"User-Agent": "ongebd", "Accept": "*/*"})
        if begin is not None:
            request.add_header("Range", f"bytes={begin}-{'' if end is None else end - 1}")
        try:
            return cast("http.client.HTTPResponse", self._opener.open(request))
        except OSError:
            raise
        except (http.client.HTTPException, ValueError):
            raise OSError(errno.EIO, "the server doesn't answer as it should") from None


def _plain(url: str) -> str:
    """A URL as a server takes it."""
    parts = urlsplit(url)
    host, path, query = parts.netloc.rpartition("@")[2], quote(parts.path, _KEPT), quote(parts.query, _KEPT)
    return parts._replace(netloc=host, path=path or "/", query=query, fragment="").geturl()


def _all_of(file: BinaryIO | _Body) -> bytes:
    data = b""
    while part := file.read(_STEP):
        data += part
        if len(data) > _WHOLE:
            raise OSError(errno.EFBIG, "too long")
    file.close()
    return data


def _decrypted(data: bytes, options: dict[str, str]) -> bytes:
    """By FFmpeg, which has the cipher; the standard library hasn't."""
    how = {"key": options.get("key", ""), "iv": options.get("iv", ""), "protocol_whitelist": "crypto,data"}
    coded = f"crypto:data:a/b;base64,{base64.b64encode(data).decode()}"
    try:
        with av.open(coded, format="data", options=how) as file:
            return b"".join(bytes(packet) for packet in file.demux())
    except av.error.FFmpegError:
        raise OSError(errno.EIO, "can't decrypt it") from None


def relay_for(url: str, connecting: Connecting, pieces: Pieces) -> str:
    """Where FFmpeg finds an RTSP server that is on the internet or needs TLS: at a relay in this process.

    FFmpeg follows every redirect, so the relay ends the connection at one. Servers on a private network
    are trusted with that.
    """
    parts, server = urlsplit(plain_url(url)), Server(url, connecting, pieces)
    safe = parts.scheme.lower() == "rtsps"

    def connected() -> socket.socket | None:
        found = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
        if connecting.private_network or not (safe or any(is_public(str(one[4][0])) for one in found)):
            return None
        link = server.connect(server.host, server.port)
        return server.tls.wrap_socket(link, server_hostname=server.host) if safe else link

    link = aside(connected, connecting)
    if link is None:
        return plain_url(url)
    door = socket.create_server(("127.0.0.1", 0))
    door.settimeout(connecting.open_timeout)
    threading.Thread(target=_relay, args=(link, door, pieces), name="ongebd-relay", daemon=True).start()
    user, at, _ = parts.netloc.rpartition("@")
    return parts._replace(scheme="rtsp", netloc=f"{user}{at}127.0.0.1:{door.getsockname()[1]}").geturl()


def _relay(link: socket.socket, door: socket.socket, pieces: Pieces) -> None:
    with link, door, suppress(OSError), selectors.DefaultSelector() as ready:
        client, _ = door.accept()
        with client:
            link.settimeout(SLICE)
            for one, other in ((link, client), (client, link)):
                ready.register(one, selectors.EVENT_READ, other)
            seen = b""
            while True:
                for (here, _, _, there), _ in ready.select():
                    with suppress(TimeoutError):  # it was no data, but TLS's own
                        data = cast("socket.socket", here).recv(_STEP)
                        if here is link:
                            seen = seen[-_STEP:] + data.replace(b"\r", b"")
                        if _REDIRECT.search(seen):
                            pieces.refused.append("another server that this one redirects to")
                            return
                        if not data:
                            return
                        there.sendall(data)
