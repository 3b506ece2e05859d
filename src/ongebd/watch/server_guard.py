"""The door: whose requests come in (host, origin, token, size), and the headers on what goes out."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ongebd.watch.server_access import Access
from ongebd.watch.server_limits import Limits

SAFE_HEADERS = {
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
}


class Guard:
    """ASGI middleware that lets only those requests in that may come in.

    A web page of somebody else in the user's browser is kept out by the host's name, which it would have to
    forge (DNS rebinding), and by the origin and fetch headers, which browsers set and pages cannot.

    Args:
        app: What is guarded.
        access: The token.
        cookie: Name of the session's cookie.
        names: Host names by which the service may be called, lower case, besides addresses.
        loopback: Whether the only addresses that it may be called by are those of loopback.
        limits: Of the body's size.
        open_paths: What may be read without the token, exact paths.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        access: Access,
        cookie: str,
        names: Iterable[str],
        loopback: bool,
        limits: Limits,
        open_paths: Iterable[str],
    ) -> None:
        self._app, self._access, self._cookie, self._limits = app, access, cookie, limits
        self._names, self._loopback, self._open = frozenset(names), loopback, frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAFE_HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, send_safely)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        # A connection limits headers that it waits for; these came all at once.
        if _head_bytes(scope) > self._limits.header_bytes:
            return PlainTextResponse("Headers are too large.\n", 431, {"Connection": "close"})
        if not self._known_host(headers.get("host", "")):
            return PlainTextResponse("This service is not called by that name.\n", 403)
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("GET, HEAD or POST only.\n", 405, {"Allow": "GET, HEAD, POST"})
        if not _same_origin(headers, scope["method"]):
            return PlainTextResponse("Requests of other sites are not answered.\n", 403)
        declared = headers.get("content-length", "0")
        if len(declared) > 9 or not declared.isdecimal() or int(declared) > self._limits.body_bytes:
            return PlainTextResponse(f"{self._limits.body_bytes} bytes at most.\n", 413)
        if not self._access.needed or scope["path"] in self._open:
            return None
        return self._token_refusal(scope, headers)

    def _token_refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if self._access.knows_session(session_secret(headers, self._cookie)):
            return None
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and token:
            answer = self._access.judge(token.strip(), client_address(scope))
            if answer == "right":
                return None
            if answer == "wait":
                return PlainTextResponse("Too many wrong tokens; wait.\n", 429, {"Retry-After": "10"})
        elif scope["path"] == "/" and scope["method"] in ("GET", "HEAD"):
            return RedirectResponse("login", 303)
        return PlainTextResponse("A token is needed.\n", 401, {"WWW-Authenticate": "Bearer"})

    def _known_host(self, host: str) -> bool:
        name = _host_name(host)
        if name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not self._loopback


def session_secret(headers: Headers, cookie: str) -> str:
    """The secret in a request's cookie; empty where there is none."""
    return cookie_parser(headers.get("cookie", "")).get(cookie, "")


def client_address(scope: Scope) -> str:
    """The address that a request came from, as the socket says (no header is believed)."""
    client = scope.get("client")
    return client[0] if client else "unknown"


def _head_bytes(scope: Scope) -> int:
    line = len(scope["raw_path"]) + len(scope["query_string"])
    return line + sum(len(name) + len(value) + 4 for name, value in scope["headers"])


def _host_name(host: str) -> str:
    """The name or address in a Host header, without port and brackets; empty where it is malformed."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _same_origin(headers: Headers, method: str) -> bool:
    """Whether the page that asks, if one does, is ours. A program that is no browser sends neither header."""
    origin = headers.get("origin")
    if origin is not None and origin.lower().partition("://")[2] != headers["host"].lower():
        return False
    site = headers.get("sec-fetch-site", "none")
    if site in ("none", "same-origin"):
        return True
    return method != "POST" and headers.get("sec-fetch-mode") == "navigate"  # a link to our page is no harm
