"""How many boundaries of real clips stay where they are in another precision, on a GPU or with OpenVINO.

    python benchmarks/agreement.py --clips FOLDER --device cuda  # the GPU's precisions
    python benchmarks/agreement.py --clips FOLDER --device cpu   # OpenVINO's bfloat16

`estimator` is ResNet-50 of random weights, with the clips' statistics and residual branches scaled by 0.2 (at
1 it would be chaotic), and the paper's anticipator, fitted to the clips' features for some seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

import ongebd
from ongebd.backbones.torch_backbone import TorchBackbone
from ongebd.detector import Model
from ongebd.detector.openvino import on_cpu_runtime
from ongebd.detector.trained import ONNX_FILE
from ongebd.estimator.anticipator import ConsistentEventAnticipator
from ongebd.estimator.losses import prediction_errors
from ongebd.estimator.onnx_anticipator import OnnxAnticipator
from ongebd.lab.benchmark.random_weights import random_resnet50
from ongebd.lab.training.onnx_export import export_onnx
from ongebd.pool import StreamPool
from ongebd.types import ImageU8
from ongebd.video import VideoReader

Films = dict[str, list[tuple[Fraction, ImageU8]]]
Found = dict[Any, tuple[list[ongebd.Decision], list[ongebd.Boundary]]]


def read(options: argparse.Namespace, model: Model) -> Films:
    """The first frames of each clip, 24 a second, as a reader resizes them for the model."""
    films, view = {}, None if options.native else model.backbone.view
    for path in sorted(options.clips.glob("*.mp4"))[: options.count]:
        with VideoReader(path, 24, view=view) as video:
            films[path.name] = [(frame.time, frame.rgb) for frame in islice(video, options.frames)]
    return films


def estimator(films: Films, device: str) -> Model:
    """ResNet-50 with an anticipator that was fitted to the clips."""
    torch.manual_seed(0)
    network = random_resnet50()
    backbone = TorchBackbone("resnet50", network, device=device)
    for name, module in network.named_modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.train().momentum = 1.0  # takes the statistics of one batch
            module.weight.data.fill_(0.2 if name.endswith("bn3") else 1.0)
    backbone.embed(np.stack([backbone.crop(film[at][1]) for film in films.values() for at in (0, -1)]))
    network.eval()
    windows = []
    for film in films.values():
        run = torch.cat([torch.from_numpy(backbone.embed(backbone.crop(rgb)[None])) for _, rgb in film])
        windows.append(run.unfold(0, 40, 10).transpose(1, 2))
    past, future = torch.cat(windows).to(device)[:, :-1], torch.cat(windows).to(device)[:, 8:]
    anticipator = ConsistentEventAnticipator().to(device).train()
    optimizer = torch.optim.AdamW(anticipator.parameters(), lr=3e-4)
    for _ in range(60 if device == "cpu" else 400):
        some = torch.randint(len(past), (64,), device=device)
        prediction_errors(future[some], anticipator(past[some])).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    usual = prediction_errors(future, anticipator.eval()(past)).median().item()
    folder = Path(tempfile.mkdtemp())
    anticipator.save_pretrained(folder)
    export_onnx(anticipator.cpu(), folder / ONNX_FILE)
    loaded = OnnxAnticipator(folder / ONNX_FILE, "estimator", anticipator.config.window)
    settings = ongebd.load("window-mean").configured(min_error=usual, min_std=usual / 5)
    backbone = TorchBackbone("resnet50", network.cpu())
    return Model("estimator", "", backbone, settings, lambda _config: loaded)


def ways(model: Model, device: str) -> Iterator[tuple[str, StreamPool]]:
    """A pool for each way to compute; the first is the reference."""
    if device == "cpu":
        yield "onnxruntime", StreamPool(on_cpu_runtime(model))
        yield "OpenVINO, bfloat16", StreamPool(on_cpu_runtime(model, "openvino", "bfloat16"))
        return
    if model.name != "estimator":  # too slow on a CPU
        yield "CPU", StreamPool(model, workers=os.cpu_count(), max_batch=64)
    for way in ("float32", "float16", "bfloat16"):
        yield f"GPU, {way}", StreamPool(model, device=device, precision=way, max_batch=32, compiles=False)


def decide(pool: StreamPool, films: Films) -> Found:
    """Every clip as a stream, all together."""
    with pool:
        streams = {name: pool.add(name=name) for name in films}
        for n in range(max(map(len, films.values()))):
            for name, film in films.items():
                if n < len(film):
                    streams[name].submit(film[n][1], film[n][0], copy=False)
    found: Found = {name: ([], []) for name in films}
    for result in pool.results():
        if result.decision is not None and not result.decision.pending:
            found[result.stream.name][0].append(result.decision)
        if result.found is not None:
            found[result.stream.name][1].append(result.found)
    return found


def compare(ours: Found, theirs: Found) -> dict[str, object]:
    """F1 of the boundaries within one frame, and how far scores are apart."""
    hits = 0
    for name, (_, boundaries) in ours.items():
        left = [boundary.time for boundary in theirs[name][1]]
        for boundary in boundaries:
            near = [time for time in left if abs(time - boundary.time) <= 1.001 / 24]
            if near:
                left.remove(near[0])
                hits += 1
    pairs = [pair for name in ours for pair in zip(ours[name][0], theirs[name][0], strict=True)]
    counts = [sum(len(boundaries) for _, boundaries in found.values()) for found in (ours, theirs)]
    return {
        "boundaries, and the reference's": counts,
        "agree within one frame": round(2 * hits / max(1, sum(counts)), 5),
        "verdicts equal": round(sum(a.is_boundary == b.is_boundary for a, b in pairs) / len(pairs), 6),
        "scores apart, most": max(round(abs(a.error - b.error), 5) for a, b in pairs),
    }


def main() -> None:
    """Compare every way with the first, model by model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=Path, required=True)
    parser.add_argument("--models", default="immediate,window-mean,estimator")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--count", type=int, help="clips; default: all")
    parser.add_argument("--frames", type=int, default=240, help="of each clip at most")
    parser.add_argument("--native", action="store_true", help="leave resizing to the runtime")
    options = parser.parse_args()
    for name in options.models.split(","):
        films = read(options, ongebd.load("window-mean" if name == "estimator" else name))
        model = estimator(films, options.device) if name == "estimator" else ongebd.load(name)
        reference: Found = {}
        for way, pool in ways(model, options.device):
            found = decide(pool, films)
            reference = reference or found
            print(f"{name}, {way}:", json.dumps(compare(found, reference)), flush=True)


if __name__ == "__main__":
    main()
