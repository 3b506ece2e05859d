"""Runs the real `ongebd watch` by the wall clock, with sources that die and clients that look at its page.

    python benchmarks/live_wall.py FILM FILM FILM FILM --minutes 20 --out benchmarks/results/live_wall.md

Processes play the films (H.264) over TCP in real time, again and again. Each minute one of the first two is
killed, and started again after two seconds. The command writes records, thumbnails and clips, and has twenty
clients of its page. At the end the newest epochs are compared with a fresh detector's.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing import Process
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import av.error
from live_report import halves_of, hand_in, sample, table, view

import ongebd
from ongebd.detector import Model
from ongebd.output import read_jsonl
from ongebd.video import VideoReader
from ongebd.video.connecting import Connecting

CLIENTS, FIRST_PORT = 20, 38801


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
                end = packets[-1].dts - first + packets[-1].duration + shift
                for packet in packets:
                    packet.pts, packet.dts = packet.pts - first + shift, packet.dts - first + shift
                    time.sleep(max(0.0, began + float(packet.dts * base) - time.monotonic()))
                    packet.stream = stream
                    out.mux_one(packet)
                shift = end


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
    alike = centres == found[: len(centres)] and len(found) - len(centres) <= 1  # the end decides one more
    return alike and len(told) > 100 and fresh == [[one[name] for name in names] for one in told]


def watch(minutes: float, films: list[Path], folder: Path, name: str) -> tuple[Any, Any]:
    """Watch for so long; the report and its checks."""
    command = [sys.executable, "-m", "ongebd", "watch", "-m", name, "-q", "--serve", "0", "--jsonl-frames"]
    ports = range(FIRST_PORT, FIRST_PORT + len(films))
    command += [f"s{number}=tcp://127.0.0.1:{port}" for number, port in enumerate(ports)]
    command += f"--jsonl {folder}/seen.jsonl --clips {folder}/clips --clips-size 48M".split()
    command += f"--thumbnails {folder}/thumbnails --thumbnails-size 4M".split()

    def started(number: int) -> Process:
        player = Process(target=play, args=(films[number], ports[number], folder), daemon=True)
        player.start()
        return player

    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert process.stderr is not None
    url, seen = process.stderr.readline().decode().split()[-1], Counter[str]()
    clients = [threading.Thread(target=view, args=(url, seen), daemon=True) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    time.sleep(3)
    players = [started(number) for number in range(len(films))]
    samples, kills, began = [], 0, time.monotonic()
    while (now := (time.monotonic() - began) / 60) < minutes and process.poll() is None:
        samples.append(sample(now, process.pid))
        time.sleep(10)
        if now > kills + 1:
            players[kills % 2].kill()
            time.sleep(2)
            players[kills % 2] = started(kills % 2)
            kills += 1
    all_stayed = all(client.is_alive() for client in clients)
    process.terminate()
    _, errors = process.communicate(timeout=60)
    for player in players:
        player.kill()
    records = [json.loads(line) for line in (folder / "seen.jsonl").read_text().splitlines()]
    kinds = Counter(one["type"] for one in records)
    early, late = halves = halves_of(samples, min(4.0, minutes / 4))
    cores = (samples[-1][4] - samples[0][4]) / 60 / (samples[-1][0] - samples[0][0])
    text = [
        f"`ongebd watch -m {name}`, {len(films)} streams, {CLIENTS} page"
        f" clients, {minutes:g} min: {kinds['point']:,} frames decided, {kinds['boundary']:,} boundaries,"
        f" {kinds['clip']:,} clips, {kinds['drop']} records of drops, {kills} feeds killed; {cores:.2f} of a"
        f" core. Clients got {seen['messages']:,} messages and {seen['pictures']:,} pictures.",
        "",
        *table(halves),
    ]
    model = ongebd.load(name)
    epochs = [newest_epoch_is_right(f"s{n}", model, folder, port, records) for n, port in enumerate(ports)]
    flat = abs(early.mean(0) - late.mean(0))
    checks = {
        "ended by SIGTERM with status 130, without errors": (process.returncode, errors) == (130, b""),
        "as many open files and threads in both halves, give or take a connection": max(flat[2:4]) < 2,
        f"memory differs by {flat[1]:.1f} MiB between the halves (the hour fills)": flat[1] < 30,
        "no client lost a batch or had an error": all_stayed and not seen["gaps"],
        "the newest epoch of each stream is a fresh detector's": all(epochs),
        "the records are whole, with a centre for each onset": kinds["onset"] == kinds["boundary"]
        and read_jsonl(folder / "seen.jsonl").end is not None,
        "no half-written file is left": not list(folder.glob("*/*.part")),
    }
    return text, checks


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--out", type=Path)
    asked.add_argument("films", type=Path, nargs="+", help="H.264, two or more")
    asked.add_argument("--minutes", type=float, default=20.0)
    asked.add_argument("--model", default="immediate")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        results = watch(given.minutes, given.films, Path(temporary), given.model)
    hand_in(
        "The real command by the wall clock", f"live_wall.py --minutes {given.minutes:g}", *results, given.out
    )
