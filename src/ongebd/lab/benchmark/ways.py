"""The ways in which one stream of a method runs: ours, and torch's own beside it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from ongebd.detector import Model
from ongebd.lab.benchmark.plan import BenchPlan
from ongebd.lab.benchmark.subjects import Subject
from ongebd.types import Feature, ImageU8


@dataclass(frozen=True, slots=True)
class Way:
    """One stream, whose parts can run on their own. A call is done when it returns.

    Attributes:
        name: What to call it.
        startup: Seconds that it took to get ready.
        device_bytes: The most GPU memory that it took; None on the CPU.
        features: From a frame on the host to its feature.
        method: From a feature and its time to the decision on the host.
        overall: From a frame and its time to the decision on the host.
        close: Frees what it holds.
    """

    name: str
    startup: float
    device_bytes: int | None
    features: Callable[[ImageU8], object]
    method: Callable[[Feature, float], object]
    overall: Callable[[ImageU8, float], object]
    close: Callable[[], object] = lambda: None


def open_ways(subject: Subject, plan: BenchPlan) -> list[Way]:
    """Ours, and torch's own if the method has networks and torch is installed.

    Raises:
        ConfigError: The method has no form for the device.
        MissingExtraError: A package is not installed.
    """
    if plan.on_gpu:
        ways = [device_way(subject.model, plan.device, plan.computes_in)]
    else:
        pictures = subject.plain.backbone.name == "pictures"  # it has no network
        ways = [cpu_way(subject.model, "ours" if pictures else f"ours, {plan.runtime} {plan.computes_in}")]
    if find_spec("torch") is not None and find_spec("onnx") is not None:
        from ongebd.lab.benchmark.eager import has_network

        if has_network(subject.plain.backbone):
            ways.append(eager_way(subject.plain, plan.device))
    return ways


def cpu_way(model: Model, name: str) -> Way:
    """A model's stream on the CPU."""
    began = time.perf_counter()
    backbone, judging, whole = model.backbone, model.stream(), model.stream()

    def features(frame: ImageU8) -> object:
        return backbone.embed(backbone.crop(frame)[np.newaxis])

    features(_blank(model))
    startup = time.perf_counter() - began
    return Way(name, startup, None, features, judging.update_feature, whole.update)


def device_way(model: Model, device: str, precision: str) -> Way:
    """A model's stream on a GPU; on `cpu` the same is computed as tensors, for tests.

    Raises:
        ConfigError: The model has no GPU form.
    """
    import torch

    from ongebd.pool.gpu import DeviceStream

    before = _watch_memory(device)
    began = time.perf_counter()
    stream = DeviceStream(model, device=device, precision=precision)
    engine: Any = stream.runtime.engine

    @torch.inference_mode()
    def features(_frame: ImageU8) -> object:
        """The backbone alone, on the picture that is there already."""
        if device == "cpu":
            return engine.embed(1)
        with torch.cuda.device(engine.device), torch.cuda.stream(engine.main):
            engine.embed(1)
        return engine.main.synchronize()

    startup, memory = time.perf_counter() - began, _most_memory(device, before)
    name = f"ours, {precision}"
    return Way(name, startup, memory, features, stream.update_feature, stream.update, stream.close)


def eager_way(model: Model, device: str) -> Way:
    """Torch's modules one by one in float32, on the same device."""
    from ongebd.lab.benchmark.eager import EagerStream

    began = time.perf_counter()
    before = _watch_memory(device)
    judging, whole = EagerStream(model, device), EagerStream(model, device)
    whole.update(_blank(model), 0.0)
    startup = time.perf_counter() - began
    memory = _most_memory(device, before)
    return Way("eager float32", startup, memory, whole.embed, judging.update_feature, whole.update)


def _blank(model: Model) -> ImageU8:
    size = model.backbone.resize_size
    return np.zeros((size, size, 3), np.uint8)


def _watch_memory(device: str) -> int:
    if device == "cpu":
        return 0
    import torch

    torch.cuda.init()  # type: ignore[no-untyped-call]
    torch.cuda.reset_peak_memory_stats(device)
    return int(torch.cuda.memory_allocated(device))


def _most_memory(device: str, before: int) -> int | None:
    if device == "cpu":
        return None
    import torch

    return int(torch.cuda.max_memory_allocated(device)) - before
