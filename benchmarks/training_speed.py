"""How fast the anticipator trains: targets a second, and an epoch of Kinetics-GEBD's size.

    PYTHONPATH=src python benchmarks/training_speed.py
    PYTHONPATH=src torchrun --nproc-per-node 2 benchmarks/training_speed.py

Features are random, in the number, size and layout of the real set, in the device's memory. A *window* is L
features that one error is computed from. The *literal* way computes ten windows for each target,
the *shared* way little more than one, so compare the targets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ongebd.data.labelled import LabelledVideo
from ongebd.data.windows import IntArray, WindowTape, build_tape
from ongebd.estimator.anticipator import ConsistentEventAnticipator
from ongebd.estimator.losses import balancing_weight, est_loss, prediction_errors
from ongebd.lab.training.batches import BatchLoader, to_device
from ongebd.lab.training.config import TrainConfig
from ongebd.lab.training.loop import train_step
from ongebd.lab.training.processes import Processes, joined, precision, prepared
from ongebd.lab.training.task import Objective

FRAMES, DIM = 240, 2048  # of a video of Kinetics-GEBD: 10 s at 24 frames a second, ResNet-50
POSITIVE = 0.145  # share of boundary frames at ±0.15 s


class RandomFeatures:
    """Random features in the device's memory, as many as the videos have frames."""

    def __init__(self, frames: int, device: torch.device) -> None:
        self.device = device
        self.features = torch.empty((frames, DIM), dtype=torch.float16, device=device)
        for part in self.features.split(100_000):
            part.copy_(torch.rand(part.shape, device=device))

    def stream(self, rows: Iterator[IntArray]) -> Generator[Tensor, None, None]:
        """The features of each array of rows."""
        for each in rows:
            yield self.features[to_device(each, self.device)]


class Literal(nn.Module):
    """The objective as printed: K + 1 windows (B, K + 1, L, D) for each target."""

    def __init__(self, model: ConsistentEventAnticipator, alpha: float) -> None:
        super().__init__()
        self.model, self.alpha = model, alpha

    def forward(self, windows: Tensor, actual: Tensor, targets: Tensor) -> Tensor:
        """The mean loss of the batch."""
        anticipated = self.model(windows.flatten(0, 1).float()).view(*targets.shape, -1)
        errors = prediction_errors(actual, anticipated)
        weight = balancing_weight(targets[:, -1], torch.ones_like(targets[:, -1]))
        rest = est_loss(errors.mean(-1), targets[:, -1], weight)
        return (self.alpha * rest + est_loss(errors, targets, weight).sum(-1)).mean()


def trainer(config: TrainConfig, on: Processes) -> tuple[ConsistentEventAnticipator, torch.optim.Optimizer]:
    """A new network and its optimiser."""
    torch.compiler.reset()
    torch.manual_seed(0)
    model = ConsistentEventAnticipator(config.model(DIM)).to(on.device)
    return model, torch.optim.AdamW(model.parameters(), lr=config.lr, fused=on.device.type == "cuda")


def shared_steps(
    config: TrainConfig, tape: WindowTape, features: Any, on: Processes, epochs: Iterator[int]
) -> Iterator[Callable[[], Any]]:
    """Steps of a real training."""
    loader = BatchLoader(tape, features, on, runs=config.batch // config.run, seed=0)
    model, optimizer = trainer(config, on)
    objective, autocast = prepared(Objective(model, config), config, on), precision(config, on.device)
    for epoch in epochs:
        for batch in loader.epoch(epoch):
            yield lambda batch=batch: train_step(objective, optimizer, batch, autocast)


def literal_steps(
    config: TrainConfig, features: RandomFeatures, on: Processes
) -> Iterator[Callable[[], Any]]:
    """Steps at random targets, each with its own K + 1 windows."""
    model, optimizer = trainer(config, on)
    objective: Any = Literal(model, config.alpha)
    if config.compile != "off":
        objective = torch.compile(objective, dynamic=False)
    autocast, terms = precision(config, on.device), config.region + 1
    back = torch.arange(config.window + config.region, -1, -1, device=on.device)

    def step() -> None:
        last = torch.randint(len(back), len(features.features), (config.batch, 1), device=on.device)
        frames = features.features[last - back]  # (B, L + K + 1, D)
        windows = torch.stack([frames[:, i : i + config.window] for i in range(terms)], 1)
        labels = torch.rand((config.batch, terms), device=on.device) < POSITIVE
        with autocast():
            loss = objective(windows, frames[:, config.window :], labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return iter(lambda: step, None)


def measure(what: str, steps: Iterator[Callable[[], Any]], batch: int, most: int, on: Processes) -> None:
    """Time up to `most` steps after eight, and print targets a second."""

    def ready() -> float:
        if on.device.type == "cuda":
            torch.cuda.synchronize()
        on.wait()
        return time.perf_counter()

    for _ in range(8):
        next(steps)()
    began, done = ready(), 0
    for step in steps:
        step()
        done += 1
        if done == most:
            break
    seconds = ready() - began
    if on.is_first:
        print(
            f"{what:<40} {batch * done / seconds:>10,.0f} targets/s {1000 * seconds / done:>8.2f} ms/step"
            f" {seconds:>6.1f} s",
            flush=True,
        )


def main() -> None:
    """Measure everything on the devices of this run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--videos", type=int, default=18_794, help="of the epoch; Kinetics-GEBD's by default")
    parser.add_argument("--steps", type=int, default=200, help="of each other measurement")
    asked = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    with joined(asked.device) as on:
        cuda = on.device.type == "cuda"
        if on.is_first:
            card = torch.cuda.get_device_name(on.device) if cuda else "CPU"
            print(f"{on.world} × {card}, torch {torch.__version__}")
        times, epochs = np.arange(FRAMES) / 24, np.zeros(FRAMES, np.int32)
        unused = np.broadcast_to(np.zeros((), np.float16), (FRAMES, DIM))
        targets = np.random.default_rng(0).random((asked.videos, FRAMES)) < POSITIVE
        videos = [LabelledVideo(str(i), unused, times, epochs, each) for i, each in enumerate(targets)]

        def config(batch: int, way: str) -> TrainConfig:
            return replace(TrainConfig(), run=64, batch=batch * on.world, compile=way if cuda else "off")

        plain = config(512, "off")
        tape = build_tape(videos, window=plain.window, region=plain.region, run=plain.run)
        features = RandomFeatures(asked.videos * FRAMES, on.device)
        for batch, way in ((512, "graphs" if on.world == 1 else "default"), (5120, "default")):
            steps = shared_steps(config(batch, way), tape, features, on, count())
            measure(f"shared, {batch} targets, {way}", steps, batch * on.world, asked.steps, on)
        if on.world == 1:
            literal = literal_steps(config(512, "default"), features, on)
            measure("literal, 512 targets", literal, 512, asked.steps, on)
        whole = shared_steps(config(5120, "default"), tape, features, on, iter(range(1)))
        measure("an epoch but for eight steps, 5120 targets", whole, 5120 * on.world, 10**9, on)


if __name__ == "__main__":
    main()
