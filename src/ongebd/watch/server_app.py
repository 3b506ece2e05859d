"""The routes: the page, its data, and what it may change."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import html
import json
import os
import stat
from collections.abc import AsyncIterator, Callable
from importlib import resources
from pathlib import Path
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ongebd.errors import OngebdError
from ongebd.watch.server_access import SESSION_SECONDS, Access
from ongebd.watch.server_feed import Feed
from ongebd.watch.server_guard import client_address, session_secret
from ongebd.watch.server_limits import Limits
from ongebd.watch.server_watched import Stream, Watched

STATIC = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "card.js": "text/javascript; charset=utf-8",
    "chart.js": "text/javascript; charset=utf-8",
    "curve.js": "text/javascript; charset=utf-8",
    "feed.js": "text/javascript; charset=utf-8",
    "picture.js": "text/javascript; charset=utf-8",
    "uPlot.js": "text/javascript; charset=utf-8",
    "uPlot.css": "text/css; charset=utf-8",
    "uPlot.LICENSE": "text/plain; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""All files that are ever served: package data, read when the server starts."""
OPEN_PATHS = frozenset({"/login", "/healthz", *(f"/{name}" for name in STATIC)})
"""What needs no token: the way in, the look of it, and whether the service lives."""
_HTML = "text/html; charset=utf-8"
_MESSAGES = {
    "right": "",
    "wrong": "That is not the token.",
    "wait": "Too many wrong tokens. Wait ten seconds, then try again.",
}


class Pages:
    """All handlers, over one watcher.

    Args:
        watcher: What is watched.
        feed: Its records, made ready for pages.
        access: The token.
        cookie: Name of the session's cookie.
        limits: Of viewers and of what is sent.
    """

    def __init__(self, watcher: Watched, feed: Feed, access: Access, cookie: str, limits: Limits) -> None:
        self._watcher, self._feed, self._access = watcher, feed, access
        self._cookie, self._limits = cookie, limits
        self._viewers = 0
        folder = resources.files("ongebd.watch") / "page"
        self._page = (folder / "index.html").read_bytes()
        self._login = (folder / "login.html").read_text("utf-8")
        self._static = {name: (folder / name).read_bytes() for name in STATIC}

    def app(self) -> Starlette:
        """The application, without its guard."""
        return Starlette(
            routes=[
                Route("/", self.page),
                Route("/login", self.ask),
                Route("/login", self.log_in, methods=["POST"]),
                Route("/logout", self.log_out, methods=["POST"]),
                Route("/healthz", self.health),
                Route("/metrics", self.metrics),
                Route("/api/streams", self.streams),
                Route("/api/feed", self.feed),
                Route("/api/streams/{key}/past", self.past),
                Route("/api/streams/{key}/thumbnails/{number:int}", self.thumbnail),
                Route("/api/streams/{key}/clips/{number:int}", self.clip),
                Route("/api/streams/{key}/sensitivity", self.retune, methods=["POST"]),
                *(Route(f"/{name}", self.file) for name in STATIC),
            ]
        )

    async def page(self, request: Request) -> Response:
        """The page itself."""
        return _cached(request, self._page, _HTML)

    async def file(self, request: Request) -> Response:
        """One of the fixed files."""
        name = request.url.path[1:]
        return _cached(request, self._static[name], STATIC[name])

    async def ask(self, request: Request) -> Response:
        """The form that asks for the token."""
        if not self._access.needed:
            return RedirectResponse(".", 303)
        return self._form("right")

    async def log_in(self, request: Request) -> Response:
        """Take a token; the right one opens a session."""
        fields = parse_qs((await self._body(request)).decode("utf-8", "replace"))
        answer = self._access.judge(fields.get("token", [""])[0].strip(), client_address(request.scope))
        if answer != "right":
            return self._form(answer)
        response = RedirectResponse(".", 303)
        if self._access.needed:
            response.set_cookie(
                self._cookie,
                self._access.open_session(),
                max_age=SESSION_SECONDS,
                httponly=True,
                samesite="strict",
                secure=request.url.scheme == "https",
            )
        return response

    async def log_out(self, request: Request) -> Response:
        """End the session."""
        self._access.close_session(session_secret(request.headers, self._cookie))
        response = Response(status_code=204)
        response.delete_cookie(self._cookie, httponly=True, samesite="strict")
        return response

    async def health(self, request: Request) -> Response:
        """Whether the service lives: 200 or 503."""
        return PlainTextResponse("ok\n") if self._feed.alive else PlainTextResponse("no feed\n", 503)

    async def metrics(self, request: Request) -> Response:
        """Counters in the text format of Prometheus."""
        text = await asyncio.to_thread(self._watcher.metrics)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def streams(self, request: Request) -> Response:
        """What is watched, and how it does."""
        overview = {**self._feed.overview(), "token": self._access.needed}
        return Response(json.dumps(overview), media_type="application/json")

    async def past(self, request: Request) -> Response:
        """The last hour of a stream."""
        key = self._stream(request).key
        return await asyncio.to_thread(_packed, request, self._feed, key)

    async def feed(self, request: Request) -> Response:
        """Everything from now on, as server-sent events; `after` or Last-Event-ID says where to go on."""
        if self._viewers >= self._limits.viewers:
            return PlainTextResponse("As many look already as may.\n", 503, {"Retry-After": "30"})
        run, _, number = request.headers.get(
            "last-event-id", request.query_params.get("after", "")
        ).partition("-")
        # Of another run, or nonsense: the client lost all, and is told so.
        known = run == self._feed.run and number.isascii() and number.isdecimal() and len(number) < 16
        self._viewers += 1
        return _Viewing(self._feed.follow(int(number) if known else -1), self._viewer_left)

    def _viewer_left(self) -> None:
        self._viewers -= 1

    async def thumbnail(self, request: Request) -> Response:
        """The picture of a boundary, from the watcher's memory."""
        stream, number = self._stream(request), request.path_params["number"]
        picture = await asyncio.to_thread(stream.thumbnail, number)
        if picture is None:
            raise HTTPException(404, "That picture is not kept any more.")
        # The page adds the run to the address: a number's picture never changes within a run.
        return Response(picture, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=86400"})

    async def clip(self, request: Request) -> Response:
        """The clip of a boundary, from the one file that was written for it; ranges can be asked for."""
        path = self._stream(request).clip(request.path_params["number"])
        status = None if path is None else await asyncio.to_thread(_regular, path)
        if path is None or status is None:
            raise HTTPException(404, "There is no such clip, or it is not kept any more.")
        return FileResponse(
            path,
            headers={"Cache-Control": "private, max-age=86400"},
            media_type="video/mp4",
            filename=path.name,
            stat_result=status,
            content_disposition_type="inline",
        )

    async def retune(self, request: Request) -> Response:
        """Set a stream's sensitivity: {"sensitivity": 0.1 … 0.9}."""
        stream = self._stream(request)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise HTTPException(415, "JSON is wanted: Content-Type: application/json")
        try:
            asked = json.loads(await self._body(request))
            value = asked["sensitivity"] if isinstance(asked, dict) else None
        except (ValueError, KeyError, RecursionError):
            value = None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.1 <= value <= 0.9:
            raise HTTPException(422, 'wanted is {"sensitivity": a number from 0.1 to 0.9}')
        try:
            await asyncio.to_thread(stream.set_sensitivity, float(value))
        except OngebdError as problem:
            raise HTTPException(409, str(problem)) from None
        return Response(json.dumps({"sensitivity": value}), media_type="application/json")

    def _stream(self, request: Request) -> Stream:
        stream = self._watcher.streams.get(request.path_params["key"])
        if stream is None:
            raise HTTPException(404, "There is no such stream.")
        return stream

    def _form(self, answer: str) -> Response:
        text = self._login.replace("<!--message-->", html.escape(_MESSAGES[answer]))
        status = {"right": 200, "wrong": 401, "wait": 429}[answer]
        # With no-referrer a browser would send the form with the origin "null", like a form of another site.
        headers = {"Referrer-Policy": "same-origin"}
        if answer == "wait":
            headers["Retry-After"] = "10"
        return Response(text, status, headers, media_type=_HTML)

    async def _body(self, request: Request) -> bytes:
        """What the client sent, up to the limit; how long it may take the connection knows."""
        body = b""
        try:
            async for part in request.stream():
                body += part
                if len(body) > self._limits.body_bytes:
                    raise HTTPException(413, f"{self._limits.body_bytes} bytes at most.")
        except ClientDisconnect:
            raise HTTPException(400, "The request broke off.") from None
        return body


class _Viewing(StreamingResponse):
    """Server-sent events; `left` is called when they end, however they do."""

    def __init__(self, events: AsyncIterator[bytes], left: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        self._left = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._left()


def _regular(path: Path) -> os.stat_result | None:
    """The status of a file, unless it is gone, or a link or something else has taken its place."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _packed(request: Request, feed: Feed, key: str) -> Response:
    body = feed.past(key)
    headers = {"Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        body, headers["Content-Encoding"] = gzip.compress(body, 4), "gzip"
    return Response(body, headers=headers, media_type="application/json")


def _cached(request: Request, content: bytes, media_type: str) -> Response:
    """A file that a browser may keep, but must ask about each time."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=media_type)
