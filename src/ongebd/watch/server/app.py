"""The routes: the page, its data, and what it may change."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from dataclasses import replace
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from ongebd.detector.trace import jpeg
from ongebd.errors import OngebdError
from ongebd.watch.server import limits
from ongebd.watch.server.access import PAGE, SESSION_SECONDS, Access, client_address
from ongebd.watch.server.feed import Feed, shown
from ongebd.watch.sinks.kept import KeptIncidents
from ongebd.watch.stream import WatchedStream
from ongebd.watch.watcher import Watcher

_COOKIE: dict[str, Any] = {"httponly": True, "samesite": "strict"}
_ANSWERS = {
    "right": (200, ""),
    "wrong": (401, "That is not the token."),
    "wait": (429, "Too many wrong tokens. Wait ten seconds, then try again."),
}
_LIVE_SECONDS = 0.25
_KEEP_FOR_A_DAY = {"Cache-Control": "private, max-age=86400"}


def app(watcher: Watcher, feed: Feed, kept: KeptIncidents, access: Access) -> Starlette:
    """The application, without its guard."""
    routes = _Routes(watcher, feed, kept, access)
    return Starlette(
        routes=[
            Route("/login", routes.show_form),
            Route("/login", routes.log_in, methods=["POST"]),
            Route("/logout", routes.log_out, methods=["POST"]),
            Route("/healthz", routes.health),
            Route("/metrics", routes.metrics),
            Route("/api/streams", routes.streams),
            Route("/api/feed", routes.follow),
            Route("/api/incidents", routes.incidents),
            Route("/api/incidents/{id}/clip", routes.clip),
            Route("/api/incidents/{id}/{which}", routes.picture),
            Route("/api/streams/{key}/picture", routes.live_picture),
            Route("/api/streams/{key}/curve", routes.curve),
            Route("/api/streams/{key}/{setting}", routes.change, methods=["POST"]),
            Mount("/", _Page(directory=PAGE, html=True)),
        ],
        middleware=[Middleware(GZipMiddleware, compresslevel=4)],
        exception_handlers={
            ClientDisconnect: lambda _request, _problem: PlainTextResponse("The request broke off.", 400),
            OngebdError: lambda _request, problem: PlainTextResponse(str(problem), 409),
        },
        max_body_size=limits.BODY_BYTES,
    )


class _Page(StaticFiles):
    """The page's files. A browser may keep them, but must ask each time whether they have changed."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.setdefault("Cache-Control", "no-store" if path == "." else "no-cache")
        return response


class _Routes:
    """All handlers, over one watcher."""

    def __init__(self, watcher: Watcher, feed: Feed, kept: KeptIncidents, access: Access) -> None:
        self._watcher, self._feed, self._kept, self._access = watcher, feed, kept, access
        self._live: dict[str, tuple[float, bytes]] = {}  # of each stream: when it was asked for, the picture
        self._login = (PAGE / "login.html").read_text("utf-8")
        self._viewers = 0

    async def show_form(self, request: Request) -> Response:
        """The form that asks for the token."""
        return self._form("right") if self._access.needed else RedirectResponse(".", 303)

    async def log_in(self, request: Request) -> Response:
        """Take a token; the right one opens a session."""
        fields = parse_qs((await request.body()).decode("utf-8", "replace"))
        answer = self._access.check(fields.get("token", [""])[0].strip(), client_address(request.scope))
        if answer != "right":
            return self._form(answer)
        response = RedirectResponse(".", 303)
        if self._access.needed:
            secure, secret = request.url.scheme == "https", self._access.open_session()
            response.set_cookie(self._access.cookie, secret, SESSION_SECONDS, secure=secure, **_COOKIE)
        return response

    async def log_out(self, request: Request) -> Response:
        """End the session."""
        self._access.close_session(request.headers)
        response = Response(status_code=204)
        response.delete_cookie(self._access.cookie, **_COOKIE)
        return response

    async def health(self, request: Request) -> Response:
        """Whether the service works: 200 or 503."""
        return PlainTextResponse("ok\n") if self._feed.alive else PlainTextResponse("no feed\n", 503)

    async def metrics(self, request: Request) -> Response:
        """Counters in the text format of Prometheus."""
        text = await asyncio.to_thread(self._watcher.metrics)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def streams(self, request: Request) -> Response:
        """The streams and their status."""
        return JSONResponse({**self._feed.overview(), "token": self._access.needed})

    async def incidents(self, request: Request) -> Response:
        """The newest 24 that fit `stream`, `since`, `before` (Unix s), `strength` (0-2) and `alerts` (1)."""
        asked = request.query_params
        try:
            since, before = float(asked.get("since", 0)), float(asked.get("before", "inf"))
            strength, alerts = int(asked.get("strength", 0)), bool(int(asked.get("alerts", 0)))
        except ValueError:
            raise HTTPException(422, "since, before, strength and alerts must be numbers") from None
        wanted = asked.get("stream", ""), since, before, strength, alerts
        rows = await asyncio.to_thread(self._kept.rows, *wanted)
        return JSONResponse({"incidents": list(map(shown, rows))})

    async def picture(self, request: Request) -> Response:
        """The `best` picture of an incident, or that of its `onset`."""
        which = request.path_params["which"]
        if which not in ("best", "onset"):
            raise HTTPException(404, "Unknown picture.")
        picture = await asyncio.to_thread(self._kept.picture, request.path_params["id"], which)
        if picture is None:
            raise HTTPException(404, "This picture was deleted.")
        return Response(picture, media_type="image/jpeg")

    async def live_picture(self, request: Request) -> Response:
        """What a camera sees now, at most four times a second."""
        stream, now = self._stream(request), monotonic()
        made, picture = self._live.get(stream.key, (-inf, b""))
        if now - made >= _LIVE_SECONDS and (frame := stream.newest_picture) is not None:
            self._live[stream.key] = now, picture  # until this one is made, others get the one before
            picture = await asyncio.to_thread(jpeg, frame)
            self._live[stream.key] = now, picture
        return Response(picture, 200 if picture else 204, media_type="image/jpeg")

    async def curve(self, request: Request) -> Response:
        """How much a camera's picture changed in the last ten minutes."""
        stream, now = self._stream(request), self._watcher.clock.wall()
        return JSONResponse(await asyncio.to_thread(stream.history.curve, now))

    async def follow(self, request: Request) -> ASGIApp:
        """Everything from now on, as server-sent events; `after` or Last-Event-ID says where to go on.

        The batches are bytes that all clients share, so a plain stream does. (The package sse-starlette would
        format each event for each client, and patches uvicorn's shutdown for the whole process.)
        """
        if self._viewers >= limits.VIEWERS:
            return PlainTextResponse("Too many viewers.\n", 503, {"Retry-After": "30"})
        after = request.headers.get("last-event-id", request.query_params.get("after", ""))
        run, _, number = after.partition("-")
        # A number of another run, or nonsense: the client learns that it lost everything.
        known = run == self._feed.run and number.isascii() and number.isdecimal() and len(number) < 16
        events = self._feed.follow(int(number) if known else -1)
        answer = StreamingResponse(events, 200, {"X-Accel-Buffering": "no"}, "text/event-stream")
        self._viewers += 1

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                await answer(scope, receive, send)
            finally:
                self._viewers -= 1

        return counted

    async def clip(self, request: Request) -> Response:
        """The clip of an incident's start, in ranges if asked."""
        path = await asyncio.to_thread(self._kept.clip, request.path_params["id"])
        status = None if path is None else await asyncio.to_thread(_regular, path)
        if path is None or status is None:
            raise HTTPException(404, "This clip is unknown or was deleted.")
        return FileResponse(path, headers=_KEEP_FOR_A_DAY, media_type="video/mp4", stat_result=status)

    async def change(self, request: Request) -> Response:
        """Set {"sensitivity": 0.1 … 0.9} or {"quieten": true or false} of a stream."""
        stream, setting = self._stream(request), request.path_params["setting"]
        if setting not in ("sensitivity", "quieten"):
            raise HTTPException(404, "Unknown setting.")
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise HTTPException(415, "Send JSON, with Content-Type: application/json")
        try:
            value = json.loads(await request.body())[setting]
        except (ValueError, KeyError, TypeError, RecursionError):
            value = None
        if setting == "quieten" and isinstance(value, bool):
            stream.incidents.alerts = replace(stream.incidents.alerts, quieten=value)
        elif setting == "quieten":
            raise HTTPException(422, 'send {"quieten": true or false}')
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0.1 <= value <= 0.9:
            raise HTTPException(422, 'send {"sensitivity": a number from 0.1 to 0.9}')
        else:
            await asyncio.to_thread(stream.set_sensitivity, float(value))
        return JSONResponse({setting: value})

    def _stream(self, request: Request) -> WatchedStream:
        stream = self._watcher.streams.get(request.path_params["key"])
        if stream is None:
            raise HTTPException(404, "Unknown stream.")
        return stream

    def _form(self, answer: str) -> Response:
        status, message = _ANSWERS[answer]
        text = self._login.replace("<!--message-->", message)
        # With no-referrer a browser would send the form with the origin "null", like a form of another site.
        headers = {"Referrer-Policy": "same-origin"} | ({"Retry-After": "10"} if answer == "wait" else {})
        return Response(text, status, headers, media_type="text/html")


def _regular(path: Path) -> os.stat_result | None:
    """The status of a file, unless it is gone, or a link or something else has replaced it."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None
