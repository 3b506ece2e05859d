"""How fast the anticipator trains: windows a second, an epoch of Kinetics-GEBD's size, memory, several GPUs.

    PYTHONPATH=src python benchmarks/training_speed.py
    PYTHONPATH=src torchrun --nproc-per-node 2 benchmarks/training_speed.py --parts shared,epoch

Needs numpy, torch, safetensors and huggingface_hub; no video library. Features are random, so nothing is
learned; their number, size and layout are those of the real set. Everything that is compared is measured in
one run on one card, and the card is printed. `--json FILE` writes the figures as well.

- `shared`: windows and targets a second over runs of frames, by batch size and way of compiling.
- `literal`: the same network and batch of 512 targets, each target with its own K + 1 windows.
- `host`: features stay in files and are brought over batch by batch.
- `epoch`: one whole epoch of 18,794 videos of 240 frames, 2048 numbers each, in float16.

A *window* is L features that one error is computed from. The literal way needs ten for a target, the shared
way little more than one, so compare the targets a second.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ongebd.data.labelled import LabelledVideo
from ongebd.data.windows import IntArray, WindowTape, build_tape
from ongebd.estimator.anticipator import ConsistentEventAnticipator, parameter_count
from ongebd.estimator.losses import balancing_weight, est_loss
from ongebd.estimator.torch_errors import prediction_errors
from ongebd.lab.training.batches import BatchLoader, HostFeatures, to_device
from ongebd.lab.training.config import TrainConfig
from ongebd.lab.training.loop import train_step
from ongebd.lab.training.processes import Processes, joined, precision, prepared
from ongebd.lab.training.task import Objective

VIDEOS, FRAMES, DIM = 18_794, 240, 2048  # of Kinetics-GEBD's training set, 10 s at 24 frames a second
POSITIVE = 0.145  # share of boundary frames at ±0.15 s


class RandomFeatures:
    """Random features in the device's memory: as many as the videos have frames, like `DeviceFeatures`."""

    def __init__(self, frames: int, dim: int, device: torch.device) -> None:
        self.device = device
        self.features = torch.empty((frames, dim), dtype=torch.float16, device=device)
        for part in self.features.split(100_000):
            part.copy_(torch.rand(part.shape, device=device))

    def stream(self, rows: Iterator[IntArray]) -> Generator[Tensor, None, None]:
        """The features of each array of rows."""
        for each in rows:
            yield self.features[to_device(each, self.device)]


class Literal(nn.Module):
    """The objective as it is printed: K + 1 windows for each target, and each window's features by itself."""

    def __init__(self, model: ConsistentEventAnticipator, config: TrainConfig) -> None:
        super().__init__()
        self.model, self.config = model, config

    def forward(self, windows: Tensor, actual: Tensor, targets: Tensor) -> Tensor:
        """Windows (B, K + 1, L, D), the features after them (B, K + 1, D), their labels (B, K + 1)."""
        batch, terms = targets.shape
        anticipated = self.model(windows.flatten(0, 1).float()).view(batch, terms, -1)
        errors = prediction_errors(actual, anticipated)
        weight = balancing_weight(targets[:, -1], torch.ones_like(targets[:, -1]))
        rest = est_loss(errors.mean(-1), targets[:, -1], weight)
        return (self.config.alpha * rest + est_loss(errors, targets, weight).sum(-1)).mean()


def make_videos(count: int, frames: int, dim: int, file: Path | None = None) -> list[LabelledVideo]:
    """Videos with random boundaries; their features random numbers in a file, or never looked at."""
    rng = np.random.default_rng(0)
    times, epochs = np.arange(frames) / 24, np.zeros(frames, np.int32)
    features: np.ndarray[Any, Any] = np.broadcast_to(np.zeros((), np.float16), (count, frames, dim))
    if file is not None:
        features = np.memmap(file, np.float16, "w+", shape=(count, frames, dim))
        some = (rng.random((64, frames, dim), np.float32) + 0.01).astype(np.float16)
        for first in range(0, count, 64):
            features[first : first + 64] = some[: count - first]
        features.flush()
        features = np.memmap(file, np.float16, "r", shape=(count, frames, dim))
    targets = rng.random((count, frames)) < POSITIVE
    return [LabelledVideo(str(i), features[i], times, epochs, targets[i]) for i in range(count)]


class Bench:
    """Everything that one process measures with."""

    def __init__(self, arguments: argparse.Namespace, processes: Processes) -> None:
        self.arguments, self.processes, self.device = arguments, processes, processes.device
        self.cuda = self.device.type == "cuda"
        self.rows: list[dict[str, Any]] = []

    def config(self, batch: int, compiled: str) -> TrainConfig:
        """The paper's recipe; the batch is over all processes."""
        a = self.arguments
        changes: dict[str, Any] = {"batch": batch, "run": a.run, "compile": compiled if self.cuda else "off"}
        if a.width:
            changes |= {"width": a.width, "ffn": a.width}
        return replace(TrainConfig(), **changes)

    def loader(self, tape: WindowTape, features: Any, config: TrainConfig) -> BatchLoader:
        """The loader of a real training."""
        runs = config.batch // config.run
        return BatchLoader(tape, features, self.processes, runs=runs, seed=0)

    def trainer(self, config: TrainConfig) -> tuple[Any, torch.optim.Optimizer, ConsistentEventAnticipator]:
        """A new network with its optimiser, prepared as a real training does it."""
        torch.manual_seed(0)
        model = ConsistentEventAnticipator(config.model(self.arguments.dim)).to(self.device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, fused=self.cuda)
        return prepared(Objective(model, config), config, self.processes), optimizer, model

    def synchronize(self) -> None:
        """Wait until the device has done what it was given."""
        if self.cuda:
            torch.cuda.synchronize()

    def time_steps(self, steps: Iterator[Callable[[], Any]], warm: int, seconds: float) -> tuple[float, int]:
        """Seconds for how many steps, after `warm` ones."""
        for _ in range(warm):
            next(steps)()
        self.synchronize()
        self.processes.wait()
        began, done = time.perf_counter(), 0
        for step in steps:
            step()
            done += 1
            # The same number on every process, or one would wait for the others for ever.
            if done >= self.arguments.steps or (
                self.processes.world == 1 and done % 10 == 0 and time.perf_counter() - began > seconds
            ):
                break
        self.synchronize()
        return time.perf_counter() - began, done

    def record(self, what: str, seconds: float, steps: int, windows: int, targets: int, **more: Any) -> None:
        """Print and keep one measurement; windows and targets are a step's, over all processes."""
        peak = torch.cuda.max_memory_allocated() / 2**30 if self.cuda else 0.0
        row = {
            "what": what,
            "windows_per_second": windows * steps / seconds,
            "targets_per_second": targets * steps / seconds,
            "ms_per_step": 1000 * seconds / steps,
            "steps": steps,
            "peak_gib": peak,
            **more,
        }
        self.rows.append(row)
        if self.processes.is_first:
            speeds = (
                f"{row['windows_per_second']:>10,.0f} windows/s {row['targets_per_second']:>10,.0f} targets/s"
            )
            print(f"{what:<46} {speeds} {row['ms_per_step']:>8.2f} ms/step  peak {peak:.1f} GiB", flush=True)

    def fresh(self) -> None:
        """Forget what was compiled and how much memory was used."""
        torch.compiler.reset()
        if self.cuda:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def shared(self, tape: WindowTape, features: Any, batch: int, compiled: str, what: str) -> None:
        """Train over runs of frames."""
        self.fresh()
        config = self.config(batch * self.processes.world, compiled)
        loader = self.loader(tape, features, config)
        objective, optimizer, _ = self.trainer(config)
        autocast = precision(config, self.device)

        def steps() -> Iterator[Callable[[], Any]]:
            epoch = 0
            while True:
                for each in loader.epoch(epoch):
                    yield lambda each=each: train_step(objective, optimizer, each, autocast)
                epoch += 1

        seconds, done = self.time_steps(steps(), self.arguments.warm, self.arguments.seconds)
        self.record(what, seconds, done, loader.windows_in_batch, config.batch)

    def literal(self, features: RandomFeatures, targets: int, compiled: str) -> None:
        """Train with K + 1 windows a target, at places drawn anew for each batch."""
        self.fresh()
        config = self.config(512, compiled)
        _, optimizer, model = self.trainer(config)
        objective: Any = Literal(model, config)
        if config.compile != "off":
            objective = torch.compile(objective, dynamic=False)
        autocast = precision(config, self.device)
        window, terms = config.window, config.region + 1
        back = torch.arange(window + terms - 1, -1, -1, device=self.device)

        def step() -> None:
            last = torch.randint(window + terms, len(features.features), (targets, 1), device=self.device)
            frames = features.features[last - back]  # (B, L + K + 1, D)
            windows = torch.stack([frames[:, i : i + window] for i in range(terms)], 1)
            labels = torch.rand((targets, terms), device=self.device) < POSITIVE
            with autocast():
                loss = objective(windows, frames[:, window:], labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        seconds, done = self.time_steps(iter(lambda: step, None), self.arguments.warm, self.arguments.seconds)
        self.record(f"literal, {targets} targets, {config.compile}", seconds, done, targets * terms, targets)

    def epoch(self, tape: WindowTape, features: Any, batch: int, compiled: str, **more: Any) -> None:
        """One whole epoch."""
        self.fresh()
        config = self.config(batch * self.processes.world, compiled)
        loader = self.loader(tape, features, config)
        objective, optimizer, model = self.trainer(config)
        autocast = precision(config, self.device)
        first = next(loader.epoch(99))
        for _ in range(self.arguments.warm):
            train_step(objective, optimizer, first, autocast)
        self.synchronize()
        self.processes.wait()
        began, done = time.perf_counter(), 0
        for each in loader.epoch(0):
            train_step(objective, optimizer, each, autocast)
            done += 1
        self.synchronize()
        seconds = time.perf_counter() - began
        what = f"epoch: {tape.target_count:,} targets, batch {config.batch}"
        real = tape.target_count / done  # of the last batch and between videos some places are no targets
        self.record(what, seconds, done, loader.windows_in_batch, int(real), epoch_seconds=seconds, **more)
        if self.processes.is_first:
            print(
                f"  one epoch: {seconds:.1f} s for {parameter_count(model) / 1e6:.1f} M parameters",
                flush=True,
            )


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default="shared,literal,host,epoch")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--videos", type=int, default=VIDEOS)
    parser.add_argument("--frames", type=int, default=FRAMES)
    parser.add_argument("--dim", type=int, default=DIM)
    parser.add_argument(
        "--width", type=int, help="of the network and its feed-forward; 1024 for 2048 numbers"
    )
    parser.add_argument("--run", type=int, default=64, help="targets in a run")
    parser.add_argument("--batches", default="512,5120,10240", help="targets in a batch, for each process")
    parser.add_argument("--host-videos", type=int, default=1500)
    parser.add_argument("--steps", type=int, default=200, help="at most, for each measurement")
    parser.add_argument("--seconds", type=float, default=8.0, help="at most, for each measurement")
    parser.add_argument("--warm", type=int, default=8, help="steps before the clock starts")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    parts, batches = arguments.parts.split(","), [int(size) for size in arguments.batches.split(",")]
    with joined(arguments.device) as processes:
        bench = Bench(arguments, processes)
        card = torch.cuda.get_device_name(processes.device) if bench.cuda else f"CPU ({platform.machine()})"
        if processes.is_first:
            print(
                f"{processes.world} × {card}, torch {torch.__version__}, Python {platform.python_version()}"
            )
        config = bench.config(arguments.run, "off")
        videos = make_videos(arguments.videos, arguments.frames, arguments.dim)
        tape = build_tape(videos, window=config.window, region=config.region, run=config.run)
        began = time.perf_counter()
        features = RandomFeatures(arguments.videos * arguments.frames, arguments.dim, processes.device)
        bench.synchronize()
        if processes.is_first:
            gib = features.features.nbytes / 2**30
            print(
                f"features: {len(features.features):,} × {arguments.dim} float16, {gib:.1f} GiB on the device"
            )
            print(f"  made in {time.perf_counter() - began:.1f} s; {tape.target_count:,} targets", flush=True)
        ways = ("default", "graphs") if bench.cuda and processes.world == 1 else ("default",)
        if "shared" in parts:
            for batch in batches:
                for way in ways if batch <= 1024 else ways[:1]:
                    bench.shared(tape, features, batch, way, f"shared, {batch} targets a process, {way}")
        if "literal" in parts and processes.world == 1:
            bench.literal(features, 512, "default")
        if "host" in parts and processes.world == 1:
            with tempfile.TemporaryDirectory() as folder:
                stored = make_videos(
                    arguments.host_videos, arguments.frames, arguments.dim, Path(folder) / "f"
                )
                few = build_tape(stored, window=config.window, region=config.region, run=config.run)
                files = HostFeatures(stored, processes.device)
                size = batches[min(1, len(batches) - 1)]
                bench.shared(few, files, size, "default", f"shared, {size} targets, features from files")
        if "epoch" in parts:
            for batch in batches[:2]:
                way = "graphs" if batch <= 1024 and "graphs" in ways else "default"
                bench.epoch(tape, features, batch, way)
        if processes.is_first and arguments.json:
            result = {"card": card, "gpus": processes.world, "torch": torch.__version__, "rows": bench.rows}
            arguments.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
