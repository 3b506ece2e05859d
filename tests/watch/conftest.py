"""Sources that a test makes: readers without a file, and child processes that serve MPEG-TS over TCP."""

from __future__ import annotations

import http.server
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ongebd
from ongebd.baselines.pictures import Pictures
from ongebd.detector import Model, StreamConfig
from ongebd.errors import SourceError
from ongebd.types import Epoch, Frame
from ongebd.watch import ClipLength, Patience
from ongebd.watch.hub import Hub, Subscription
from ongebd.watch.records import Record
from ongebd.watch.sources import Clock
from waiting import HANG, NEVER, until

with suppress(ImportError):  # five seconds, without more words
    from httpx._config import DEFAULT_TIMEOUT_CONFIG as WEB

    WEB.connect = WEB.read = WEB.write = WEB.pool = HANG

QUICK = Patience(
    open_timeout=NEVER, read_timeout=NEVER, stall_after=NEVER, first_delay=0.05, longest_delay=0.2
)


def our_threads() -> set[threading.Thread]:
    """The threads of a watcher that run."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("ongebd")}


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = our_threads()
    yield
    until(lambda: our_threads() <= before)


@pytest.fixture(scope="session")
def light_model() -> Model:
    """Window mean on small pictures: some microseconds a frame."""
    return replace(ongebd.load("window-mean"), backbone=Pictures(8, 6))


def made_frames(levels: Sequence[int], *, fps: int = 24, epoch: int = 0, start: int = 0) -> list[Frame]:
    """A frame for each level: dark with one bright channel, so that another level is a change."""
    frames = []
    for index, level in enumerate(levels):
        picture = np.full((6, 8, 3), 10, np.uint8)
        picture[:, :, level % 3] = 200
        picture[level % 6, level % 8] = 255
        frames.append(Frame(index, Fraction(start + index, fps), picture, epoch, preview=picture))
    return frames


class MadeReader:
    """A connection of made frames; its end may have to wait, and be followed by late frames."""

    def __init__(
        self,
        frames: Sequence[Frame],
        *,
        broken: str | None = None,
        duration: float | None = None,
        pause: float = 0.0,
        hold: threading.Event | None = None,
        container: str = "made",
        late: Sequence[Frame] = (),
    ) -> None:
        self._late = late
        self.expected_duration, self.broken, self.container = duration, broken, container
        self.epochs: list[Epoch] = []
        self.warnings: list[str] = []
        self.cut_off: str | None = None
        self._frames, self._pause, self._hold, self.draining = frames, pause, hold, False

    def __enter__(self) -> MadeReader:
        return self

    def __exit__(self, *_: object) -> None: ...

    def __iter__(self) -> Iterator[Frame]:
        for frame in self._frames:
            if frame.epoch > len(self.epochs):
                self.epochs.append(Epoch(frame.epoch, float(frame.time), "the clock stepped back by 1 s"))
            if self._pause:
                time.sleep(self._pause)
            yield frame
        if self._hold is not None:
            self._hold.wait(NEVER)
            if self._late:
                self.draining = True
                yield from self._late


def opens(*connections: MadeReader | str) -> Callable[..., Any]:
    """An opener that gives the connections in turn; a text is a refusal, and so is what comes after them."""
    left = list(connections)

    def open_next(_source: object, _stop: threading.Event) -> MadeReader:
        one = left.pop(0) if left else "nothing is there any more"
        if isinstance(one, str):
            raise SourceError(one)
        return one

    return open_next


class FixedClock(Clock):
    """Stands still until a test moves it; waits take no time."""

    def __init__(self, now: float = 1_795_852_800.25) -> None:
        self.now = now

    def wall(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        self.now += max(0.0, seconds)
        return stop.is_set()


def sink_watcher(*, clips: bool = False, picture: bytes | None = None) -> Any:
    """As much of a watcher as sinks need, with the streams `cam` and `yard`."""
    missed: list[int] = []
    stream = SimpleNamespace(
        name="Front",
        rate=24.0,
        status=lambda: SimpleNamespace(frames=7, warnings=()),
        history=SimpleNamespace(picture=lambda number: picture, boundaries=list),
        settle_clip=lambda number, clip=None: clip or missed.append(number),
    )
    return SimpleNamespace(
        hub=Hub(),
        footage=Hub(),
        streams={"cam": stream, "yard": stream},
        clips=ClipLength() if clips else None,
        clock=FixedClock(),
        model=SimpleNamespace(name="made"),
        config=StreamConfig(fps=24.0),
        missed=missed,
    )


def everything(subscription: Subscription) -> list[Record]:
    """What waits in a subscription."""
    records = []
    while (record := subscription.get(0)) is not None:
        records.append(record)
    return records


_CHILD = """
import sys, time
import av, numpy as np
port, width, height, rate, speed, gop = (int(a) for a in sys.argv[1:7])
count, codec = int(sys.argv[7]), sys.argv[8]
scenes = [np.full((height, width, 3), 20, np.uint8) for _ in range(3)]
for n, scene in enumerate(scenes):
    scene[:, :, n] = 220
    scene[height // 4 : height // 2, n * width // 4 : (n + 1) * width // 4] = 255
while True:
    try:
        out = av.open(f"tcp://127.0.0.1:{port}?listen=1", "w", format="mpegts")
        stream = out.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.codec_context.gop_size, stream.codec_context.max_b_frames = gop, 0
        began, n = time.monotonic(), 0
        while not count or n < count:
            frame = av.VideoFrame.from_ndarray(scenes[n // 20 % 3], "rgb24")
            frame.pts = n
            out.mux(stream.encode(frame))
            n += 1
            time.sleep(max(0.0, began + n / rate / speed - time.monotonic()))
        out.mux(stream.encode(None))
        out.close()
    except av.error.FFmpegError:
        continue
    if count:
        break
"""


class Feed:
    """A child process that serves a moving picture over TCP, to one client after another."""

    def __init__(self, port: int, width: int, height: int, speed: int, count: int, codec: str) -> None:
        self.url = f"tcp://127.0.0.1:{port}"
        numbers = [port, width, height, 25, speed, 5, count]
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CHILD, *(str(number) for number in numbers), codec],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def feeding(
    port: int, *, width: int = 96, height: int = 64, speed: int = 1, count: int = 0, codec: str = "mpeg2video"
) -> Iterator[Feed]:
    feed = Feed(port, width, height, speed, count, codec)
    try:
        yield feed
    finally:
        feed.kill()


@contextmanager
def answering(*statuses: int) -> Iterator[tuple[str, list[Any]]]:
    """A server that answers with these, then with 204; and what it was sent."""
    left: list[int] = list(statuses)
    got: list[Any] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(left.pop(0) if left else 204)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://me:hunter2@127.0.0.1:{server.server_port}/hook", got
        finally:
            server.shutdown()
            thread.join()
