"""How much of the arithmetic that the anticipator's training reaches each offline system's training reaches.

    PYTHONPATH=src python benchmarks/offline_training.py [--methods pc …] [--device cuda] [--batch 3200]

Each is the published network on random features of 2048 numbers, in batches of the same number of frames, by
the real training step. Arithmetic is what torch counts in one step, two operations for each multiplication
with its addition; what is parsed on the CPU is in the time and not in the count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from training_speed import DIM, FRAMES, POSITIVE, RandomFeatures

from ongebd.data.labelled import LabelledVideo
from ongebd.data.windows import build_clips, build_tape
from ongebd.lab.benchmark.cost import gflops
from ongebd.lab.training.batches import Batch, BatchLoader
from ongebd.lab.training.config import ESTIMATOR, TrainConfig
from ongebd.lab.training.loop import train_step
from ongebd.lab.training.processes import Processes, joined, precision, prepared
from ongebd.lab.training.task import optimizer_of, task_of
from ongebd.offline.systems import TRAINED, network_kind


def main() -> None:
    """Measure every network on the device of this run."""
    asker = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asker.add_argument("--device", default="auto")
    asker.add_argument("--methods", nargs="*", default=TRAINED)
    asker.add_argument("--videos", type=int, default=400)
    asker.add_argument("--batch", type=int, default=3200, help="frames")
    asker.add_argument("--steps", type=int, default=20)
    asker.add_argument("--compile", default="auto")
    asked = asker.parse_args()
    rng = np.random.default_rng(0)
    times, epochs = np.arange(FRAMES) / 24, np.zeros(FRAMES, np.int32)
    unused = np.broadcast_to(np.zeros((), np.float16), (FRAMES, DIM))
    videos = [
        LabelledVideo(str(n), unused, times, epochs, rng.random(FRAMES) < POSITIVE)
        for n in range(asked.videos)
    ]
    with joined(asked.device) as on:
        torch.set_float32_matmul_precision("high" if on.device.type == "cuda" else "highest")
        features, best = RandomFeatures(len(videos) * FRAMES, on.device), None
        print(f"{'network':<20}{'ms a step':>12}{'GFLOP a step':>14}{'TFLOP/s':>10}{'of the CEA':>12}")
        for method in (ESTIMATOR, *asked.methods):
            config = TrainConfig().changed({"method": method, "compile": asked.compile})
            run = 64 if method == ESTIMATOR else 1
            config = replace(config, batch=max(1, asked.batch // run) * run, run=run)
            try:
                count, seconds = measured(config, videos, features, on, asked.steps)
            except RuntimeError as problem:  # the others are measured all the same
                print(f"{method:<20}failed: {str(problem).strip().partition(chr(10))[0]}", flush=True)
                continue
            rate = count / seconds / 1000
            best = best or rate
            shown = f"{1000 * seconds:>12.1f}{count:>14.1f}{rate:>10.2f}{rate / best:>12.2f}"
            print(f"{method:<20}{shown}", flush=True)


def measured(
    config: TrainConfig, videos: list[LabelledVideo], features: RandomFeatures, on: Processes, steps: int
) -> tuple[float, float]:
    """GFLOPs and seconds of a step."""
    if config.method == ESTIMATOR:
        tape = build_tape(videos, window=config.window, region=config.region, run=config.run)
    else:
        tape = build_clips(videos, length=network_kind(config.method).Shape().length, stride=3)
    batches = endless(BatchLoader(tape, features, on, runs=max(1, config.batch // tape.run), seed=0))
    task = task_of(config)
    torch.manual_seed(0)
    network = task.network(DIM).to(on.device)
    optimizer, autocast = optimizer_of(config, network, on.device), precision(config, on.device)
    plain = task.objective(network)
    count = gflops(lambda: train_step(plain, optimizer, next(batches), autocast))
    torch.compiler.reset()
    objective = prepared(task.objective(network), config, on)
    for _ in range(4):
        train_step(objective, optimizer, next(batches), autocast)
    began = ready(on.device)
    for _ in range(steps):
        train_step(objective, optimizer, next(batches), autocast)
    return count, (ready(on.device) - began) / steps


def endless(loader: BatchLoader) -> Iterator[Batch]:
    """The batches of epoch after epoch."""
    epoch = 0
    while True:
        yield from loader.epoch(epoch)
        epoch += 1


def ready(device: torch.device) -> float:
    """The time when the device has nothing left to do."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


if __name__ == "__main__":
    main()
