"""Every method: parameters, GFLOPs, state, declared latency and speed; the paper's printed figures beside.

    python benchmarks/methods_table.py [--seconds 2] [--threads 1] [--device cuda]

Ours are measured in this run, on features of 2048 numbers, one frame at a time, in float32. GFLOPs are two
for each multiplication with its addition, by torch's own counter, and hold the ResNet-50 of the features.
Speed is that of the model alone: what a stream does with a feature that is at hand. `ongebd bench` measures
whole streams.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from ongebd.baselines.methods import METHODS
from ongebd.common.processor import processor
from ongebd.detector import Model
from ongebd.detector.recipes import RECIPES
from ongebd.errors import MissingExtraError
from ongebd.lab.benchmark.cost import cost
from ongebd.lab.benchmark.eager import EagerStream
from ongebd.lab.benchmark.paper import PAPER
from ongebd.lab.benchmark.random_weights import random_model, resnet50_backbone
from ongebd.lab.benchmark.timing import OneByOne

DIM = 2048


def main() -> None:
    """Measure, and print the table."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement of speed")
    parser.add_argument("--threads", type=int, default=1, help="of torch on the CPU")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "", help="a GPU, if any")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    with TemporaryDirectory() as folder:
        rows = [row(name, random_model(name, folder=folder_of(folder, name)), asked) for name in PAPER]
    for name, recipe in RECIPES.items():
        if not recipe.takes_any_backbone and recipe.pictures is None:
            continue  # it looks at the features of one backbone, and no other
        try:
            made = recipe.method(recipe.defaults, None, None)
        except MissingExtraError as problem:
            print(f"{name} is left out: {problem}")
            continue
        backbone = recipe.pictures or resnet50_backbone()
        rows.append(
            row(name, Model(name, "", backbone, recipe.defaults, _method=lambda _, made=made: made), asked)
        )
    gpu = torch.cuda.get_device_name(asked.device) if asked.device else "none"
    print(f"CPU: {processor()}, {asked.threads} thread(s); GPU: {gpu}; torch {torch.__version__}\n")
    show(rows)
    print("\nWhy the paper's figures differ:\n")
    for name, printed in PAPER.items():
        print(f"- {name}: {printed.why}")
    print(
        "- frames a second: the paper's are of model and backbone together on an RTX A6000, where the"
        " backbone alone runs at 181; they are not 1 / (1/181 + 1/model). Ours are of the model alone."
    )


def folder_of(folder: str, name: str) -> Path:
    """A folder for one network's files."""
    own = Path(folder) / name
    own.mkdir()
    return own


def row(name: str, model: Model, asked: argparse.Namespace) -> list[str]:
    """The line of one method."""
    price, printed = cost(model), PAPER.get(name)
    flops = None if price.backbone_gflops is None else price.backbone_gflops + (price.method_gflops or 0)
    stream = EagerStream(model, "cpu") if printed else model.stream()
    speed = f"{frames_per_second(stream, model, asked.seconds):,.0f}"
    on_gpu = "–" if printed else ""
    if printed and asked.device:
        on_gpu = f"{frames_per_second(EagerStream(model, asked.device), model, asked.seconds):,.0f}"
    return [
        METHODS[name].title if name in METHODS else "ESTimator" if printed else name,
        f"{(price.method_parameters + price.backbone_parameters) / 1e6:.3f}",
        f"{printed.parameters:.2f}" if printed else "",
        "–" if flops is None else f"{flops:.2f}",
        "" if price.window_gflops is None else f"{price.window_gflops:.2f}",
        f"{printed.gflops:.1f}" if printed else "",
        f"{price.state_bytes:,}",
        f"{price.latency} frames",
        speed,
        on_gpu,
        f"{printed.fps:.1f}" if printed else "",
    ]


def frames_per_second(stream: object, model: Model, seconds: float) -> float:
    """Frames a second that a stream takes, features being at hand."""
    random = np.random.default_rng(0)
    if model.backbone.name == "pictures":
        given = random.integers(0, 256, (8, model.backbone.dim)).astype(np.float32) + 1
    else:
        given = np.abs(random.standard_normal((64, DIM))).astype(np.float32)
    update = stream.update_feature  # type: ignore[attr-defined]
    return OneByOne(lambda n: update(given[n % len(given)], n / 24))(seconds).fps


def show(rows: list[list[str]]) -> None:
    """The table, as Markdown."""
    header = ["method", "M parameters", "paper's", "GFLOPs", "window anew", "paper's", "state bytes"]
    header += ["latency", "FPS, CPU", "FPS, GPU", "paper's FPS (A6000, with backbone)"]
    widths = [max(len(line[place]) for line in [header, *rows]) for place in range(len(header))]
    for line in (header, ["-" * width for width in widths], *rows):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |")


if __name__ == "__main__":
    main()
