"""The part of `gpu_runtime.py` that holds boundaries on real clips against float32's. Needs torch."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import ongebd
from ongebd.common.geometry import View
from ongebd.detector import Model
from ongebd.estimator.anticipator import AnticipatorConfig, ConsistentEventAnticipator
from ongebd.estimator.torch_errors import prediction_errors
from ongebd.pool import StreamPool
from ongebd.pool.gpu import GpuRuntime
from ongebd.pool.gpu.networks import device_network
from ongebd.video import VideoReader

if TYPE_CHECKING:
    from gpu_runtime import Bench


def clips(bench: Bench, view: View | None = None) -> Iterator[tuple[str, list[tuple[Fraction, np.ndarray]]]]:
    """Name and frames (time, picture) of each clip, sampled to 24 frames a second.

    Args:
        bench: Which clips.
        view: How the reader resizes them, as it does for a backbone; None leaves the native size.
    """
    paths = sorted(path for path in Path(bench.asked.clips).iterdir() if path.is_file())
    for path in paths[: 2 if bench.quick else None]:
        with VideoReader(path, 24, view=view) as video:
            frames = [(frame.time, frame.rgb) for frame in video]
        yield path.name, frames[: 40 if bench.quick else None]


def boundaries(decisions: list[ongebd.Decision], last: ongebd.Boundary | None) -> list[ongebd.Boundary]:
    """All that were decided."""
    return [*(d.boundary for d in decisions if d.boundary is not None), *([last] if last else [])]


def matched(ours: list[ongebd.Boundary], theirs: list[ongebd.Boundary], frame: float) -> int:
    """How many of ours lie within one frame of one of theirs, each used once."""
    left = [boundary.time for boundary in theirs]
    hits = 0
    for boundary in ours:
        near = [time for time in left if abs(time - boundary.time) <= frame * 1.001]
        if near:
            left.remove(min(near, key=lambda time: abs(time - boundary.time)))
            hits += 1
    return hits


class Agreement:
    """Boundaries and errors of one way against float32's, over clips."""

    def __init__(self) -> None:
        self.ours = self.theirs = self.hits = self.frames = self.verdicts = 0
        self.worst = 0.0

    def add(self, ours: list[ongebd.Decision], theirs: list[ongebd.Decision], ends: list[Any]) -> None:
        """One clip."""
        mine, wanted = boundaries(ours, ends[0]), boundaries(theirs, ends[1])
        self.ours += len(mine)
        self.theirs += len(wanted)
        self.hits += matched(mine, wanted, 1 / 24)
        self.frames += len(ours)
        self.verdicts += sum(a.is_boundary == b.is_boundary for a, b in zip(ours, theirs, strict=True))
        self.worst = max(self.worst, *(abs(a.error - b.error) for a, b in zip(ours, theirs, strict=True)))

    def figures(self) -> dict[str, float]:
        """F1 of the boundaries within one frame, and the errors' largest difference."""
        return {
            "boundaries": self.ours,
            "float32's": self.theirs,
            "agree within one frame": round(2 * self.hits / max(1, self.ours + self.theirs), 5),
            "verdicts equal": round(self.verdicts / max(1, self.frames), 6),
            "frames": self.frames,
            "largest difference of errors": float(f"{self.worst:.3g}"),
        }


def agreement(bench: Bench) -> None:
    """Boundaries on real clips against float32."""
    films = list(clips(bench))
    lite = ongebd.load("window-mean")
    reference = StreamPool(lite, workers=16, max_pending=64, max_batch=64)
    wanted = through(reference, films)
    bench.note("agreement", "clips", {"clips": len(films), "frames": sum(len(f) for _, f in films)})
    for precision in ("float16", "bfloat16", "float32"):
        runtime = GpuRuntime(lite, device=bench.device, precision=precision, max_batch=32, compiles=False)
        pool = StreamPool(lite, runtime=runtime)
        bench.note(
            "agreement",
            f"window-mean on Lite0, {precision} against the CPU",
            compare(through(pool, films), wanted),
        )
    for backbone in ("EfficientNet-Lite0", "ResNet-50"):
        fitted(bench, films[:20], backbone)


def fitted(bench: Bench, films: list[Any], name: str) -> None:
    """A backbone with a CEA that was fitted to the clips for some seconds, against itself in true float32."""

    def runtime(model: Model, precision: str) -> GpuRuntime:
        return GpuRuntime(model, device=bench.device, precision=precision, max_batch=32, compiles=False)

    plain = bench.resnet50_cea() if name == "ResNet-50" else ongebd.load("window-mean")
    network = fit(features_of(plain, films, bench.device), bench)
    model = Model(name, "", plain.backbone, bench.config, bench.resnet50_cea(network).method)
    # The scale of the errors is the model's own: what is an event is told from what is usual in them.
    errors = [
        d.error
        for said in through(StreamPool(model, runtime=runtime(model, "float32")), films).values()
        for d in said[0]
    ]
    usual = statistics.median(errors)
    model = Model(
        name,
        "",
        plain.backbone,
        replace(bench.config, min_error=usual, min_std=usual / 5),
        model.method,
    )
    wanted = through(StreamPool(model, runtime=runtime(model, "float32")), films)
    bench.note("agreement", f"CEA on {name}: median error", float(f"{usual:.3g}"))
    for what in ("float16", "bfloat16"):
        found = compare(through(StreamPool(model, runtime=runtime(model, what)), films), wanted)
        bench.note("agreement", f"CEA on {name}, {what} against float32", found)


def features_of(model: Model, films: list[Any], device: str) -> list[torch.Tensor]:
    """Each clip's features, (frames, D), in float32."""
    network = device_network(model.backbone, torch.device(device), torch.float32)
    runs = []
    with torch.no_grad():
        for _, frames in films:
            rows = []
            for first in range(0, len(frames), 32):
                some = [model.backbone.crop(rgb) for _, rgb in frames[first : first + 32]]
                rows.append(network(torch.from_numpy(np.stack(some)).to(device)).cpu())
            runs.append(torch.cat(rows))
    return runs


def fit(runs: list[torch.Tensor], bench: Bench) -> ConsistentEventAnticipator:
    """A CEA that predicts the next feature of the clips."""
    torch.manual_seed(2)
    network = ConsistentEventAnticipator(AnticipatorConfig.for_dim(runs[0].shape[1])).to(bench.device).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-4)
    length = 40
    windows = torch.cat([run.unfold(0, length, 10).transpose(1, 2) for run in runs if len(run) >= length])
    windows = windows.to(bench.device)  # (N, 40, D)
    for number in range(2 if bench.quick else 400):
        picked = windows[torch.randint(len(windows), (min(64, len(windows)),), device=bench.device)]
        anticipated = network(picked[:, :-1])
        loss = prediction_errors(picked[:, 8:], anticipated).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if number % 200 == 0:
            bench.note("agreement", f"CEA's mean error after {number} steps", round(float(loss.detach()), 5))
    return network.eval().cpu()


def through(pool: StreamPool, films: list[Any]) -> dict[str, Any]:
    """Every clip as a stream of its own, all at once: decisions and the last boundary by name."""
    with pool:
        streams = {name: pool.add(name=name, max_pending=64) for name, _ in films}
        for n in range(max(len(frames) for _, frames in films)):
            for name, frames in films:
                if n < len(frames):
                    streams[name].submit(frames[n][1], frames[n][0], copy=False)
    said: dict[str, Any] = {name: ([], None) for name, _ in films}
    for result in pool.results():
        decisions, last = said[result.stream.name]
        if result.error is not None:
            raise result.error
        if result.decision is not None:
            decisions.append(result.decision)
        said[result.stream.name] = (decisions, result.boundary or last)
    return said


def compare(ours: dict[str, Any], wanted: dict[str, Any]) -> dict[str, float]:
    """All clips together."""
    total = Agreement()
    for name, (decisions, last) in ours.items():
        total.add(decisions, wanted[name][0], [last, wanted[name][1]])
    return total.figures()
