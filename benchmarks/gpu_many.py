"""The part of `gpu_runtime.py` that runs many streams: in steps, through a pool, and paced. Needs torch."""

from __future__ import annotations

import gc
import multiprocessing
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ongebd.lab.benchmark.many import Flood, Steps
from ongebd.pool import PoolResult, StreamPool
from ongebd.pool.gpu import GpuRuntime
from ongebd.pool.shared_memory import Handle

if TYPE_CHECKING:
    from ctypes import Array, c_double
    from multiprocessing.sharedctypes import SynchronizedBase
    from multiprocessing.synchronize import Semaphore

    from gpu_runtime import Bench

PRODUCERS = 6
SLOTS = 6
SLOW = 0.1
SELDOM = (100_000, 50, 100)
"""The garbage collector's thresholds, as a service of so many streams should have them: the pool makes no
cycles, and looking for some stops all threads for tens of milliseconds."""

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
    slow: Counter[int] = Counter()  # frames that waited long, by second

    def hear(result: PoolResult) -> None:
        if result.waited is not None:
            waits.append(result.waited)
            if result.waited > SLOW:
                slow[int(time.monotonic() - slow.get(-1, 0))] += 1

    with StreamPool(model, runtime=runtime, max_delay=0.005, max_pending=8, on_result=hear) as pool:
        flood(bench, pool, frames)
        waits.clear()
        slow.clear()
        slow[-1] = int(time.monotonic())
        gc.collect()
        gc.freeze()  # what is there by now is not looked through again, and what comes more seldom
        gc.set_threshold(*SELDOM)
        paced(bench, pool, waits)
        del slow[-1]
        bench.note("paced", f"frames that waited over {SLOW:g} s, by second", dict(slow))


def flood(bench: Bench, pool: StreamPool, frames: list[np.ndarray]) -> None:
    """Streams that give frames as fast as the pool takes them."""
    streams, each = (3, 4) if bench.quick else (256, 300)
    fps = round(Flood(pool, streams, frames).give(each).fps, 1)
    bench.note("many", f"pool of {streams} streams, as fast as it takes them, frames/s", fps)


def paced(bench: Bench, pool: StreamPool, waits: list[float]) -> None:
    """Live streams: each gives 24 frames a second, at its own moment, from other processes."""
    streams, seconds = (5, 2.0) if bench.quick else (bench.asked.streams, bench.asked.seconds)
    pooled = [pool.add(max_pending=SLOTS) for _ in range(streams)]
    spawn = multiprocessing.get_context("spawn")
    with pool.shared_input(pooled, SIZE, slots=SLOTS, when_full="drop-newest") as shared:
        ready, begin = spawn.Semaphore(0), spawn.Value("d", 0.0)
        late = spawn.Array("d", 2 * PRODUCERS)
        children = [
            spawn.Process(
                target=produce,
                args=(shared.handles[number::PRODUCERS], number, streams, seconds, ready, begin, late),
            )
            for number in range(PRODUCERS)
        ]
        for child in children:
            child.start()
        for _ in children:
            ready.acquire()
        begin.value = start = time.monotonic() + 0.5
        for child in children:
            child.join()
        pool.wait()
        took = time.monotonic() - start
        no_slot = sum(shared.dropped)
        broken = [child.exitcode for child in children if child.exitcode]
    counts = [stream.counts() for stream in pooled]
    waits.sort()
    at = [round(1e3 * waits[int(share * (len(waits) - 1))], 2) for share in (0.5, 0.95, 0.99, 1.0)]
    bench.note(
        "paced",
        f"{streams} streams at 24 frames/s for {seconds:g} s, from {PRODUCERS} other processes",
        {
            "given": sum(one.submitted for one in counts) + no_slot,
            "decided": sum(one.decided for one in counts),
            "dropped": sum(one.dropped for one in counts) + no_slot,
            "processes that broke": broken,
            "frames/s": round(sum(one.decided for one in counts) / took, 1),
            "latency ms p50 p95 p99 max": at,
            "frames that the producers gave over 5 ms late": int(sum(late[:PRODUCERS])),
            "the latest of them, ms": round(1e3 * max(late[PRODUCERS:]), 1),
        },
    )


def produce(
    handles: Sequence[Handle],
    number: int,
    streams: int,
    seconds: float,
    ready: Semaphore,
    begin: SynchronizedBase[c_double],
    late: SynchronizedBase[Array[c_double]],
) -> None:
    """A process: its part of the streams, whose frames fall due evenly and go out within the next 2 ms."""
    producers = [handle.open() for handle in handles]
    processes = len(late) // 2  # type: ignore[arg-type]
    rng = np.random.default_rng(number)
    frames = [rng.integers(0, 256, (*SIZE, 3), dtype=np.uint8) for _ in range(16)]
    for producer in producers:
        producer.submit(frames[0], -1.0)  # its slots are touched before time counts
    ready.release()
    while not begin.value:  # type: ignore[attr-defined]
        time.sleep(0.01)
    start = float(begin.value)  # type: ignore[attr-defined]
    over, latest = 0, 0.0
    for n in range(int(seconds * 24)):
        for place, producer in enumerate(producers):
            due = start + (n + (number + place * processes) / streams) / 24
            left = due - time.monotonic()
            if left > 0:
                time.sleep(left + 0.002)
            elif left < -0.005:
                over, latest = over + 1, max(latest, -left)
            producer.submit(frames[(n + place) % len(frames)], n / 24)
    late[number], late[processes + number] = over, latest  # type: ignore[index]
