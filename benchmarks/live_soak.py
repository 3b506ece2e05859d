"""Watches a made camera for a day of its own time, as fast as it goes: is all flat, are its decisions right?

    python benchmarks/live_soak.py --hours 24 --out benchmarks/results/live_soak.md

Simulated are the camera and the clock, and nothing else. The camera gives 24 frames a second by that clock:
small pictures (8 × 6) with noise, of which another scene begins every 2 to 20 s. Every 20 to 90 minutes its
connection is lost, and the next attempt may be refused a few times. A clock that has no need to wait jumps
ahead instead; it holds the camera back only so that the pool keeps up. The rest is what `ongebd watch` runs:
supervisor, pool, hub, history, pictures, and the sinks for records (exchanged at 256 KiB) and thumbnails (at
most 8 MiB), and the page with a viewer who reads all that it is told, with counters rendered five times a
second and a subscriber that reads nothing.

The method is window-mean on the pictures themselves. So a day is two million frames through everything but a
network, a decoder and the backbone.
"""

from __future__ import annotations

import gc
import json
import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import httpx
import numpy as np
from live_report import Halves, Sample, asker, check_lines, hand_in, measured_by, sample

import ongebd
from ongebd.baselines.pictures import Pictures
from ongebd.detector import Model
from ongebd.errors import SourceError
from ongebd.output import RunHeader
from ongebd.output.jsonl import read_jsonl
from ongebd.types import Decision, Epoch, Frame
from ongebd.watch import Patience, Point, StreamStatus, Watcher
from ongebd.watch.server import serve
from ongebd.watch.sinks import PictureSink, RecordSink, Rotation

HEADING = "# A day of a made camera, as fast as it goes"
RATE = 24
AHEAD = 24
"""Frames that the camera may be ahead of the decisions."""


class JumpingClock:
    """Jumps over every wait."""

    def __init__(self) -> None:
        self.now = 0.0

    def wall(self) -> float:
        """Unix seconds."""
        return 1_800_000_000.0 + self.now

    def monotonic(self) -> float:
        """Seconds since the start."""
        return self.now

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Jump ahead."""
        self.now += max(0.0, seconds)
        return stop.is_set()


def frames_of(connection: int, count: int) -> Iterator[Frame]:
    """The frames of one connection; the same whenever they are asked for."""
    rng = np.random.default_rng(connection)
    scenes = rng.integers(20, 200, (64, 6, 8, 3))
    noise = rng.integers(-6, 7, (64, 6, 8, 3))
    # What people are shown: of a usual size, so that the store of pictures is full within hours.
    grain = rng.integers(0, 40, (240, 320, 3))
    shown = [(np.kron(one, np.ones((40, 40, 1))) + grain).astype(np.uint8) for one in scenes]
    bank = {}
    scene, until = 0, 0
    for index in range(count):
        if index >= until:
            scene, until = int(rng.integers(64)), index + int(rng.integers(2 * RATE, 20 * RATE))
        key = scene, index % 64
        if key not in bank:
            bank[key] = (scenes[scene] + noise[key[1]]).astype(np.uint8)
        yield Frame(index, Fraction(index, RATE), bank[key], preview=shown[scene])


class Camera:
    """Opens one connection after another, as the script has it, until the day is over."""

    def __init__(self, clock: JumpingClock, hours: float) -> None:
        self.clock, self.until = clock, hours * 3600
        self.chance = random.Random(7)
        self.connections: list[int] = []  # frames of each
        self.refused = 0
        self.watcher: Watcher | None = None

    def open(self, _source: object, _stop: threading.Event) -> Connection:
        """An opener."""
        if self.clock.now >= self.until:
            raise SourceError("the day is over")
        if self.connections and self.chance.random() < 0.4:
            self.refused += 1
            raise SourceError("the camera restarts")
        left = self.until - self.clock.now
        self.connections.append(int(RATE * min(left, self.chance.uniform(20 * 60, 90 * 60))) + 1)
        return Connection(self, len(self.connections) - 1)

    def keep_pace(self, sent: int) -> None:
        """Wait for the decisions, really."""
        assert self.watcher is not None
        stream = self.watcher.streams["cam"]
        while sent - stream.decided_frames > AHEAD:
            time.sleep(0.0003)


class Connection:
    """A reader."""

    def __init__(self, camera: Camera, number: int) -> None:
        self.expected_duration = None
        self.container = "made"
        self.broken: str | None = None
        self.epochs: list[Epoch] = []
        self._camera, self._number = camera, number

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None: ...

    def __iter__(self) -> Iterator[Frame]:
        camera = self._camera
        before = sum(camera.connections[: self._number])
        for frame in frames_of(self._number, camera.connections[self._number]):
            camera.clock.now += 1 / RATE
            if frame.index % 8 == 0:
                camera.keep_pace(before + frame.index)
            yield frame
        self.broken = "the cable was cut"


class Viewer:
    """Reads the page's feed to its end."""

    def __init__(self) -> None:
        self.messages = self.boundaries = self.gaps = 0
        self.thread = threading.Thread(target=self._read, daemon=True)
        self._url = ""

    def start(self, url: str) -> None:
        """Begin to read."""
        self._url = url
        self.thread.start()

    def _read(self) -> None:
        with httpx.Client(base_url=self._url, timeout=None) as http:
            told = http.get("api/streams").json()
            params = {"after": f"{told['run']}-{told['q']}"}
            with http.stream("GET", "api/feed", params=params) as feed:
                for line in feed.iter_lines():
                    self.messages += line.startswith("data: ")
                    self.gaps += line == "event: gap"
                    if '"events"' in line:
                        events = json.loads(line[6:]).get("events", [])
                        self.boundaries += sum("c" not in event for event in events)


def soak(hours: float, folder: Path) -> list[str]:
    """Run it, check it, and report."""
    model: Model = replace(ongebd.load("window-mean"), backbone=Pictures(8, 6))
    clock = JumpingClock()
    camera = Camera(clock, hours)
    complaints: list[str] = []
    watcher = camera.watcher = Watcher(
        ["cam=rtsp://made/1"],
        model=model,
        clock=clock,
        opener=camera.open,
        patience=Patience(retries=30),
    )
    stream = watcher.streams["cam"]
    header = RunHeader("cam", model.name, {}, 0, 0, ongebd.__version__)
    watcher.attach(
        RecordSink(
            folder / "seen.jsonl",
            watcher.hub,
            {"cam": "cam"},
            header,
            complaints.append,
            lambda: stream.status().frames,
            wall=clock.wall,
            rotation=Rotation(256 * 1024, files=5),
        )
    )
    watcher.attach(
        PictureSink(
            folder / "thumbnails",
            watcher.hub,
            lambda _, number: stream.thumbnail(number),
            complaints.append,
            most_bytes=8 * 2**20,
        )
    )
    idle = watcher.hub.subscribe(Point, limit=1000)
    viewer = Viewer()
    samples: list[Sample] = []
    began = time.perf_counter()
    with watcher, serve(watcher, port=0, clock=clock.wall) as page:
        viewer.start(page.url)
        due = 0.0
        while not watcher.join(0.2):
            watcher.metrics()
            if clock.now >= due:
                gc.collect()
                samples.append(sample(clock.now / 3600, os.getpid()))
                due = clock.now + 3600 * hours / 48
        history = stream.history(3600)
        status = stream.status()
    took = time.perf_counter() - began
    viewer.thread.join()
    return report(hours, took, camera, samples, status, history, idle.lost, viewer, complaints, folder, model)


def report(
    hours: float,
    took: float,
    camera: Camera,
    samples: list[Sample],
    status: StreamStatus,
    history: list[Point],
    lost: int,
    viewer: Viewer,
    complaints: list[str],
    folder: Path,
    model: Model,
) -> list[str]:
    """The figures, and whether they are as they must be."""
    total = sum(camera.connections)
    last = [point for point in history if point.epoch == len(camera.connections) - 1]
    detector = model.stream()
    wanted = [
        detector.update(frame.rgb, frame.time) for frame in frames_of(status.epoch, camera.connections[-1])
    ]
    same = [numbers(point) for point in last] == [numbers(one) for one in wanted[-len(last) :]]
    files = sorted(folder.glob("seen*.jsonl"))
    read = [read_jsonl(file) for file in files]
    halves = Halves.of(samples, max(2.0, hours / 4))
    checks = {
        "every frame was decided": status.frames == total and status.dropped == 0,
        "each connection is an epoch": status.epoch == len(camera.connections) - 1 == status.reconnects,
        f"the last {len(last)} decisions are a fresh detector's": same and len(last) > 0,
        "every file of records is valid by itself": all(one.end is not None for one in read),
        "no sink had trouble": not complaints,
        "the page's viewer was told every boundary": viewer.boundaries == status.boundaries,
    }
    thumbnails = sum(1 for _ in (folder / "thumbnails").iterdir())
    return [
        HEADING,
        "",
        f"{measured_by(f'live_soak.py --hours {hours:g}')} What is simulated stands in its head.",
        "",
        f"{hours:g} h of stream time in {took / 60:.1f} min: {total:,} frames ({total / took:,.0f} a second),"
        f" {status.boundaries:,} boundaries, {len(camera.connections)} connections, {camera.refused} attempts"
        f" that were refused; {len(files)} files of records and {thumbnails:,} thumbnails are left; the idle"
        f" subscriber lost {lost:,} points; the page's viewer was told {viewer.messages:,} messages, with"
        f" {viewer.gaps} gaps.",
        "",
        *halves.table("24 h", 24),
        "",
        f"Samples of {len(samples)} moments; the first {halves.early[0].at:.1f} h, in which the hour's"
        " history and the stores of pictures (16 and 8 MiB) fill, are left out of the table.",
        "",
        *check_lines(checks),
        "",
    ]


def numbers(one: Point | Decision) -> tuple[float, ...]:
    """What a decision and a point both have."""
    return (one.time, one.error, one.mean, one.std, one.z, one.threshold, one.ready)


def main() -> None:
    """Run from the command line."""
    parser = asker(__doc__)
    parser.add_argument("--hours", type=float, default=24.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = soak(given.hours, Path(folder))
    raise SystemExit(not hand_in(lines, given.out))


if __name__ == "__main__":
    main()
