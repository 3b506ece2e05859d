"""Runs the real `ongebd watch` by the wall clock, with sources that die and clients that look at its page.

    python benchmarks/live_wall.py --clips CLIP … --minutes 20 --out benchmarks/results/live_wall.md

Four processes play films made of the clips over TCP in real time. Each minute one of the first two is killed,
and started again after two seconds. `ongebd watch` writes records, thumbnails and clips into capped folders.
Twenty clients do what the page does: load the past, follow the feed, fetch each new picture. At the end the
newest epochs are compared with a fresh detector's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import islice
from multiprocessing import Process
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import av.error
import httpx
from live_report import halves_of, hand_in, sample, table

import ongebd
from ongebd.detector import Model
from ongebd.output import read_jsonl
from ongebd.video import VideoReader
from ongebd.video.connecting import Connecting

RATE, STREAMS, CLIENTS = 25, 4, 20
PORTS = range(38801, 38801 + STREAMS)


def prepare(clips: list[Path], film: Path) -> None:
    """Join the first 15 s of each clip: H.264, a keyframe each second."""
    options = {"preset": "veryfast", "crf": "26", "g": str(RATE), "x264-params": "scenecut=0:open-gop=0"}
    size: Any = {"width": 480, "height": 270, "pix_fmt": "yuv420p"}
    with av.open(str(film), "w") as out:
        stream = out.add_stream("libx264", rate=RATE, options=options, **size)
        count = 0
        for clip in clips:
            with av.open(str(clip)) as source:
                for picture in islice(source.decode(video=0), 15 * RATE):
                    small = picture.reformat(480, 270, "yuv420p")
                    small.pts, small.time_base = count, Fraction(1, RATE)
                    out.mux(stream.encode(small))
                    count += 1
        out.mux(stream.encode(None))


def play(film: Path, port: int, folder: Path) -> None:
    """Serve one client after another, in a loop and in real time, with timestamps that go on."""
    with socket.create_server(("127.0.0.1", port)) as server:
        while True:
            client, _ = server.accept()
            number = len(list(folder.glob(f"{port}-*.ts")))
            copy = (folder / f"{port}-{number:04d}.ts").open("wb", buffering=0)

            def send(data: bytes, client: Any = client, copy: Any = copy) -> int:
                copy.write(data)
                client.sendall(data)
                return len(data)

            with client, copy, contextlib.suppress(OSError, av.error.FFmpegError):
                send_film(film, send)


def send_film(film: Path, send: Callable[[bytes], int]) -> None:
    """Send a film again and again, until the client goes away."""
    began, shift, stream = time.monotonic(), 0, None
    with av.open(SimpleNamespace(write=send), "w", format="mpegts") as out:
        while True:
            with av.open(str(film)) as source:
                stream = stream or out.add_stream_from_template(source.streams.video[0], opaque=True)
                packets = [one for one in source.demux(video=0) if one.dts is not None]
                first, base = packets[0].dts, packets[0].time_base
                end = packets[-1].dts - first + round(Fraction(1, RATE) / base) + shift
                for packet in packets:
                    packet.pts, packet.dts = packet.pts - first + shift, packet.dts - first + shift
                    time.sleep(max(0.0, began + float(packet.dts * base) - time.monotonic()))
                    packet.stream = stream
                    out.mux_one(packet)
                shift = end


async def look(url: str, seen: Counter[str]) -> None:
    """Do what the page does: load it and the past, then follow the feed and fetch each new picture."""
    shown = set[str]()
    async with httpx.AsyncClient(base_url=url, timeout=httpx.Timeout(10, read=30)) as http:
        overview = (await http.get("api/streams")).raise_for_status().json()
        for path in (
            "",
            "page.js",
            "uPlot.js",
            *(f"api/streams/{one['key']}/past" for one in overview["streams"]),
        ):
            (await http.get(path)).raise_for_status()
        params = {"after": f"{overview['run']}-{overview['q']}"}
        async with http.stream("GET", "api/feed", params=params) as feed:
            async for line in feed.aiter_lines():
                seen["gaps"] += line == "event: gap"
                seen["messages"] += line.startswith("data: ")
                for event in json.loads(line[6:])["events"] if '"events"' in line else ():
                    path = f"api/streams/{event['s']}/thumbnails/{event['n']}"
                    if event["img"] and path not in shown:
                        shown.add(path)
                        seen["pictures"] += (await http.get(path)).status_code == 200


def newest_epoch_is_right(key: str, model: Model, folder: Path, port: int, records: list[Any]) -> bool:
    """Whether every number of a stream's newest epoch is that of a fresh detector."""
    mine = [one for one in records if one.get("stream") == key and "epoch" in one]
    newest = [one for one in mine if one["epoch"] == max(one["epoch"] for one in mine)]
    told = [one for one in newest if one["type"] == "point"]
    found = [one["time"] for one in newest if one["type"] == "boundary"]
    times, detector = {one["time"] for one in told}, model.stream()
    sent, live, view = max(folder.glob(f"{port}-*.ts")), Connecting(live=True), model.backbone.view
    with VideoReader(str(sent), model.defaults.rate(), view=view, connecting=live) as reader:
        frames = (frame for frame in reader if round(float(frame.time), 6) in times)
        decisions = [detector.update(frame.rgb, frame.time) for frame in frames]
    names = ("time", "error", "mean", "std", "threshold", "z", "ready")
    fresh = [[round(getattr(one, name), 6) for name in names] for one in decisions]
    centres = [round(one.boundary.time, 6) for one in decisions if one.boundary]
    # The end of the watch may have decided one more.
    alike = centres == found[: len(centres)] and len(found) - len(centres) <= 1
    return alike and len(told) > 100 and fresh == [[one[name] for name in names] for one in told]


async def watch(minutes: float, films: list[Path], folder: Path, name: str) -> tuple[Any, Any]:
    """Watch for so long; the report and its checks."""
    command = [sys.executable, "-m", "ongebd", "watch", "-m", name, "-q", "--serve", "0", "--jsonl-frames"]
    command += [f"s{number}=tcp://127.0.0.1:{port}" for number, port in enumerate(PORTS)]
    command += f"--jsonl {folder}/seen.jsonl --clips {folder}/clips --clips-size 48M".split()
    command += f"--thumbnails {folder}/thumbnails --thumbnails-size 4M".split()

    def started(number: int) -> Process:
        player = Process(target=play, args=(films[number], PORTS[number], folder), daemon=True)
        player.start()
        return player

    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    url = (await process.stderr.readline()).decode().split()[-1]
    seen = Counter[str]()
    clients = [asyncio.create_task(look(url, seen)) for _ in range(CLIENTS)]
    await asyncio.sleep(3)
    players = [started(number) for number in range(STREAMS)]
    samples, kills, began = [], 0, time.monotonic()
    while (now := (time.monotonic() - began) / 60) < minutes and process.returncode is None:
        samples.append(sample(now, process.pid))
        await asyncio.sleep(10)
        if now > kills + 1:
            players[kills % 2].kill()
            await asyncio.sleep(2)
            players[kills % 2] = started(kills % 2)
            kills += 1
    all_stayed = not any(client.done() for client in clients)
    process.send_signal(signal.SIGTERM)
    _, errors = await asyncio.wait_for(process.communicate(), 60)
    await asyncio.gather(*clients, return_exceptions=True)
    for player in players:
        player.kill()
    records = [json.loads(line) for line in (folder / "seen.jsonl").read_text().splitlines()]
    kinds = Counter(one["type"] for one in records)
    early, late = halves = halves_of(samples, min(4.0, minutes / 4))
    cores = (samples[-1][4] - samples[0][4]) / 60 / (samples[-1][0] - samples[0][0])
    text = [
        f"`ongebd watch -m {name}`, {STREAMS} streams of real clips at {RATE} frames a second, {CLIENTS} page"
        f" clients, {minutes:g} min: {kinds['point']:,} frames decided, {kinds['boundary']:,} boundaries,"
        f" {kinds['clip']:,} clips, {kinds['drop']} records of drops, {kills} feeds killed; {cores:.2f} of a"
        f" core. Clients got {seen['messages']:,} messages and {seen['pictures']:,} pictures.",
        "",
        *table(halves),
    ]
    epochs = [
        newest_epoch_is_right(f"s{n}", ongebd.load(name), folder, port, records)
        for n, port in enumerate(PORTS)
    ]
    flat = abs(early.mean(0) - late.mean(0))
    checks = {
        "ended by SIGTERM with status 130, without errors": (process.returncode, errors) == (130, b""),
        "as many open files and threads in both halves, give or take a connection": max(flat[2:4]) < 2,
        f"memory differs by {flat[1]:.1f} MiB between the halves (the hour fills)": flat[1] < 30,
        "no client lost a batch or had an error": all_stayed and not seen["gaps"],
        "the newest epoch of each stream is a fresh detector's": all(epochs),
        "each onset has its centre": kinds["onset"] == kinds["boundary"],
        "the records are whole": read_jsonl(folder / "seen.jsonl").end is not None,
        "no half-written file is left": not list(folder.glob("*/*.part")),
    }
    return text, checks


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--out", type=Path)
    asked.add_argument("--clips", type=Path, nargs="+", required=True, help="of about 25 frames a second")
    asked.add_argument("--minutes", type=float, default=20.0)
    asked.add_argument("--model", default="immediate")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        made = [Path(temporary) / f"film{number}.ts" for number in range(STREAMS)]
        for number, film in enumerate(made):
            prepare(given.clips[number::STREAMS], film)
        results = asyncio.run(watch(given.minutes, made, Path(temporary), given.model))
    hand_in(
        "The real command by the wall clock", f"live_wall.py --minutes {given.minutes:g}", *results, given.out
    )
