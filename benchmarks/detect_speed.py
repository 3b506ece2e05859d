"""How fast and how large `ongebd detect` is, beside PySceneDetect on the same file in the same run.

Makes a 720p30 H.264 file from a real clip, then runs both programs in turn as whole processes (start-up
included), and reports medians and the ratio pair by pair. Then compares the peak memory of a short and a long
video, and the time that `import ongebd` and `ongebd --help` take.

Usage: python benchmarks/detect_speed.py [--video CLIP] [--seconds 60] [--runs 5] [--json FILE]

Machines differ and are noisy: the ratio holds, the seconds do not.
"""

from __future__ import annotations

import argparse
import json
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

from ongebd.common.processor import processor
from ongebd.lab.benchmark.machine import cores

ROOT = Path(__file__).resolve().parents[1]
DEMO_CLIP = ROOT / ".cache" / "demo" / "bikes.mp4"
RATE = 30
LONG_MINUTES = 20

SCENEDETECT = (
    "from scenedetect import AdaptiveDetector, detect; import sys; detect(sys.argv[1], AdaptiveDetector())"
)


def main() -> int:
    """Run everything and print the tables."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--video", type=Path, default=DEMO_CLIP, help="the clip whose frames are used")
    options.add_argument("--seconds", type=int, default=60, help="length of the file that is timed")
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--skip-long", action="store_true", help="leave the 20 minute video out")
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    if asked.video == DEMO_CLIP and not DEMO_CLIP.exists():
        subprocess.run([sys.executable, ROOT / "scripts" / "fetch_demo_clip.py", DEMO_CLIP], check=True)

    report: dict[str, object] = {"machine": machine()}
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        video = make_720p30(asked.video, here / "720p30.mp4", asked.seconds)
        frames = asked.seconds * RATE
        ours = [sys.executable, "-m", "ongebd", "detect", str(video), "--quiet", "--out", str(here / "out")]
        theirs = [sys.executable, "-c", SCENEDETECT, str(video)]
        report["speed"] = race(ours, theirs, frames, asked.runs)
        report["memory"] = memory(video, here, asked.seconds, long=not asked.skip_long)
    report["start"] = {
        "import ongebd": median_seconds([sys.executable, "-c", "import ongebd"], asked.runs),
        "import ongebd, detect and load": median_seconds(
            [sys.executable, "-c", "from ongebd import detect, load"], asked.runs
        ),
        "ongebd --help": median_seconds([sys.executable, "-m", "ongebd", "--help"], asked.runs),
        "python alone": median_seconds([sys.executable, "-c", "pass"], asked.runs),
    }
    show(report)
    if asked.json:
        asked.json.write_text(json.dumps(report, indent=2) + "\n")
    return 0


def make_720p30(clip: Path, target: Path, seconds: int) -> Path:
    """Encode the clip's frames as 1280×720 H.264 at 30 frames/s, and repeat them to the wanted length."""
    once = target.with_name("once.mp4")
    with av.open(str(clip)) as source, av.open(str(once), "w") as sink:
        stream = sink.add_stream("libx264", rate=RATE, options={"crf": "23", "preset": "medium"})
        stream.width, stream.height, stream.pix_fmt = 1280, 720, "yuv420p"
        for n, picture in enumerate(source.decode(video=0)):
            frame = picture.reformat(1280, 720, "yuv420p", interpolation="BICUBIC")
            frame.pts, frame.time_base = n, Fraction(1, RATE)
            sink.mux(stream.encode(frame))
        sink.mux(stream.encode(None))
    return repeat(once, target, seconds * RATE)


def repeat(clip: Path, target: Path, frames: int) -> Path:
    """Copy a clip's packets again and again until the file has that many frames; nothing is encoded."""
    with av.open(str(clip)) as source:
        packets = [(bytes(p), p.pts, p.dts, p.is_keyframe) for p in source.demux(video=0) if p.size]
        time_base = source.streams.video[0].time_base
        assert time_base is not None
        step = int(1 / RATE / time_base)
        with av.open(str(target), "w") as sink:
            stream = sink.add_stream_from_template(source.streams.video[0])
            for n in range(frames):
                data, pts, dts, key = packets[n % len(packets)]
                shift = n // len(packets) * len(packets) * step
                packet = av.Packet(data)
                packet.stream, packet.time_base, packet.is_keyframe = stream, time_base, key
                packet.pts, packet.dts = (pts or 0) + shift, (dts or 0) + shift
                sink.mux(packet)
    return target


def race(ours: Sequence[str], theirs: Sequence[str], frames: int, runs: int) -> dict[str, object]:
    """Frames per second of both, in turn, after one warm-up of each."""
    run(ours), run(theirs)
    pairs = [(run(ours)[0], run(theirs)[0]) for _ in range(runs)]
    return {
        "source frames": frames,
        "ongebd detect": spread([frames / a for a, _ in pairs]),
        "PySceneDetect AdaptiveDetector": spread([frames / b for _, b in pairs]),
        "ratio ours / theirs": spread([b / a for a, b in pairs]),
    }


def memory(video: Path, folder: Path, seconds: int, *, long: bool) -> dict[str, float]:
    """Peak memory, MiB, of a 20 s video and, if wanted, a 20 min one."""
    lengths = {"20 s": 20 * RATE, **({f"{LONG_MINUTES} min": LONG_MINUTES * 60 * RATE} if long else {})}
    peaks = {}
    for name, frames in lengths.items():
        copy = repeat(video, folder / "copy.mp4", frames)
        detect = [
            sys.executable,
            "-m",
            "ongebd",
            "detect",
            str(copy),
            "--quiet",
            "--out",
            str(folder / "out"),
        ]
        peaks[name] = round(run(detect)[1], 1)
    return peaks


def run(command: Sequence[str]) -> tuple[float, float]:
    """Wall seconds and peak memory (MiB) of one process."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    complaint = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{complaint.decode()}")
    return took, usage.ru_maxrss / 1024


def median_seconds(command: Sequence[str], runs: int) -> float:
    """Median wall seconds of a process, after a warm-up."""
    run(command)
    return round(statistics.median(run(command)[0] for _ in range(max(runs, 5))), 3)


def spread(values: Sequence[float]) -> dict[str, float]:
    """Minimum, median, maximum."""
    return {
        "min": round(min(values), 3),
        "median": round(statistics.median(values), 3),
        "max": round(max(values), 3),
    }


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    return {
        "cpu": processor(),
        "cores": cores(),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }


def show(report: dict[str, object]) -> None:
    """Print the report as Markdown tables."""
    for title, rows in report.items():
        assert isinstance(rows, dict)
        print(f"\n| {title} | |\n|---|---|")
        for name, value in rows.items():
            if isinstance(value, dict):
                value = f"{value['median']:g} ({value['min']:g}–{value['max']:g})"
            print(f"| {name} | {value} |")


if __name__ == "__main__":
    sys.exit(main())
