"""The GPU runtime and the pool: speed, latency, agreement with float32, start-up, and a profile. Needs a GPU.

    python benchmarks/gpu_runtime.py [--parts one,many,agreement,startup,million,profile] [--clips FOLDER]
                                     [--out FOLDER] [--seconds 60] [--streams 900]

ResNet-50 has random weights (speed does not depend on them). For agreement its CEA of 23.1 M parameters is
fitted for some seconds to features of the clips, so that its errors mean something. Ratios are of one run.
Writes `gpu_runtime.json`, part by part. `--device cpu --quick` tries the script without a GPU.

    python benchmarks/gpu_runtime.py --model immediate --clips FOLDER

measures a learned model alone, in about a minute; with `--compiled` what `torch.compile` would make of it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gpu_agreement import agreement
from gpu_learned import learned
from gpu_many import many

import ongebd
from ongebd.backbones.torch_backbone import TorchBackbone
from ongebd.detector import Model
from ongebd.estimator.anticipator import AnticipatorConfig, ConsistentEventAnticipator
from ongebd.estimator.torch_anticipator import TorchAnticipator
from ongebd.lab.benchmark.eager import EagerStream
from ongebd.lab.benchmark.random_weights import random_resnet50
from ongebd.lab.benchmark.timing import percentiles
from ongebd.pool.gpu import DeviceStream, GpuRuntime
from ongebd.pool.runtime import Work

SIZES = {"256x455": (256, 455), "224x224": (224, 224), "720x1280": (720, 1280)}
WAYS = {
    "float16": {"precision": "float16"},
    "float16 uncompiled": {"precision": "float16", "compiles": False},
    "bfloat16": {"precision": "bfloat16"},
    "float32": {"precision": "float32"},
}


class Bench:
    """What all parts share."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self.device = asked.device
        self.quick = asked.quick
        self.out = Path(asked.out)
        self.began = time.perf_counter()
        self.found: dict[str, Any] = {"versions": {"torch": torch.__version__, "ongebd": ongebd.__version__}}
        if self.device == "cuda":
            self.found["card"] = torch.cuda.get_device_name()
            self.found["versions"] |= {"cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
        self.folder = Path(tempfile.mkdtemp())
        torch.manual_seed(0)
        self.network = random_resnet50()
        self.config = ongebd.load("window-mean").defaults
        self.random = np.random.default_rng(0)

    def note(self, part: str, name: str, value: Any) -> None:
        """Keep a figure, and say it."""
        self.found.setdefault(part, {})[name] = value
        print(f"[{time.perf_counter() - self.began:6.1f} s] {part}: {name}: {value}", flush=True)
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / "gpu_runtime.json").write_text(json.dumps(self.found, indent=1) + "\n")

    def resnet50_cea(self, network: ConsistentEventAnticipator | None = None) -> Model:
        """ResNet-50 and the CEA, as a model; its eager form computes on the device in float32."""
        torch.manual_seed(1)
        network = network or ConsistentEventAnticipator(AnticipatorConfig())
        folder = self.folder / f"cea{id(network)}"
        network.save_pretrained(folder)
        backbone = TorchBackbone("resnet50", self.network, dim=2048, input_size=224, resize_size=256)
        anticipator = TorchAnticipator(folder, "cea", self.device)
        return Model("resnet50-cea", "", backbone, self.config, lambda _window: anticipator)

    def frames(self, size: tuple[int, int], count: int = 16) -> list[np.ndarray]:
        """Noise, uint8."""
        return [self.random.integers(0, 256, (*size, 3), dtype=np.uint8) for _ in range(count)]


def spread(seconds: list[float]) -> dict[str, float]:
    """Frames a second and latencies in milliseconds, of one stream."""
    at = {name: round(1e3 * value, 4) for name, value in percentiles(sorted(seconds)).items()}
    return {"fps": round(len(seconds) / sum(seconds), 1), **at}


def timed(
    update: Callable[[np.ndarray, float], Any], frames: list[np.ndarray], count: int
) -> dict[str, float]:
    """One frame after another, each from the host to its decision on the host."""
    for n in range(min(count, 60)):
        update(frames[n % len(frames)], n / 24)
    taken = []
    for n in range(count):
        begun = time.perf_counter()
        update(frames[n % len(frames)], (n + 100) / 24)
        taken.append(time.perf_counter() - begun)
    return spread(taken)


def one(bench: Bench) -> None:
    """One stream."""
    count = 5 if bench.quick else 2500
    torch.manual_seed(1)
    network = ConsistentEventAnticipator(AnticipatorConfig())
    model = bench.resnet50_cea(network)
    small = bench.frames(SIZES["256x455"])
    for tuned in (False, True):
        torch.backends.cudnn.benchmark = tuned
        eager = EagerStream(bench.resnet50_cea(network), bench.device)
        how = "cuDNN tuned" if tuned else "torch's defaults"
        bench.note("one", f"eager float32, {how}, 256x455", timed(eager.update, small, max(5, count // 5)))
    torch.backends.cudnn.benchmark = False
    large = bench.frames(SIZES["720x1280"])
    bench.note(
        "one", "eager float32, torch's defaults, 720x1280", timed(eager.update, large, max(5, count // 10))
    )
    for name in bench.asked.ways.split(","):
        options: dict[str, Any] = dict(WAYS[name])
        precision = str(options.pop("precision"))
        stream = DeviceStream(model, device=bench.device, precision=precision, options=options)
        bench.note("one", f"{name}: start-up, s", round(stream.runtime.startup, 2))
        sizes = SIZES if name == "float16" else {"256x455": SIZES["256x455"]}
        for size, shape in sizes.items():
            frames = bench.frames(shape)
            for turn in range(2 if (name, size) == ("float16", "256x455") else 1):
                again = f", turn {turn + 1}" if turn else ""
                bench.note("one", f"{name}, {size}{again}", timed(stream.update, frames, count))
        bench.note("one", f"{name}: bytes a stream", stream.state_bytes)
        stream.close()
    lite = ongebd.load("window-mean")
    stream = DeviceStream(lite, device=bench.device, precision="float16")
    bench.note(
        "one", "window-mean on EfficientNet-Lite0, float16, 256x455", timed(stream.update, small, count)
    )
    stream.close()
    cpu = lite.stream()
    bench.note(
        "one", "window-mean on the CPU, one thread, 256x455", timed(cpu.update, small, max(5, count // 20))
    )


def million(bench: Bench) -> None:
    """A million frames of some streams, given as features: does a frame cost more as a stream gets old?"""
    model = ongebd.load("window-mean")
    streams = 2 if bench.quick else bench.asked.aged
    steps, parts = (1000, 4) if bench.quick else (bench.asked.frames // streams, 10)
    runtime = GpuRuntime(model, device=bench.device, max_streams=streams, max_batch=streams)
    lanes = [runtime.open(model.configured()) for _ in range(streams)]
    random = np.random.default_rng(0)
    centres = random.uniform(0.1, 1, (64, 1280))
    given = [
        runtime.accept_feature((centres[n // 32] + random.normal(0, 0.05, 1280)).astype(np.float32))
        for n in range(2048)
    ]

    def step(n: int) -> Any:
        return runtime.begin([Work(lane, given[n % len(given)], n / 24) for lane in lanes])

    under_way = step(0)
    micros = []
    for part in range(parts):
        begun = time.perf_counter()
        for n in range(part * steps // parts, (part + 1) * steps // parts):
            following = step(n + 1)
            under_way.finish()
            under_way = following
        micros.append(round(1e6 * (time.perf_counter() - begun) / (streams * (steps // parts)), 2))
    last = under_way.finish()
    fresh = model.stream()
    for n in range(steps - 60, steps):
        wanted = fresh.update_feature(given[(n + 1) % len(given)].feature, (n + 1) / 24)
    bench.note(
        "million",
        f"{steps * streams} frames of {streams} streams, microseconds a frame in each of {parts} parts",
        {
            "parts": micros,
            "last decisions against a new CPU stream of the last 60, largest": {
                "error apart": max(abs(one.error - wanted.error) for one in last),
                "mean apart": max(abs(one.mean - wanted.mean) for one in last),
                "std apart": max(abs(one.std - wanted.std) for one in last),
            },
        },
    )
    runtime.close()


def startup(bench: Bench) -> None:
    """In a new process each: nothing compiled before, then from the cache of the first."""
    cache = bench.folder / "kernels"
    for what in ("cold", "from the cache"):
        command = [
            sys.executable,
            __file__,
            "--device",
            bench.device,
            "--parts",
            "start",
            "--cache",
            str(cache),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        bench.note("startup", what, json.loads(done.stdout.splitlines()[-1]))


def start(bench: Bench) -> None:
    """What `startup` runs."""
    model = bench.resnet50_cea()
    begun = time.perf_counter()
    stream = DeviceStream(model, device=bench.device, options={"cache_dir": bench.asked.cache})
    stream.update(bench.frames((256, 455), 1)[0], 0.0)
    first = time.perf_counter() - begun
    plain = DeviceStream(model, device=bench.device, options={"compiles": False})
    figures = {
        "one stream, s": round(stream.runtime.startup, 2),
        "to its first decision, s": round(first, 2),
        "one stream, nothing compiled, s": round(plain.runtime.startup, 2),
    }
    if bench.device == "cuda":
        every = GpuRuntime(model, device=bench.device)
        figures["buckets up to 256 after that, s"] = round(every.startup, 2)
    print(json.dumps(figures))


def profile(bench: Bench) -> None:
    """Where the time of one stream goes."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    model = bench.resnet50_cea()
    stream = DeviceStream(model, device=bench.device)
    frames = bench.frames(SIZES["256x455"])
    timed(stream.update, frames, 200)
    count = 20
    with profiler(
        activities=[ProfilerActivity.CUDA if bench.device == "cuda" else ProfilerActivity.CPU]
    ) as seen:
        for n in range(count):
            stream.update(frames[n % 16], 500 + n / 24)
    trace = bench.folder / "trace.json"
    seen.export_chrome_trace(str(trace))
    events = [e for e in json.loads(trace.read_text())["traceEvents"] if e.get("ph") == "X"]
    on_device = sorted(
        (e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")), key=lambda e: e["ts"]
    )
    by_name: dict[str, list[float]] = {}
    for event in on_device:
        by_name.setdefault(event["name"][:90], []).append(event["dur"])
    largest = sorted(by_name.items(), key=lambda item: -sum(item[1]))[:25]
    bench.note("profile", "kernels a frame", round(len(on_device) / count, 1))
    bench.note("profile", "kernel microseconds a frame", round(sum(e["dur"] for e in on_device) / count, 1))
    streams: dict[Any, list[Any]] = {}
    for event in on_device:
        streams.setdefault(event["args"].get("stream"), []).append(event)
    for number, some in streams.items():
        gaps = [b["ts"] - a["ts"] - a["dur"] for a, b in pairwise(some)]
        short = [gap for gap in gaps if 0 <= gap < 30]
        bench.note(
            "profile",
            f"stream {number}",
            {
                "kernels a frame": round(len(some) / count, 1),
                "busy microseconds a frame": round(sum(e["dur"] for e in some) / count, 1),
                "gaps under 30 microseconds, sum a frame": round(sum(short) / count, 1),
                "median gap": round(statistics.median(short), 2) if short else None,
                "longer gaps, sum a frame": round(sum(gap for gap in gaps if gap >= 30) / count, 1),
            },
        )
    table = {name: [round(len(d) / count, 2), round(sum(d) / count, 1)] for name, d in largest}
    bench.note("profile", "largest: kernels, microseconds a frame", table)
    stream.close()


PARTS = {part.__name__: part for part in (one, many, agreement, startup, start, million, profile, learned)}


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", help="all but learned; with a model, that one alone")
    parser.add_argument("--model", help="one of our learned models, for the part learned")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--clips", default="../shared/clips/open")
    parser.add_argument("--out", default=".")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--streams", type=int, default=900)
    parser.add_argument("--frames", type=int, default=1_000_000, help="of the streams that get old")
    parser.add_argument("--aged", type=int, default=16, help="how many those are")
    parser.add_argument("--ways", default=",".join(WAYS), help="of one stream")
    parser.add_argument("--cache", default=None)
    parser.add_argument("--compiled", action="store_true", help="compile a learned model's small kernels")
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    bench = Bench(asked)
    usual = "learned" if asked.model else "one,many,agreement,startup,million,profile"
    asked.model = asked.model or "immediate"
    for part in (asked.parts or usual).split(","):
        begun = time.perf_counter()
        PARTS[part](bench)
        if part != "start":
            bench.note("took", part, round(time.perf_counter() - begun, 1))


if __name__ == "__main__":
    main()
