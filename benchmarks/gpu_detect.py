"""Speed of `ongebd detect --device cuda` on a folder of ten-second clips, against two cores. Needs a GPU.

    python benchmarks/gpu_detect.py [--clips 200] [--few 20] [--model immediate] [--video CLIP]

The clips are 720p30 H.264. The two cores read a few of them. It prints source frames a second of whole
processes, when results came, how fast the same processes only decode, and whether the boundaries agree.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import av
import numpy as np
import torch
from detect_speed import DEMO_CLIP, RATE, encode, repeat

from ongebd.lab.benchmark.machine import processor
from ongebd.output import read_jsonl

SECONDS = 10
DECODE = """
import sys, ongebd
from ongebd.video import VideoReader
view = ongebd.load(sys.argv[1]).backbone.view
for path in sys.argv[2:]:
    with VideoReader(path, 24, view=view) as video:
        for frame in video: pass
"""

NVDEC = """
import sys, av
from av.codec.hwaccel import HWAccel
for path in sys.argv[1:]:
    with av.open(path, hwaccel=HWAccel("cuda", allow_software_fallback=False)) as video:
        for frame in video.decode(video=0): pass
"""
TWO_CORES = """
import os, sys
os.sched_setaffinity(0, {0, 1})
os.cpu_count = lambda: 2
from ongebd.cli import main
sys.exit(main(sys.argv[1:]))
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clips", type=int, default=200)
    parser.add_argument("--few", type=int, default=20, help="clips for the two cores")
    parser.add_argument("--model", default="immediate")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--video", type=Path, default=DEMO_CLIP, help="the clip whose frames are used")
    asked = parser.parse_args()
    cores = os.cpu_count() or 1
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    print(f"{gpu}, {processor()}, {cores} cores, Python {platform.python_version()}, {time.strftime('%F')}")
    devices = av.codec.hwaccel.hwdevices_available()
    print(f"torch {torch.__version__}, PyAV {av.__version__}, its devices {devices}")
    with TemporaryDirectory() as name:
        folder, clips = Path(name), Path(name) / "clips"
        clips.mkdir()
        video = asked.video if asked.video.exists() else made(folder / "made.mp4")
        clip = repeat(encode(video, folder / "once.mp4"), folder / "clip.mp4", SECONDS * RATE)
        for number in range(asked.clips):
            shutil.copy(clip, clips / f"{number:03}.mp4")
        paths = sorted(map(str, clips.iterdir()))
        few, frames = paths[: asked.few], SECONDS * RATE
        detect = ["detect", "--model", asked.model, "--out"]
        two = [sys.executable, "-c", TWO_CORES, *detect, str(folder / "two"), *few]
        on_gpu = [sys.executable, "-m", "ongebd", *detect, str(folder / "gpu"), "--device", asked.device]
        decoders = [[sys.executable, "-c", DECODE, asked.model, *paths[n::cores]] for n in range(cores)]
        timed("one process decodes by NVDEC", [[sys.executable, "-c", NVDEC, *few]], len(few) * frames)
        only = timed(f"{cores} processes only decode {len(paths)} clips", decoders, len(paths) * frames)
        timed("one clip on the GPU, start-up included", [[*on_gpu, paths[0]]], frames)
        slow = timed(f"two cores, {len(few)} clips", [two], len(few) * frames)
        fast = timed(f"GPU, {len(paths)} clips", [[*on_gpu, *paths]], len(paths) * frames)
        print(f"GPU over two cores: {fast / slow:.2f}; over decoding alone: {fast / only:.2f}")
        onsets = [
            [boundary.onset for boundary in read_jsonl(folder / where / "000.jsonl").boundaries]
            for where in ("two", "gpu")
        ]
        print(f"boundaries of one clip on the CPU and the GPU: {onsets[0]} {onsets[1]}")


def timed(what: str, commands: list[list[str]], frames: int) -> float:
    """Source frames a second of processes that run together."""
    before, started = os.times(), time.perf_counter()
    running = [
        subprocess.Popen(one, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for one in commands
    ]
    came, said = [], []
    for process in running:
        for line in process.stderr or ():
            came.append(round(time.perf_counter() - started, 1))
            said.append(line)
        process.wait()
    seconds = time.perf_counter() - started
    used = os.times().children_user + os.times().children_system
    used -= before.children_user + before.children_system
    print(f"{what}: {frames / seconds:.1f} frames/s, {seconds:.1f} s, {used:.1f} s of processor", flush=True)
    if came:
        print(f"  lines: {len(came)}, at {[came[len(came) * n // 8] for n in range(8)]} s", flush=True)
    if any(process.returncode for process in running):
        print("  FAILED", [process.returncode for process in running], *said[-20:], flush=True)
    return frames / seconds


def made(path: Path) -> Path:
    """Ten seconds of noise that moves, another one every two seconds."""
    with av.open(str(path), "w") as sink:
        stream = sink.add_stream("libx264", rate=RATE, options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 640, 360, "yuv420p"
        for n in range(SECONDS * RATE):
            random = np.random.default_rng(n // (2 * RATE))
            coarse = random.integers(0, 256, (25, 45, 3), np.uint8).repeat(16, axis=0).repeat(16, axis=1)
            at = n % (2 * RATE) // 2
            sink.mux(stream.encode(av.VideoFrame.from_ndarray(coarse[at : at + 360, at : at + 640].copy())))
        sink.mux(stream.encode(None))
    return path


if __name__ == "__main__":
    main()
