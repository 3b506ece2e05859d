"""Lets the real `ongebd watch` run by the wall clock, with sources that die and people who look: is all flat?

    python benchmarks/live_wall.py --clips CLIP … --minutes 20 --out benchmarks/results/live_soak.md

Nothing is simulated. Four processes play films made of the clips over TCP in real time (`live_feed.py`); each
minute one of the first two, in turn, is killed and started again after two seconds. `ongebd watch` sees all
four, serves its page, and writes records, thumbnails and clips of its boundaries into folders of limited
size. Twenty clients do what the page does: load the past, follow the feed, fetch each new picture; two of
them load anew every half minute. Every ten seconds the process is looked at from outside.

At the end it is told to stop, and its newest epochs are held against a fresh detector, which reads what the
feeds have really sent, less the frames that `watch` dropped: all numbers of each decided frame as the records
have them (to six digits), and each boundary.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from live_report import Halves, Sample, asker, check_lines, hand_in, mean, measured_by, sample
from live_wall_check import Verdict, held_against_a_fresh_detector

import ongebd

HEADING = "# The real command by the wall clock"
FEED = Path(__file__).with_name("live_feed.py")
STREAMS, CLIENTS, KILLED = 4, 20, 2
CAPS = {"--thumbnails": "4M", "--clips": "48M"}


@dataclass(slots=True)
class Client:
    """One page: what it was told, and how it went."""

    messages: int = 0
    bytes: int = 0
    pictures: int = 0
    loads: int = 0
    gaps: int = 0
    troubles: list[str] = field(default_factory=list)


async def look(url: str, client: Client, reload_after: float | None, ending: asyncio.Event) -> None:
    """Do what the page does, until cancelled or the end."""
    async with httpx.AsyncClient(base_url=url, timeout=httpx.Timeout(10, read=30)) as http:
        while not ending.is_set():
            try:
                async with asyncio.timeout(reload_after):
                    await _load_and_follow(http, client)
            except TimeoutError:
                continue
            except httpx.HTTPError as problem:
                if ending.is_set():
                    return
                client.troubles.append(f"{type(problem).__name__}: {problem}")
                await asyncio.sleep(1)


async def _load_and_follow(http: httpx.AsyncClient, client: Client) -> None:
    client.loads += 1
    for path in ("", "page.js", "card.js", "chart.js", "uPlot.js"):
        (await http.get(path)).raise_for_status()
    overview = (await http.get("api/streams")).raise_for_status().json()
    for stream in overview["streams"]:
        (await http.get(f"api/streams/{stream['key']}/past")).raise_for_status()
    after = f"{overview['run']}-{overview['q']}"
    async with http.stream("GET", "api/feed", params={"after": after}) as feed:
        async for line in feed.aiter_lines():
            client.bytes += len(line)
            client.gaps += line == "event: gap"
            if not line.startswith("data: "):
                continue
            client.messages += 1
            if '"events"' in line:
                for event in json.loads(line[6:]).get("events", []):
                    if event["img"] and "c" not in event:
                        await _fetch(http, client, event)


async def _fetch(http: httpx.AsyncClient, client: Client, event: dict[str, Any]) -> None:
    answer = await http.get(f"api/streams/{event['s']}/thumbnails/{event['n']}")
    client.pictures += answer.status_code == 200


class Feeds:
    """The processes that play."""

    def __init__(self, films: list[Path], sent: Path) -> None:
        self._films, self._sent = films, sent
        self.ports = [_free_port() for _ in films]
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self.kills = 0

    @property
    def sources(self) -> list[str]:
        """As `ongebd watch` takes them."""
        return [f"s{number}=tcp://127.0.0.1:{port}" for number, port in enumerate(self.ports)]

    def start(self, number: int) -> None:
        """Let one play."""
        words = ["play", self._films[number], self.ports[number], self._sent]
        self._running[number] = subprocess.Popen([sys.executable, FEED, *map(str, words)])

    def kill(self, number: int) -> None:
        """End one without a word."""
        process = self._running.pop(number)
        process.kill()
        process.wait()
        self.kills += 1

    def end(self) -> None:
        """End all."""
        for number in list(self._running):
            self.kill(number)

    async def trouble(self, minute: float) -> None:
        """Kill one of the first every minute, and start it again."""
        turn = 0
        while True:
            await asyncio.sleep(minute)
            number = turn % KILLED
            turn += 1
            self.kill(number)
            await asyncio.sleep(2)
            self.start(number)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@dataclass(slots=True)
class Run:
    """What was seen of one."""

    minutes: float
    samples: list[Sample] = field(default_factory=list)
    clients: list[Client] = field(default_factory=lambda: [Client() for _ in range(CLIENTS)])
    kills: int = 0
    status: int | None = None
    stderr: str = ""


async def run(minutes: float, feeds: Feeds, folder: Path, model: str, options: list[str]) -> Run:
    """Watch for so long."""
    seen = Run(minutes)
    command = [sys.executable, "-m", "ongebd", "watch", *feeds.sources, "-m", model, "-q"]
    command += ["--jsonl", str(folder / "seen.jsonl"), "--jsonl-frames", "--serve", "0", *options]
    for option, cap in CAPS.items():
        command += [option, str(folder / option[2:]), f"{option}-size", cap]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    tasks = []
    ending = asyncio.Event()
    try:
        line = (await asyncio.wait_for(process.stderr.readline(), 60)).decode()
        url = line.split()[-1]
        for number, client in enumerate(seen.clients):
            reload_after = 30.0 if number >= CLIENTS - 2 else None
            tasks.append(asyncio.create_task(look(url, client, reload_after, ending)))
        await asyncio.sleep(3)
        for number in range(STREAMS):
            feeds.start(number)
        tasks.append(asyncio.create_task(feeds.trouble(60)))
        began = time.monotonic()
        while (now := time.monotonic() - began) < 60 * minutes and process.returncode is None:
            seen.samples.append(sample(now / 60, process.pid))
            await asyncio.sleep(10)
    finally:
        seen.kills = feeds.kills
        ending.set()
        for task in tasks:
            task.cancel()
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        _, trouble = await asyncio.wait_for(process.communicate(), 60)
        seen.status, seen.stderr = process.returncode, trouble.decode()
        await asyncio.gather(*tasks, return_exceptions=True)
    return seen


def report(seen: Run, verdicts: list[Verdict], folder: Path, model: str, load: float) -> list[str]:
    """The figures, and whether they are as they must be."""
    halves = Halves.of(seen.samples, min(4.0, seen.minutes / 4))
    early, late = halves.early, halves.late
    records = [json.loads(line) for line in (folder / "seen.jsonl").read_text().splitlines()]
    drops = sum(one["count"] for one in records if one["type"] == "drop")
    kinds = {kind: sum(one["type"] == kind for one in records) for kind in ("onset", "boundary", "clip")}
    end = records[-1]
    watching = seen.samples[-1].cpu - seen.samples[0].cpu
    followers = seen.clients[: CLIENTS - 2]
    messages = [client.messages for client in followers]
    kept = {name: sorted((folder / name[2:]).iterdir()) for name in CAPS}
    filling = _filling(seen, end["frames"], kinds["onset"], kept["--thumbnails"])
    apart = late[len(late) // 2].at - early[len(early) // 2].at
    grown = mean(late, "mib") - mean(early, "mib")
    checks = {
        f"ended by SIGTERM with status 130 (it was {seen.status}) and without a word": seen.status == 130
        and not seen.stderr,
        "as many open files and threads in the second half as in the first, give or take a connection"
        " that comes or goes": all(
            abs(mean(early, what) - mean(late, what)) < 2 for what in ("files", "threads")
        ),
        f"memory grew by {grown:.1f} MiB from half to half, no more than history and pictures explain"
        f" ({filling * apart / 60:.1f}), give or take 8": grown < filling * apart / 60 + 8,
        "no client lost a batch or was refused": not any(one.gaps or one.troubles for one in followers),
        "each boundary that began has its centre": kinds["onset"] == kinds["boundary"],
        "no half-written file is left": not any(
            path.suffix == ".part" for paths in kept.values() for path in paths
        ),
        **{f"{one.stream}: {one.text}": one.good for one in verdicts},
    }
    command = f"live_wall.py --minutes {seen.minutes:g}"
    return [
        HEADING,
        "",
        f"{measured_by(command, f'cores shared with other work (load {load:.1f})')} What was watched, and"
        " how, stands in its head.",
        "",
        f"`ongebd watch -m {model}` with {STREAMS} streams of real clips at 25 frames a second and {CLIENTS}"
        f" page clients for {seen.minutes:g} min: {end['frames']:,} frames decided, {drops} dropped,"
        f" {kinds['boundary']:,} boundaries, {kinds['clip']:,} clips, {seen.kills} feeds killed and started"
        f" again. It took {watching / 60 / (seen.samples[-1].at - seen.samples[0].at):.2f} of a"
        f" core. Clients that stayed were told {min(messages):,} to {max(messages):,} messages and fetched"
        f" {sum(one.pictures for one in followers):,} pictures; the two others loaded the page"
        f" {sum(one.loads for one in seen.clients[-2:])} times.",
        "",
        *halves.table("an hour", 60),
        "",
        f"Samples of {len(seen.samples)} moments; the first {early[0].at:.0f} min are left out of the"
        f" table. The hour's history and its pictures, which `watch` keeps in memory, are still filling:"
        f" {filling:.0f} MiB an hour by their sizes (66 bytes a decided frame, and each picture as it is), up"
        " to the hour and 16 MiB of pictures a stream.",
        "",
        *check_lines(checks),
        "",
    ]


def _filling(seen: Run, frames: int, onsets: int, pictures: list[Path]) -> float:
    """MiB that the history grows in an hour."""
    each = np.mean([path.stat().st_size for path in pictures]) if pictures else 0.0
    return float((66 * frames + onsets * each) / 2**20 * 60 / seen.minutes)


def main() -> None:
    """Run from the command line."""
    parser = asker(__doc__)
    parser.add_argument("--clips", type=Path, nargs="+", required=True, help="of 24 frames a second or more")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--model", default="immediate")
    parser.add_argument("--work", type=Path, help="a folder to keep all that was written")
    given, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = given.work or Path(temporary)
        sent = folder / "sent"
        sent.mkdir(parents=True)
        films = [folder / f"film{number}.ts" for number in range(STREAMS)]
        for number, film in enumerate(films):
            clips = given.clips[number::STREAMS]
            subprocess.run([sys.executable, FEED, "prepare", *clips, film], check=True)
        feeds = Feeds(films, sent)
        try:
            seen = asyncio.run(run(given.minutes, feeds, folder, given.model, options))
        finally:
            feeds.end()
        load, model = os.getloadavg()[2], ongebd.load(given.model)
        verdicts = [
            held_against_a_fresh_detector(
                f"s{number}", model, max(sent.glob(f"{port}-*.ts")), folder / "seen.jsonl"
            )
            for number, port in enumerate(feeds.ports)
        ]
        lines = report(seen, verdicts, folder, given.model, load)
    good = hand_in(lines, given.out)
    print(*{trouble for client in seen.clients for trouble in client.troubles}, seen.stderr, sep="\n")
    raise SystemExit(not good)


if __name__ == "__main__":
    main()
