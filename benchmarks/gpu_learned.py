"""The part of `gpu_runtime.py` that runs one of our learned models (`--model`): speed, agreement, state."""

from __future__ import annotations

import statistics
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from gpu_agreement import boundaries, clips, compare, through

import ongebd
from ongebd.lab.benchmark.many import Steps
from ongebd.pool import StreamPool
from ongebd.pool.gpu import DeviceStream, GpuRuntime
from ongebd.pool.gpu.learned import BatchedLearned
from ongebd.pool.runtime import Work

if TYPE_CHECKING:
    from gpu_runtime import Bench

SIZE = (224, 224)
"""Of a frame: what a reader makes of any picture for these models."""
NATIVE = (256, 455)
CLIPS, LONGEST = 16, 240
"""Clips of native size for the agreement, and frames of each, of any size."""


def learned(bench: Bench) -> None:
    """Frames a second of 1, 64 and 256 streams; then boundaries on real clips against the CPU's."""
    model = ongebd.load(bench.asked.model)
    note = bench.note
    BatchedLearned.compiles = bench.asked.compiled
    part = f"learned: {model.name}{', compiled' if bench.asked.compiled else ''}"
    most = 4 if bench.quick else 256
    runtime = GpuRuntime(model, device=bench.device, max_batch=most)
    note(part, "float16: start-up with all buckets, s", round(runtime.startup, 2))
    note(part, "bytes a stream", {"GPU runtime": runtime.state_bytes, "CPU": model.stream().state_bytes})
    frames = {size: bench.frames(size, 64) for size in (SIZE, NATIVE)}
    for streams in (1, 2) if bench.quick else (1, 64, 256):
        for size, pictures in frames.items():
            steps = Steps(runtime, model, streams, pictures)
            turns = [
                round(steps(0.01 if bench.quick else 0.6).fps, 1) for _ in range(1 if bench.quick else 3)
            ]
            steps.close()
            note(
                part,
                f"steps of {streams}, {size[0]}x{size[1]}, frames/s",
                {"median": statistics.median(turns), "turns": turns},
            )
    note(part, "features given, steps of 1, frames/s", given(runtime, model, 2 if bench.quick else 1000))

    exact = GpuRuntime(model, device=bench.device, precision="float32", max_batch=min(most, 16))
    agreement(bench, part, model, {"float16": runtime, "float32": exact})

    from gpu_runtime import timed

    stream = DeviceStream(model, device=bench.device)
    note(part, "one stream, float16, 224x224", timed(stream.update, frames[SIZE], 4 if bench.quick else 1000))
    stream.close()
    cpu = model.stream()
    note(part, "one stream on the CPU, 224x224", timed(cpu.update, frames[SIZE], 4 if bench.quick else 100))


def agreement(bench: Bench, part: str, model: ongebd.Model, runtimes: dict[str, GpuRuntime]) -> None:
    """Boundaries on real clips: pictures as a reader gives them, and of native size, resized on the GPU."""
    note = bench.note
    for how, view, most in (("as read", model.backbone.view, None), ("of native size", None, CLIPS)):
        films = [(name, frames[:LONGEST]) for name, frames in islice(clips(bench, view), most)]
        note(part, how, {"clips": len(films), "frames": sum(len(frames) for _, frames in films)})
        on_cpu = decided(StreamPool(model, workers=16, max_pending=64, max_batch=64), films)
        said = {}
        for precision, runtime in runtimes.items():
            pool = StreamPool(model, runtime=Shared(runtime))
            said[precision] = decided(pool, films)
            note(part, f"{how}, {precision} against the CPU", against(said[precision], on_cpu))
        note(part, f"{how}, float16 against float32", against(said["float16"], said["float32"]))


class Shared:
    """A runtime that outlives a pool: closing it does nothing."""

    def __init__(self, runtime: GpuRuntime) -> None:
        self._runtime = runtime

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    def close(self) -> None:
        """Leave it open."""


def given(runtime: GpuRuntime, model: ongebd.Model, count: int) -> float:
    """Frames a second of one stream whose features are given, two steps under way: the method alone."""
    lane = runtime.open(model.configured())
    random = np.random.default_rng(0)
    dim = model.backbone.dim
    features = [runtime.accept_feature(random.uniform(0, 2, dim).astype(np.float32)) for _ in range(16)]
    runtime.begin([Work(lane, features[0], 0.0)]).finish()
    begun = perf_counter()
    under_way = runtime.begin([Work(lane, features[1], 1 / 24)])
    for n in range(2, count + 1):
        following = runtime.begin([Work(lane, features[n % 16], n / 24)])
        under_way.finish()
        under_way = following
    under_way.finish()
    seconds = perf_counter() - begun
    runtime.release(lane)
    return round(count / seconds, 1)


def decided(pool: StreamPool, films: list[Any]) -> dict[str, Any]:
    """As `through`, without the decisions that are still pending."""
    said = through(pool, films)
    return {
        name: ([one for one in decisions if not one.pending], last)
        for name, (decisions, last) in said.items()
    }


def against(said: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Boundaries and scores of one way against another's."""
    apart = [
        abs(ours.error - theirs.error)
        for name, (decisions, _) in said.items()
        for ours, theirs in zip(decisions, wanted[name][0], strict=True)
    ]
    same = sum(
        [b.time for b in boundaries(*said[name])] == [b.time for b in boundaries(*wanted[name])]
        for name in said
    )
    middle, high = (float(f"{np.quantile(apart, q):.3g}") for q in (0.5, 0.99))
    more = {"scores apart, median and p99": [middle, high], "clips with the same boundaries": same}
    figures: dict[str, Any] = compare(said, wanted)
    figures["the other's"] = figures.pop("float32's")
    return {**figures, **more}
