"""A child process that plays video over TCP as MPEG-TS, in real time, from its beginning for each client.

    python benchmarks/live_feed.py prepare CLIP … film.ts      # one film of several clips, all in one size
    python benchmarks/live_feed.py play film.ts PORT FOLDER    # until it is killed

The film is played in a loop with timestamps that go on. What one client is sent stands in FOLDER besides, as
PORT-0000.ts, PORT-0001.ts, …: nobody who wants to know later what that client saw need guess.
"""

from __future__ import annotations

import argparse
import socket
import time
from fractions import Fraction
from pathlib import Path

import av
import av.error

RATE, WIDTH, HEIGHT = 25, 480, 270


def prepare(clips: list[Path], film: Path, seconds: float = 15.0) -> None:
    """Write the first seconds of each clip one after another, H.264, a keyframe each second."""
    with av.open(str(film), "w") as out:
        options = {"preset": "veryfast", "crf": "26", "g": str(RATE), "x264-params": "scenecut=0:open-gop=0"}
        stream = out.add_stream("libx264", rate=RATE, options=options)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        count = 0
        for clip in clips:
            began, first = count, None
            with av.open(str(clip)) as source:
                for picture in source.decode(video=0):
                    if picture.time is None:
                        continue
                    first = picture.time if first is None else first
                    if picture.time - first > seconds:
                        break
                    number = began + round((picture.time - first) * RATE)
                    if number < count:  # it has more frames a second
                        continue
                    small = picture.reformat(WIDTH, HEIGHT, "yuv420p")
                    small.pts, small.time_base = number, Fraction(1, RATE)
                    out.mux(stream.encode(small))
                    count = number + 1
        out.mux(stream.encode(None))


def play(film: Path, port: int, folder: Path) -> None:
    """Serve one client after another, for ever."""
    with socket.create_server(("127.0.0.1", port)) as server:
        while True:
            client, _ = server.accept()
            number = len(list(folder.glob(f"{port}-*.ts")))
            with client, (folder / f"{port}-{number:04d}.ts").open("wb", buffering=0) as copy:
                try:
                    _send(film, _Both(client, copy))
                except (OSError, av.error.FFmpegError):  # the client went away
                    continue


class _Both:
    """Written to: a client, and a copy of what it is sent, which is never behind."""

    def __init__(self, client: socket.socket, copy: object) -> None:
        self._client, self._copy = client, copy

    def write(self, data: bytes) -> int:
        """Write to both."""
        data = bytes(data)
        self._copy.write(data)  # type: ignore[attr-defined]
        self._client.sendall(data)
        return len(data)


def _send(film: Path, target: _Both) -> None:
    began = time.monotonic()
    with av.open(target, "w", format="mpegts") as out:
        stream = None
        shift = 0
        while True:
            with av.open(str(film)) as source:
                played = source.streams.video[0]
                stream = stream or out.add_stream_from_template(played, opaque=True)
                first, end = None, 0
                for packet in source.demux(played):
                    if packet.dts is None or packet.pts is None:
                        continue
                    base = packet.time_base
                    first = packet.dts if first is None else first
                    end = max(end, packet.dts - first + round(Fraction(1, RATE) / base))
                    packet.pts, packet.dts = packet.pts - first + shift, packet.dts - first + shift
                    time.sleep(max(0.0, began + float(packet.dts * base) - time.monotonic()))
                    packet.stream = stream
                    out.mux_one(packet)
                shift += end


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    doing = parser.add_subparsers(dest="doing", required=True)
    preparing = doing.add_parser("prepare")
    preparing.add_argument("clips", type=Path, nargs="+")
    preparing.add_argument("film", type=Path)
    playing = doing.add_parser("play")
    playing.add_argument("film", type=Path)
    playing.add_argument("port", type=int)
    playing.add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.doing == "prepare":
        prepare(given.clips, given.film)
    else:
        play(given.film, given.port, given.folder)


if __name__ == "__main__":
    main()
