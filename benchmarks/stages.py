"""Where the time of `ongebd detect` goes, in milliseconds of one core a sampled frame, and its start-up.

    python benchmarks/stages.py VIDEO [--seconds 15]

The video is coded again in H.264 and HEVC at 480, 720 and 1080 lines, and once as a picture that stays. Each
stage runs alone, on one thread; the whole command uses two.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import av
import numpy as np

import ongebd
from ongebd.backbones.pipeline import Glance
from ongebd.types import Feature, Frame
from ongebd.video import VideoReader

T = TypeVar("T")
FORMS = [(codec, lines, False) for codec in ("h264", "hevc") for lines in (480, 720, 1080)]
FORMS += [("h264", 720, True)]


def main() -> int:
    """A row for each form of the video."""
    asker = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asker.add_argument("video", type=Path)
    asker.add_argument("--seconds", type=float, default=15.0, help="of the video")
    asked = asker.parse_args()
    print("| ms | decode, resize | luma | network | it sees | cues, trees | sum | frames/s, all | start-up |")
    print("|---|---|---|---|---|---|---|---|---|")
    with TemporaryDirectory() as folder:
        for codec, lines, still in FORMS:
            path = Path(folder) / "coded.mp4"
            frames = encode(asked.video, path, codec, lines, asked.seconds, still)
            name = f"{codec} {lines}" + (", still" if still else "")
            print(f"| {name} | {' | '.join(row(path, frames))} |", flush=True)
    return 0


def encode(source: Path, path: Path, codec: str, lines: int, seconds: float, still: bool) -> int:
    """Code the beginning of a video again; how many frames."""
    count = 0
    with av.open(str(source)) as given, av.open(str(path), "w") as made:
        stream = made.add_stream({"h264": "libx264", "hevc": "libx265"}[codec], rate=30)
        stream.width, stream.height, stream.pix_fmt = lines * 16 // 9 // 2 * 2, lines, "yuv420p"
        stream.options = {"x265-params": "log-level=none"} if codec == "hevc" else {}
        first = None
        for frame in given.decode(video=0):
            if count >= 30 * seconds:
                break
            first = first or frame
            picture = (first if still else frame).reformat(stream.width, lines, "yuv420p")
            picture.pts, picture.time_base, count = count, Fraction(1, 30), count + 1
            made.mux(stream.encode(picture))
        made.mux(stream.encode())
    return count


def row(path: Path, frames: int) -> list[str]:
    """The cells of one video."""
    model = ongebd.load("immediate")
    backbone, glance, stream = model.backbone, Glance(), model.stream()
    with VideoReader(path, 24, view=backbone.view) as video:
        seconds, pictures = timed(lambda: list(video))
    count = len(pictures)

    def look() -> list[Feature | None]:
        return [glance.unseen(backbone.crop(frame.rgb), float(frame.time)) for frame in pictures]

    looking, lumas = timed(look)
    looked = [frame for frame, luma in zip(pictures, lumas, strict=True) if luma is None]
    backbone.embed(looked[0].rgb[np.newaxis])  # opens the network
    network, seen = timed(lambda: [backbone.embed(frame.rgb[np.newaxis])[0] for frame in looked])
    fresh = iter(seen)
    features = [next(fresh) if luma is None else luma for luma in lumas]
    judging, _ = timed(lambda: judge(stream, zip(pictures, features, strict=True)))
    stages = [1e3 * each / count for each in (seconds, looking, network, judging)]
    command = [sys.executable, "-m", "ongebd", "detect", str(path), "-q"]
    whole, _ = timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
    start, _ = timed(
        lambda: subprocess.run([*command, "--end", "0.1"], check=True, stdout=subprocess.DEVNULL)
    )
    cells = [
        *(f"{each:.2f}" for each in stages),
        f"{sum(stages):.2f}",
        f"{frames / whole:.0f}",
        f"{start:.2f} s",
    ]
    cells.insert(3, f"{len(looked) / count:.2f}")
    return cells


def judge(stream: ongebd.OnlineDetector, given: Iterable[tuple[Frame, Feature]]) -> None:
    """Hand all features to a stream."""
    for frame, feature in given:
        stream.take(feature, frame.time)


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds, and what came out."""
    began = time.perf_counter()
    made = work()
    return time.perf_counter() - began, made


if __name__ == "__main__":
    sys.exit(main())
