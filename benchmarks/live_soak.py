"""Watches a simulated camera for a day of its own time, as fast as possible.

    python benchmarks/live_soak.py --hours 24 --out benchmarks/results/live_soak.md

Only the camera and the clock are simulated. By that clock the camera gives 24 small noisy frames a second, a
new scene every 2 to 20 s. Every 20 to 90 minutes its connection is lost. The clock jumps over every wait,
and holds the camera back only so that the pool keeps up. The rest is what `ongebd watch` runs, with a page
viewer. The method is window-mean.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from live_report import halves_of, hand_in, sample, table, view

import ongebd
from ongebd.baselines.pictures import Pictures
from ongebd.errors import SourceError
from ongebd.output import read_jsonl
from ongebd.types import Frame
from ongebd.watch import Patience, Point, Watcher
from ongebd.watch.server import serve
from ongebd.watch.sinks.folder import PictureSink
from ongebd.watch.sinks.jsonl import RecordSink
from ongebd.watch.sources import Clock

RATE = 24
NUMBERS = attrgetter("time", "error", "mean", "std", "z", "threshold", "ready")


class JumpingClock(Clock):
    """Jumps over every wait."""

    now = 0.0

    def wall(self) -> float:
        return 1_800_000_000.0 + self.now

    def monotonic(self) -> float:
        return self.now

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        self.now += max(0.0, seconds)
        return stop.is_set()


def frames_of(connection: int, count: int) -> Iterator[Frame]:
    """The frames of one connection; always the same."""
    rng = np.random.default_rng(connection)
    scenes, noise = rng.integers(20, 200, (64, 6, 8, 3)), rng.integers(-6, 7, (64, 6, 8, 3))
    shown = [np.kron(one, np.ones((40, 40, 1))).astype(np.uint8) for one in scenes]
    scene, until = 0, 0
    for index in range(count):
        if index >= until:
            scene, until = int(rng.integers(64)), index + int(rng.integers(2 * RATE, 20 * RATE))
        picture = (scenes[scene] + noise[index % 64]).astype(np.uint8)
        yield Frame(index, Fraction(index, RATE), picture, preview=shown[scene])


class Camera:
    """Opens one connection after another until the day is over; it is also their reader."""

    expected_duration, container, broken, epochs, warnings = None, "made", "the cable was cut", (), ()
    watcher: Watcher

    def __init__(self, clock: JumpingClock, hours: float) -> None:
        self.clock, self.until = clock, hours * 3600
        self.chance = random.Random(7)
        self.connections: list[int] = []  # frames of each

    @contextmanager
    def open(self, _source: object, _stop: threading.Event) -> Iterator[Any]:
        """An opener."""
        if self.clock.now >= self.until:
            raise SourceError("the day is over")
        seconds = min(self.until - self.clock.now, self.chance.uniform(20 * 60, 90 * 60))
        self.connections.append(int(RATE * seconds) + 1)
        yield self

    def __iter__(self) -> Iterator[Frame]:
        before = sum(self.connections[:-1])
        for frame in frames_of(len(self.connections) - 1, self.connections[-1]):
            self.clock.now += 1 / RATE
            sent, stream = before + frame.index, self.watcher.streams["cam"]
            while frame.index % 8 == 0 and sent - stream.status().frames > RATE:  # the pool keeps up
                time.sleep(0.0003)
            yield frame


def soak(hours: float, folder: Path, out: Path | None) -> None:
    """Run it, check it, and report."""
    model = replace(ongebd.load("window-mean"), backbone=Pictures(8, 6))
    clock, complaints, samples, seen = JumpingClock(), list[str](), [], Counter[str]()
    camera = Camera(clock, hours)
    watcher = camera.watcher = Watcher(
        ["cam=rtsp://made/1"], model=model, clock=clock, opener=camera.open, patience=Patience(retries=30)
    )
    watcher.attach(RecordSink(folder / "seen.jsonl", watcher, complaints.append, size=256 * 1024, files=5))
    watcher.attach(PictureSink(folder / "thumbnails", watcher, complaints.append, most_bytes=8 * 2**20))
    newest = watcher.hub.subscribe(Point, limit=RATE * 3600)
    began, due = time.perf_counter(), 0.0
    with watcher, serve(watcher, port=0) as page:
        viewer = threading.Thread(target=view, args=(page.url, seen), daemon=True)
        viewer.start()
        while not watcher.join(0.2):
            watcher.metrics()
            if clock.now >= due:
                samples.append(sample(clock.now / 3600, os.getpid()))
                due = clock.now + 3600 * hours / 48
        time.sleep(0.5)  # the viewer's last batch
        status = watcher.streams["cam"].status()
    took = time.perf_counter() - began
    viewer.join()
    total, connections = sum(camera.connections), camera.connections
    points: Iterator[Any] = iter(newest.get, None)
    last = [NUMBERS(point) for point in points if point.epoch == len(connections) - 1]
    detector = model.stream()
    fresh = [detector.update(frame.rgb, frame.time) for frame in frames_of(status.epoch, connections[-1])]
    files = sorted(folder.glob("seen*.jsonl"))
    halves = halves_of(samples, max(2.0, hours / 4))
    text = [
        f"{hours:g} h of stream in {took / 60:.1f} min: {total:,} frames, {total / took:,.0f} a second;"
        f" {status.boundaries:,} boundaries, {len(connections)} connections. {len(samples)} samples,"
        f" from {halves[0][0, 0]:.1f} h on, when the history and the folders are full.",
        "",
        *table(halves),
    ]
    checks = {
        "every frame was decided": status.frames == total and status.dropped == 0,
        "each connection is an epoch": status.epoch == len(connections) - 1 == status.reconnects,
        f"the last {len(last)} decisions are a fresh detector's": bool(last)
        and last == [NUMBERS(one) for one in fresh[-len(last) :]],
        "every file of records is valid by itself": all(read_jsonl(file).end is not None for file in files),
        "no sink reported an error": not complaints,
        "the page's viewer got every picture": 0 < seen["told"] == seen["pictures"] and not seen["gaps"],
    }
    hand_in("A day of a simulated camera", f"live_soak.py --hours {hours:g}", text, checks, out)


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--out", type=Path)
    asked.add_argument("--hours", type=float, default=24.0)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        soak(given.hours, Path(temporary), given.out)
