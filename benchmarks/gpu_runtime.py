"""Speed of the GPU runtime and the pool: one stream, many, paced live streams, and start-up. Needs a GPU.

    python benchmarks/gpu_runtime.py [--model estimator|immediate|…] [--parts one,many,paced]
    TORCHINDUCTOR_CACHE_DIR=FOLDER python benchmarks/gpu_runtime.py --parts start   # twice: cold, then cached

`estimator` is ResNet-50 with the paper's anticipator of 23.1 M parameters. Its weights are random: speed does
not depend on them. Frames are noise. `--device cpu --quick` tries the script without a GPU.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

import ongebd
from ongebd.detector import Model
from ongebd.estimator.anticipator import ConsistentEventAnticipator
from ongebd.estimator.torch_anticipator import TorchAnticipator
from ongebd.lab.benchmark.eager import EagerStream
from ongebd.lab.benchmark.random_weights import resnet50_backbone
from ongebd.lab.benchmark.timing import Steps, percentiles
from ongebd.pool import StreamPool
from ongebd.pool.gpu import DeviceStream, GpuRuntime
from ongebd.pool.shared_memory import Handle
from ongebd.types import ImageU8

SIZES = [(256, 455), (720, 1280)]
BEGAN = time.perf_counter()
PRODUCERS = SLOTS = 6
SELDOM = (100_000, 50, 100)  # the garbage collector's thresholds: it would stop all threads for nothing


def note(name: str, value: Any) -> None:
    """Print a figure."""
    print(f"[{time.perf_counter() - BEGAN:6.1f} s] {name}: {json.dumps(value)}", flush=True)


def load(name: str, device: str) -> Model:
    """A model by name, or the paper's with random weights."""
    if name != "estimator":
        return ongebd.load(name)
    torch.manual_seed(1)
    folder = Path(tempfile.mkdtemp())
    ConsistentEventAnticipator().save_pretrained(folder)
    anticipator = TorchAnticipator(folder, name, device)
    settings = ongebd.load("window-mean").defaults
    return Model(name, "", resnet50_backbone(), settings, lambda _window: anticipator)


def sizes(model: Model) -> list[tuple[int, int]]:
    """Heights and widths of pictures; the last ones are as a reader makes them for the model."""
    return [*SIZES, (model.backbone.input_size,) * 2]


def noise(size: tuple[int, int], count: int = 16, seed: int = 0) -> list[ImageU8]:
    """Pictures to give in turn."""
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, (*size, 3), dtype=np.uint8) for _ in range(count)]


def timed(update: Callable[[Any, float], Any], frames: list[ImageU8], count: int) -> dict[str, float]:
    """Frames a second and latencies in milliseconds of one stream, from the host to the decision there."""
    taken = []
    for n in range(-min(count, 60), count):
        begun = time.perf_counter()
        update(frames[n % len(frames)], (n + 60) / 24)
        if n >= 0:
            taken.append(time.perf_counter() - begun)
    latencies = percentiles(sorted(taken))
    return {"fps": round(count / sum(taken), 1), **{at: round(1e3 * s, 3) for at, s in latencies.items()}}


def one(model: Model, options: argparse.Namespace) -> None:
    """One stream: torch's plain float32, then ours in each precision, and on the CPU."""
    count = 5 if options.quick else options.frames
    plain = EagerStream(model, options.device) if options.model == "estimator" else model.stream()
    note("one: eager or CPU, float32", timed(plain.update, noise(SIZES[0]), max(5, count // 10)))
    for precision, compiles in (("float16", True), ("float16", False), ("bfloat16", True), ("float32", True)):
        how = {"compiles": compiles}
        begun = time.perf_counter()
        stream = DeviceStream(model, device=options.device, precision=precision, compiles=compiles)
        note(f"one: {precision}, {how}: start-up, s", round(time.perf_counter() - begun, 2))
        for size in sizes(model) if precision == "float16" else SIZES[:1]:
            note(f"one: {precision}, {how}, {size}", timed(stream.update, noise(size), count))
        stream.close()


def many(model: Model, options: argparse.Namespace) -> None:
    """Many streams: in whole steps, and through a pool as fast as it takes them."""
    begun = time.perf_counter()
    runtime = GpuRuntime(model, device=options.device, max_batch=4 if options.quick else 256)
    note("many: start-up with all buckets, s", round(time.perf_counter() - begun, 2))
    for size in sizes(model)[::-2]:
        for streams in (1, 4) if options.quick else (1, 16, 64, 256):
            steps = Steps(runtime, model, streams, noise(size, 64))
            turns = sorted(round(steps(0.01 if options.quick else 1.0).fps, 1) for _ in range(3))
            steps.close()
            note(f"many: steps of {streams}, {size}, frames/s", {"median": turns[1], "turns": turns})
    with StreamPool(model, runtime=runtime, max_delay=0.005, on_result=lambda _: None) as pool:
        streams, each = (3, 4) if options.quick else (256, 200)
        note(f"many: pool of {streams}, frames/s", round(flood(pool, streams, each), 1))


def flood(pool: StreamPool, streams: int, each: int) -> float:
    """Frames per second of a pool that four threads feed as fast as it takes frames."""
    pooled, frames = [pool.add() for _ in range(streams)], noise(SIZES[0], 64)

    def submit(thread: int) -> None:
        for n in range(each):
            for k in range(thread, streams, 4):
                pooled[k].submit(frames[(n + k) % len(frames)], n / 24, copy=False)

    begun = time.perf_counter()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(submit, range(4)))
    pool.wait()
    return streams * each / (time.perf_counter() - begun)


def paced(model: Model, options: argparse.Namespace) -> None:
    """Live streams: each gives 24 frames a second, at its own moment, from other processes."""
    streams, seconds, waits = options.streams, options.seconds, list[float]()
    runtime = GpuRuntime(model, device=options.device)
    spawn = multiprocessing.get_context("spawn")
    with StreamPool(
        model, runtime=runtime, max_delay=0.005, on_result=lambda result: waits.append(result.waited or 0.0)
    ) as pool:
        pooled = [pool.add() for _ in range(streams)]
        with pool.shared_input(pooled, SIZES[0], slots=SLOTS) as shared:
            gc.collect()
            gc.freeze()
            gc.set_threshold(*SELDOM)
            ready, begin = spawn.Semaphore(0), spawn.Value("d", 0.0)
            late, lost = spawn.Array("i", PRODUCERS), spawn.Array("i", PRODUCERS)
            children = []
            for number in range(PRODUCERS):
                given = shared.handles[number::PRODUCERS], number, streams, seconds, ready, begin, late, lost
                children.append(spawn.Process(target=produce, args=given))
                children[-1].start()
            for _ in children:
                ready.acquire()
            begin.value = start = time.monotonic() + 0.5
            for child in children:
                child.join()
            pool.wait()
            took, no_slot = time.monotonic() - start, sum(lost[:])
        counts = pool.counts()
    note(
        f"paced: {streams} streams at 24 frames/s for {seconds:g} s, from {PRODUCERS} other processes",
        {
            "given": counts.submitted + no_slot,
            "decided": counts.decided,
            "dropped": counts.dropped + no_slot,
            "frames/s": round(counts.decided / took, 1),
            "latency, s": percentiles(sorted(filter(None, waits))),
            "given over 5 ms late": sum(late[:]),
        },
    )


def produce(
    handles: Sequence[Handle],
    number: int,
    streams: int,
    seconds: float,
    ready: Any,
    begin: Any,
    late: Any,
    lost: Any,
) -> None:
    """A process: its part of the streams, whose frames fall due evenly and go out within the next 2 ms."""
    producers = [handle.open() for handle in handles]
    frames = noise(SIZES[0], seed=number)
    for producer in producers:
        producer.submit(frames[0], -1.0)  # touches the memory before time counts
    ready.release()
    while not (started := begin.value):
        time.sleep(0.01)
    over = 0
    for n in range(int(seconds * 24)):
        for place, producer in enumerate(producers):
            due = started + (n + (number + place * PRODUCERS) / streams) / 24
            left = due - time.monotonic()
            if left > 0:
                time.sleep(left + 0.002)
            over += left < -0.005
            taken = producer.submit(frames[(n + place) % len(frames)], n / 24, timeout=0)
            lost[number] += not taken
    late[number] = over


def start(model: Model, options: argparse.Namespace) -> None:
    """One stream, to its first decision."""
    begun = time.perf_counter()
    stream = DeviceStream(model, device=options.device)
    stream.update(noise(SIZES[0], 1)[0], 0.0)
    note("start: seconds to the first decision", round(time.perf_counter() - begun, 2))


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default="one,many,paced", help="or start")
    parser.add_argument("--model", default="estimator")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--frames", type=int, default=2500, help="of one stream")
    parser.add_argument("--streams", type=int, default=900, help="that are paced")
    parser.add_argument("--seconds", type=float, default=60, help="how long they last")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    model = load(options.model, options.device)
    for part in options.parts.split(","):
        {"one": one, "many": many, "paced": paced, "start": start}[part](model, options)


if __name__ == "__main__":
    main()
