"""A small made-up watcher, with the real hub and records, and a server over it."""

from __future__ import annotations

import io
import math
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from ongebd.errors import ConfigError
from ongebd.types import Boundary
from ongebd.watch.history import Best, History
from ongebd.watch.hub import Hub
from ongebd.watch.incidents import Alerts
from ongebd.watch.records import Found, Incident, Onset, Point
from ongebd.watch.server import Server, serve
from ongebd.watch.sources import Clock
from ongebd.watch.stream import StreamStatus
from waiting import HANG


class MadeStream:
    """A stream whose frames, boundaries and states a test makes."""

    def __init__(self, key: str, name: str, hub: Hub, rate: float = 24.0) -> None:
        self.key, self.name, self.rate, self.hub = key, name, rate, hub
        self.newest_picture: Any = np.full((180, 320, 3), 90, np.uint8)
        self.masks = SimpleNamespace(polygons=())
        self.count, self.incidents = 0, SimpleNamespace(alerts=Alerts())
        self.history = History(rate)
        self.now = StreamStatus("live", "", time.time(), 0.5, lag=0.041)
        self.start = time.time()

    def status(self) -> StreamStatus:
        quieten, fps = self.incidents.alerts.quieten, self.rate if self.now.state == "live" else 0.0
        return replace(self.now, fps=fps, quieten=quieten)

    def set_sensitivity(self, sensitivity: float) -> None:
        if self.now.state == "failed":
            raise ConfigError(f"{self.name} has failed; its sensitivity does not matter any more")
        self.now.sensitivity = sensitivity

    def point(self, error: float, wall: float | None = None) -> None:
        wall = time.time() if wall is None else wall
        threshold = 0.62 - 0.4 * self.now.sensitivity
        self.history.add_point(
            Point(
                stream=self.key,
                epoch=self.now.epoch,
                time=wall - self.start,
                wall=wall,
                error=error,
                mean=0.12,
                std=0.03,
                threshold=threshold,
                z=(error - 0.12) / 0.03,
                positive=error > threshold,
                ready=True,
            )
        )

    def onset(self, wall: float | None = None, *, score: float = 0.8, picture: bool = True) -> Onset:
        wall = time.time() if wall is None else wall
        self.now.boundaries += 1
        number = self.now.boundaries
        if picture:
            self.history.add_picture(number, made_picture(self.name, number))
        onset = Onset(self.key, number, self.now.epoch, wall - self.start, wall, score, picture)
        self.history.add_onset(onset)
        return onset

    def find(self, onset: Onset) -> None:
        boundary = Boundary(
            onset.time + 0.1, onset.time, onset.time + 0.25, onset.score, None, onset.score + 0.1, "cut"
        )
        wall = onset.wall + 0.25
        self.history.add_centre(Found(self.key, onset.number, onset.epoch, boundary, wall, True))

    def happen(self, onset: Onset, state: Any = "started", **changes: Any) -> Incident:
        """Publish an incident that begins with a boundary, with its best picture."""
        self.count += state == "started"
        number, over = changes.get("number", self.count), state == "ended"
        if onset.has_thumbnail:
            self.history.add_picture(Best(number), made_picture(f"{self.name} (best)", number))
        made = Incident(
            stream=self.key,
            number=number,
            state=state,
            first=onset.number,
            epoch=onset.epoch,
            start=onset.time,
            end=onset.time + 2 if over else None,
            wall=onset.wall,
            wall_end=onset.wall + 2 if over else None,
            peak=onset.score,
            count=1,
            kind="event",
            has_picture=onset.has_thumbnail,
        )
        self.hub.publish(made := replace(made, **changes))
        return made

    def change(self, state: Any, reason: str = "") -> None:
        self.now.state, self.now.reason, self.now.since = state, reason, time.time()


class MadeWatcher:
    """Streams that a test makes; `play` runs all of them in threads."""

    def __init__(self) -> None:
        self.clock, self.hub, self.sinks = Clock(), Hub(), list[Any]()
        self.streams: dict[str, MadeStream] = {}
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def metrics(self) -> bytes:
        return b"# HELP ongebd_frames_total Frames decided.\n# TYPE ongebd_frames_total counter\n"

    def add(self, key: str, name: str | None = None, rate: float = 24.0) -> MadeStream:
        self.streams[key] = stream = MadeStream(key, name or key, self.hub, rate)
        stream.change("live")
        return stream

    def remember(self, seconds: float) -> None:
        """Fill every stream's past with a plausible curve and boundaries."""
        now = time.time()
        for shift, stream in enumerate(self.streams.values()):
            for i in range(int(seconds * stream.rate)):
                self._step(stream, shift, now - seconds + i / stream.rate)

    def play(self) -> None:
        """Let every live stream go on at its rate, firing about every seven seconds."""
        for shift, stream in enumerate(self.streams.values()):
            thread = threading.Thread(target=self._play, args=(stream, shift), name=f"made-{stream.key}")
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _play(self, stream: MadeStream, shift: int) -> None:
        while not self._stop.wait(1 / stream.rate):
            if stream.now.state == "live":
                self._step(stream, shift, time.time())

    def _step(self, stream: MadeStream, shift: int, wall: float) -> None:
        stream.point(made_error(wall, shift), wall)
        if fires(wall, stream.rate, shift):
            onset = stream.onset(wall)
            stream.find(onset)
            for state in ("started", "ended"):
                stream.happen(onset, state)


def made_error(wall: float, shift: int) -> float:
    phase = wall + 11.3 * shift
    noise = math.sin(phase * 37) * math.sin(phase * 23.7) * 0.03
    peak = 0.55 * math.exp(-(((phase % (6.1 + shift)) - 0.4) ** 2) / 0.02)
    return max(0.0, 0.12 + 0.05 * math.sin(phase / 3) * math.sin(phase / 7.7) + noise + peak)


def fires(wall: float, rate: float, shift: int) -> bool:
    def after(moment: float) -> float:
        return (moment + 11.3 * shift) % (6.1 + shift)

    return after(wall) >= 0.3 > after(wall - 1 / rate)


def made_picture(name: str, number: int) -> bytes:
    """A JPEG of 320 × 180 that tells its stream and number."""
    hue = (number * 47 + sum(name.encode())) % 255
    picture = Image.new("HSV", (320, 180), (hue, 90, 130)).convert("RGB")
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 120, 320, 180), fill=(40, 44, 48))
    draw.ellipse((40 + number * 29 % 200, 50, 90 + number * 29 % 200, 150), fill=(226, 190, 140))
    draw.text((12, 10), f"{name} no. {number}", fill="white")
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=80)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def standing() -> Iterator[tuple[MadeWatcher, Server]]:
    """A watcher of one stream, `cam`, with an incident, and its server, for tests that change neither."""
    made = MadeWatcher()
    stream = made.add("cam")
    with serve(made, port=0) as server:
        stream.happen(stream.onset())
        yield made, server


@pytest.fixture
def watcher() -> Iterator[MadeWatcher]:
    made = MadeWatcher()
    yield made
    made.stop()


@pytest.fixture
def served() -> Iterator[Callable[..., Server]]:
    """`serve`, at any free port, ended with the test."""
    servers: list[Server] = []

    def start(watcher: Any, **options: Any) -> Server:
        servers.append(serve(watcher, port=0, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


# As root there is no sandbox; and the browser's own services would look for hosts that are not there.
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
PATIENCE = 1000 * HANG  # in ms


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="the browser tests need playwright from PyPI"
    )
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium is installed (Debian: chromium)")
    with sync_api.sync_playwright() as tools:
        started = tools.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def look(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a page; at the end nothing may have been written to the console, nor asked of another host."""
    contexts, complaints, asked = [], [], []

    def opened(url: str, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1100, "height": 800}, **options})
        context.set_default_timeout(PATIENCE)
        contexts.append((context, url))
        page = context.new_page()
        # Chromium says so when a test fills in the token before the browser itself goes to that field.
        page.on("console", lambda line: line.text.startswith("Autofocus") or complaints.append(line.text))
        page.on("pageerror", lambda problem: complaints.append(str(problem)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(url)
        return page

    yield opened
    for context, _ in contexts:
        context.close()
    assert complaints == []
    assert asked
    assert [url for url in asked if not any(url.startswith(home) for _, home in contexts)] == []
