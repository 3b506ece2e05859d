"""Who may look: the token and the sessions, and which requests a web page of someone else could have sent."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from time import monotonic
from typing import Literal
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ongebd.errors import ConfigError
from ongebd.watch.server.limits import HEADER_BYTES, KNOWN, network

Answer = Literal["right", "wrong", "wait"]

PAGE = Path(__file__).parents[1] / "page"
_OPEN_PATHS = {"/login", "/healthz", *(f"/{path.name}" for path in PAGE.iterdir() if path.suffix != ".html")}
"""What needs no token: the form with its style, and the health check."""
SESSION_SECONDS = 30 * 24 * 3600
_SHORTEST_TOKEN = 8
_MOST_KEPT = 1024
"""Sessions, and networks with wrong tries."""
_FREE_TRIES = 5.0
_SECONDS_A_TRY = 10.0
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class Access:
    """Checks tokens, sessions and where requests come from. For one thread only.

    Sessions are ours, not those of Starlette's middleware: its signed cookies stay valid after a sign-out.

    Args:
        token: What a client must know; None: everyone may look.
        names: Host names of the service, lower case, besides addresses.
        loopback: Whether only addresses of loopback are allowed in the Host header.

    Attributes:
        cookie: The session cookie's name.
        needed: Whether a token is needed.

    Raises:
        ConfigError: The token is short enough to guess, or no header can carry it.
    """

    def __init__(self, token: str | None, names: Iterable[str] = (), *, loopback: bool = True) -> None:
        if token is not None and (len(token) < _SHORTEST_TOKEN or not all("!" <= c <= "~" for c in token)):
            raise ConfigError(
                f"the token needs at least {_SHORTEST_TOKEN} visible ASCII characters, without spaces; "
                'make one with: python -c "import secrets; print(secrets.token_urlsafe())"'
            )
        self.cookie = "ongebd"
        self.needed, self._digest = token is not None, _digest(token or "")
        self._names, self._loopback = frozenset(names), loopback
        self._sessions: OrderedDict[bytes, float] = OrderedDict()
        self._tries: OrderedDict[str, tuple[float, float]] = OrderedDict()  # left, and when that was

    def check(self, token: str, address: str) -> Answer:
        """Compare a token, in constant time; "wait" (without comparing) after too many wrong ones.

        Each network has five tries, and another one every ten seconds.
        """
        if not self.needed:
            return "right"
        client, now = network(address), monotonic()
        left, then = self._tries.get(client, (_FREE_TRIES, now))
        left = min(_FREE_TRIES, left + (now - then) / _SECONDS_A_TRY)
        if left < 1:
            return "wait"
        if hmac.compare_digest(_digest(token), self._digest):
            return "right"
        self._tries[client] = left - 1, now
        self._tries.move_to_end(client)
        if len(self._tries) > _MOST_KEPT:
            self._tries.popitem(last=False)
        return "wrong"

    def open_session(self) -> str:
        """A new secret, for the cookie of a browser that gave the right token."""
        secret = secrets.token_urlsafe(32)
        self._sessions[_digest(secret)] = monotonic() + SESSION_SECONDS
        if len(self._sessions) > _MOST_KEPT:
            self._sessions.popitem(last=False)
        return secret

    def has_session(self, headers: Headers) -> bool:
        """Whether a request's cookie belongs to an open session."""
        return self._sessions.get(self._secret(headers), 0.0) > monotonic()

    def close_session(self, headers: Headers) -> None:
        """Forget the session of a request's cookie."""
        self._sessions.pop(self._secret(headers), None)

    def guard(self, app: ASGIApp) -> ASGIApp:
        """Refuse requests that may not come in, and add strict headers to every answer.

        A web page of someone else in the user's browser is refused by the Host header, which it would have to
        forge (DNS rebinding), and by the Origin and Sec-Fetch headers, which browsers set and pages can't.
        Starlette's own middleware is not enough here. `TrustedHostMiddleware` takes names, but not "any IP
        address". `CORSMiddleware` adds headers to the answer, but still runs the request.
        """

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            async def send_safely(message: Message) -> None:
                if message["type"] == "http.response.start":
                    headers = MutableHeaders(scope=message)
                    for name, value in _HEADERS.items():
                        headers.setdefault(name, value)
                    if KNOWN not in scope:  # a stranger queues no requests
                        headers["Connection"] = "close"
                await send(message)

            await (self._refusal(scope) or app)(scope, receive, send_safely)

        return guarded

    def _secret(self, headers: Headers) -> bytes:
        return _digest(cookie_parser(headers.get("cookie", "")).get(self.cookie, ""))

    def _refusal(self, scope: Scope) -> Response | None:
        headers, method = Headers(scope=scope), scope["method"]
        size = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        if size + len(scope["raw_path"]) + len(scope["query_string"]) > HEADER_BYTES:
            return PlainTextResponse("The headers are too large.\n", 431, {"Connection": "close"})
        if not self._knows_host(headers.get("host", "")):
            return PlainTextResponse("Unknown host name.\n", 403)
        if not _same_origin(headers, method):
            return PlainTextResponse("Requests from other sites are refused.\n", 403)
        if not self.needed or self.has_session(headers):
            scope[KNOWN] = True
            return None
        if scope["path"] in _OPEN_PATHS:
            return None
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and token:
            answer = self.check(token.strip(), client_address(scope))
            if answer == "right":
                scope[KNOWN] = True
                return None
            if answer == "wait":
                return PlainTextResponse("Too many wrong tokens; wait.\n", 429, {"Retry-After": "10"})
        elif scope["path"] == "/" and method in ("GET", "HEAD"):
            return RedirectResponse("login", 303)
        return PlainTextResponse("Token required.\n", 401, {"WWW-Authenticate": "Bearer"})

    def _knows_host(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
            return name in self._names or ipaddress.ip_address(name).is_loopback or not self._loopback
        except ValueError:  # malformed, or a name that is not ours
            return False


def client_address(scope: Scope) -> str:
    """Where a request came from, as the socket says; headers are not trusted."""
    client = scope.get("client")
    return client[0] if client else "unknown"


def _same_origin(headers: Headers, method: str) -> bool:
    """Whether the page that sent a request, if one did, is ours. Programs send neither header."""
    origin = headers.get("origin")
    if origin is not None and origin.lower().partition("://")[2] != headers["host"].lower():
        return False
    site = headers.get("sec-fetch-site", "none")
    if site in ("none", "same-origin"):
        return True
    return method != "POST" and headers.get("sec-fetch-mode") == "navigate"  # a link to our page is harmless


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
