"""Speed and memory of `ongebd detect`, with PySceneDetect on the same file in the same run.

Encodes a real clip as 720p30 H.264, runs both programs in turn as whole processes, and prints medians and the
ratio of each pair. Then the peak memory for a short and a long video, and the time of `import ongebd` and
`ongebd --help`. Ratios hold on other machines; seconds don't.

Usage: python benchmarks/detect_speed.py [--video CLIP] [--seconds 60] [--runs 5] [--skip-long]
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av

from ongebd.lab.benchmark.machine import processor

ROOT = Path(__file__).resolve().parents[1]
DEMO_CLIP = ROOT / ".cache" / "demo" / "bikes.mp4"
RATE = 30
SCENEDETECT = (
    "from scenedetect import AdaptiveDetector, detect; import sys; detect(sys.argv[1], AdaptiveDetector())"
)


def main() -> None:
    """Measure everything and print it as Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--video", type=Path, default=DEMO_CLIP, help="the clip whose frames are used")
    parser.add_argument("--seconds", type=int, default=60, help="length of the timed file")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--skip-long", action="store_true", help="skip the 20-minute video")
    asked = parser.parse_args()
    if asked.video == DEMO_CLIP and not DEMO_CLIP.exists():
        subprocess.run([sys.executable, ROOT / "scripts" / "fetch_demo_clip.py", DEMO_CLIP], check=True)

    print(f"{processor()}, {os.cpu_count()} cores, Python {platform.python_version()}, {time.strftime('%F')}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frames = asked.seconds * RATE
        video = repeat(encode(asked.video, folder / "once.mp4"), folder / "720p30.mp4", frames)

        def ours(path: Path) -> list[str]:
            return [*python("-m", "ongebd", "detect", str(path), "--quiet"), "--out", str(folder / "out")]

        theirs = python("-c", SCENEDETECT, str(video))
        run(ours(video)), run(theirs)
        pairs = [(run(ours(video))[0], run(theirs)[0]) for _ in range(asked.runs)]
        row("source frames/s", "")
        row("---", "---")
        row("ongebd detect", spread([frames / a for a, _ in pairs]))
        row("PySceneDetect AdaptiveDetector", spread([frames / b for _, b in pairs]))
        row("ratio", spread([b / a for a, b in pairs]))
        for length in (20, *(() if asked.skip_long else (20 * 60,))):
            copy = repeat(video, folder / "copy.mp4", length * RATE)
            row(f"peak memory, {length} s of video", f"{run(ours(copy))[1]:.1f} MiB")
    for what in (("-c", "pass"), ("-c", "import ongebd"), ("-m", "ongebd", "--help")):
        run(python(*what))
        row(f"python {' '.join(what)}", spread([run(python(*what))[0] for _ in range(5)]) + " s")


def python(*arguments: str) -> list[str]:
    """A command of this Python."""
    return [sys.executable, *arguments]


def encode(clip: Path, target: Path) -> Path:
    """Encode the clip's frames as 1280×720 H.264 at 30 frames/s."""
    with av.open(str(clip)) as source, av.open(str(target), "w") as sink:
        stream = sink.add_stream("libx264", rate=RATE, options={"crf": "23", "preset": "medium"})
        stream.width, stream.height, stream.pix_fmt = 1280, 720, "yuv420p"
        for n, picture in enumerate(source.decode(video=0)):
            frame = picture.reformat(1280, 720, "yuv420p", interpolation="BICUBIC")
            frame.pts, frame.time_base = n, Fraction(1, RATE)
            sink.mux(stream.encode(frame))
        sink.mux(stream.encode(None))
    return target


def repeat(clip: Path, target: Path, frames: int) -> Path:
    """Copy a clip's packets until the file has that many frames, without encoding."""
    with av.open(str(clip)) as source, av.open(str(target), "w") as sink:
        packets = [(bytes(p), p.pts or 0, p.dts or 0, p.is_keyframe) for p in source.demux(video=0) if p.size]
        stream = sink.add_stream_from_template(source.streams.video[0])
        time_base = source.streams.video[0].time_base
        assert time_base is not None
        for n in range(frames):
            data, pts, dts, key = packets[n % len(packets)]
            shift = n // len(packets) * len(packets) * int(1 / RATE / time_base)
            packet = av.Packet(data)
            packet.stream, packet.time_base, packet.is_keyframe = stream, time_base, key
            packet.pts, packet.dts = pts + shift, dts + shift
            sink.mux(packet)
    return target


def run(command: Sequence[str]) -> tuple[float, float]:
    """Wall seconds and peak memory (MiB) of one process."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{errors.decode()}")
    return time.perf_counter() - started, usage.ru_maxrss / 1024


def spread(values: Sequence[float]) -> str:
    """Median, minimum and maximum."""
    return f"{statistics.median(values):.3g} ({min(values):.3g}–{max(values):.3g})"


def row(name: str, value: str) -> None:
    """Print a row of the table."""
    print(f"| {name} | {value} |", flush=True)


if __name__ == "__main__":
    main()
