"""The part of `gpu_runtime.py` that runs many streams: in steps, through a pool, and paced. Needs torch."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

import numpy as np

from ongebd.benchmark.many import PRODUCERS, Flood, Steps, in_threads
from ongebd.streaming.gpu import GpuRuntime
from ongebd.streaming.pool import PoolResult, StreamPool

if TYPE_CHECKING:
    from gpu_runtime import Bench

SIZE = (256, 455)
"""Of a frame: what a reader makes of 16:9."""


def many(bench: Bench) -> None:
    """Many streams in steps, and through the pool as fast as it takes them."""
    model = bench.resnet50_cea()
    frames = bench.frames(SIZE, 300)
    runtime = GpuRuntime(model, device=bench.device, max_batch=4 if bench.quick else 256)
    bench.note("many", "start-up with all buckets, s", round(runtime.startup, 2))
    for streams in (1, 4) if bench.quick else (1, 4, 16, 64, 256):
        steps = Steps(runtime, model, streams, frames)
        seconds = 0.01 if bench.quick else 1.0
        turns = [round(steps(seconds).fps, 1) for _ in range(1 if bench.quick else 3)]
        steps.close()
        bench.note(
            "many", f"steps of {streams}, frames/s", {"median": statistics.median(turns), "turns": turns}
        )
    waits: list[float] = []

    def hear(result: PoolResult) -> None:
        if result.waited is not None:
            waits.append(result.waited)

    with StreamPool(model, runtime=runtime, max_delay=0.005, max_pending=8, on_result=hear) as pool:
        flood(bench, pool, frames)
        waits.clear()
        paced(bench, pool, frames, waits)


def flood(bench: Bench, pool: StreamPool, frames: list[np.ndarray]) -> None:
    """Streams that give frames as fast as the pool takes them."""
    streams, each = (3, 4) if bench.quick else (256, 300)
    fps = round(Flood(pool, streams, frames).give(each).fps, 1)
    bench.note("many", f"pool of {streams} streams, as fast as it takes them, frames/s", fps)


def paced(bench: Bench, pool: StreamPool, frames: list[np.ndarray], waits: list[float]) -> None:
    """Live streams: each gives 24 frames a second, at its own moment."""
    streams, seconds = (5, 2.0) if bench.quick else (bench.asked.streams, bench.asked.seconds)
    pooled = [pool.add(when_full="drop-newest") for _ in range(streams)]
    late: list[float] = []
    start = time.perf_counter() + 0.5

    def produce(number: int) -> None:
        """A quarter of the streams: their frames fall due evenly, and go out within the next 2 ms."""
        mine = range(number, streams, PRODUCERS)
        for n in range(int(seconds * 24)):
            for k in mine:
                due = start + (n + k / streams) / 24
                left = due - time.perf_counter()
                if left > 0:
                    time.sleep(left + 0.002)
                elif left < -0.005:
                    late.append(-left)
                pooled[k].submit(frames[(n + k) % len(frames)], n / 24, copy=False)

    in_threads(produce)
    pool.wait()
    took = time.perf_counter() - start
    counts = [stream.counts() for stream in pooled]
    waits.sort()
    at = [round(1e3 * waits[int(share * (len(waits) - 1))], 2) for share in (0.5, 0.95, 0.99, 1.0)]
    bench.note(
        "paced",
        f"{streams} streams at 24 frames/s for {seconds:g} s",
        {
            "submitted": sum(one.submitted for one in counts),
            "decided": sum(one.decided for one in counts),
            "dropped": sum(one.dropped for one in counts),
            "frames/s": round(sum(one.decided for one in counts) / took, 1),
            "latency ms p50 p95 p99 max": at,
            "frames that the producers gave over 5 ms late": len(late),
            "the latest of them, ms": round(1e3 * max(late, default=0.0), 1),
        },
    )
