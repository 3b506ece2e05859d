"""Every method: parameters, GFLOPs, state, declared latency and speed; the paper's printed figures beside.

    python benchmarks/methods_table.py [--seconds 2] [--threads 1] [--device cuda]

Ours are measured in this run, on features of 2048 numbers, one frame at a time, in float32. GFLOPs are two
for each multiplication with its addition, by torch's own counter, and hold the ResNet-50 of the features.
Speed is that of the model alone: what a stream does with a feature that is at hand.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from ongebd.backbones.resnet50_network import ResNet50
from ongebd.baselines.methods import METHODS, make_network, network_shape
from ongebd.baselines.network import OnlineNetwork, parameter_count
from ongebd.baselines.network_scorer import NetworkScorer
from ongebd.errors import MissingExtraError
from ongebd.estimator import cosine_error
from ongebd.estimator.anticipator import ConsistentEventAnticipator
from ongebd.streaming.recipes import RECIPES
from ongebd.streaming.scorers import AnticipationScorer, Scorer
from ongebd.types import Feature

DIM = 2048


class Printed(NamedTuple):
    """What the paper prints: millions of parameters, GFLOPs, frames a second over all on an RTX A6000."""

    parameters: float
    gflops: float
    fps: float
    why: str


PAPER = {
    "testra": Printed(
        48.73,
        17.0,
        72.5,
        "The paper's count is that of thop, which does not see the packed projections of query, key and value"
        " (31.49 M) nor the learned queries (0.05 M). Its GFLOPs are nearer to those of a window of 512 + 32"
        " frames anew; in a stream the long memory is a running sum, and a frame is embedded once.",
    ),
    "simon": Printed(
        24.70,
        8.2,
        76.3,
        "thop again: it sees nothing of torch's own attention modules (2.11 M). The GFLOPs agree: all but the"
        " backbone's are 0.01.",
    ),
    "oadtr": Printed(
        97.10,
        13.0,
        48.9,
        "The counts agree, and so do the GFLOPs of a window anew (torch counts no normalisations). In a"
        " stream each frame is embedded once and not 64 times.",
    ),
    "miniroad": Printed(37.15, 8.2, 99.8, "Counts and GFLOPs agree."),
    "estimator": Printed(
        42.41,
        10.3,
        96.3,
        "The paper does not state width, heads and feed-forward size, and no shape that we could enumerate"
        " has all of its figures: ours is our own.",
    ),
}


class EstimatorScorer(AnticipationScorer):
    """The anticipator in torch, as on a GPU."""

    def __init__(self, model: ConsistentEventAnticipator, device: str) -> None:
        super().__init__(_Anticipating(model, device), cosine_error, DIM)


class _Anticipating:
    name = "estimator"

    def __init__(self, model: ConsistentEventAnticipator, device: str) -> None:
        self.model, self.device, self.window = model.to(device).eval(), device, model.config.window

    @torch.inference_mode()
    def anticipate(self, past: np.ndarray) -> Feature:
        whole = np.concatenate([np.repeat(past[:1], self.window - len(past), axis=0), past])
        out: Feature = self.model(torch.from_numpy(whole).to(self.device)[None])[0, -1].cpu().numpy()
        return out


def gflops(work: Callable[[], Any]) -> float:
    """GFLOPs of some work."""
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops() / 1e9


def frames_per_second(scorer: Scorer, features: np.ndarray, seconds: float) -> float:
    """Frames a second that a stream takes, features being at hand."""
    for step in range(12):
        scorer.update(features[step % len(features)], step / 24)
    step, began = 0, time.perf_counter()
    while (spent := time.perf_counter() - began) < seconds or step < 5:
        scorer.update(features[step % len(features)], step / 24)
        step += 1
    return step / spent


def window_gflops(network: OnlineNetwork[Any]) -> float:
    """GFLOPs of one frame's verdict where its whole window is computed anew, as in training."""
    layout = network.layout()
    frames = torch.zeros(1, sum(layout), DIM)
    places = layout.region + layout.run
    targets, lead = torch.zeros(1, places, dtype=torch.bool), torch.full((1, places), 10_000)
    return gflops(lambda: network.losses(frames, targets, lead + torch.arange(places)))


def main() -> None:
    """Measure, and print the table."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement of speed")
    parser.add_argument("--threads", type=int, default=1, help="of torch on the CPU")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "", help="a GPU, if any")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    torch.manual_seed(0)
    features = np.abs(np.random.default_rng(0).standard_normal((64, DIM))).astype(np.float32)
    backbone = ResNet50().eval().requires_grad_(False)
    picture = gflops(lambda: backbone(torch.zeros(1, 3, 224, 224)))
    millions = parameter_count(backbone)
    rows = [trained(name, features, picture, millions, asked) for name in PAPER]
    rows += [row for name in RECIPES if (row := untrained(name, features, picture, millions, asked))]
    gpu = torch.cuda.get_device_name(asked.device) if asked.device else "none"
    print(f"CPU: {platform.processor() or platform.machine()}, {asked.threads} thread(s); GPU: {gpu};")
    print(f"torch {torch.__version__}; ResNet-50: {millions / 1e6:.3f} M parameters, {picture:.3f} GFLOPs\n")
    show(rows)
    print("\nWhy the paper's figures differ:\n")
    for name, printed in PAPER.items():
        print(f"- {name}: {printed.why}")
    print(
        "- frames a second: the paper's are of model and backbone together on an RTX A6000, where the"
        " backbone alone runs at 181; they are not 1 / (1/181 + 1/model). Ours are of the model alone."
    )


def trained(
    name: str, features: np.ndarray, picture: float, millions: int, asked: argparse.Namespace
) -> list[str]:
    """The line of ESTimator or of a trained baseline."""

    def scorer(device: str) -> Scorer:
        if name == "estimator":
            return EstimatorScorer(ConsistentEventAnticipator(), device)
        return NetworkScorer(make_network(name).eval().to(device), name)

    window = picture
    if name == "estimator":
        model = ConsistentEventAnticipator().eval().requires_grad_(False)
        step = gflops(lambda: model(torch.zeros(1, model.config.window, DIM)))
        window += step
        count = parameter_count(model)
    else:
        one = {"run": 1} if "run" in vars(network_shape(name)) else {}
        network = make_network(name, network_shape(name, one)).eval().requires_grad_(False)
        state = network.start()
        step = gflops(lambda: network.step(torch.zeros(1, DIM), state))
        # A recurrent network has no window: it carries its state on, in the paper too.
        window += step if name in ("miniroad", "simon") else window_gflops(network)
        count = parameter_count(network)
    on_cpu = scorer("cpu")
    speed = frames_per_second(on_cpu, features, asked.seconds)
    fast = f"{frames_per_second(scorer(asked.device), features, asked.seconds):,.0f}" if asked.device else "–"
    printed = PAPER[name]
    return [
        METHODS[name].title if name in METHODS else "ESTimator",
        f"{(count + millions) / 1e6:.3f}",
        f"{printed.parameters:.2f}",
        f"{step + picture:.2f}",
        f"{window:.2f}",
        f"{printed.gflops:.1f}",
        f"{on_cpu.state_bytes:,}",
        f"{on_cpu.latency} frames",
        f"{speed:,.0f}",
        fast,
        f"{printed.fps:.1f}",
    ]


def untrained(
    name: str, features: np.ndarray, picture: float, millions: int, asked: argparse.Namespace
) -> list[str] | None:
    """The line of a method that needs no training; None where its extra is not installed."""
    recipe = RECIPES[name]
    try:
        made = recipe.method(recipe.defaults, None, None)
    except MissingExtraError as problem:
        print(f"{name} is left out: {problem}")
        return None
    scorer: Scorer = made if hasattr(made, "flush") else AnticipationScorer(made, cosine_error, DIM)
    seen = features
    if recipe.pictures is not None:
        noise = np.random.default_rng(0).integers(0, 256, (8, recipe.pictures.dim))
        seen = noise.astype(np.float32) + 1
    speed = frames_per_second(scorer, seen, asked.seconds)
    looks = recipe.pictures is None
    return [
        name,
        f"{((millions if looks else 0) + recipe.parameters) / 1e6:.3f}",
        "",
        f"{picture:.2f}" if looks else "–",
        "",
        "",
        f"{scorer.state_bytes:,}",
        f"{scorer.latency} frames",
        f"{speed:,.0f}",
        "",
        "",
    ]


def show(rows: list[list[str]]) -> None:
    """The table, as Markdown."""
    header = ["method", "M parameters", "paper's", "GFLOPs", "window anew", "paper's", "state bytes"]
    header += ["latency", "FPS, CPU", "FPS, GPU", "paper's FPS (A6000, with backbone)"]
    widths = [max(len(line[place]) for line in [header, *rows]) for place in range(len(header))]
    for line in (header, ["-" * width for width in widths], *rows):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |")


if __name__ == "__main__":
    main()
