"""The ways in which one stream of a method is run: ours, and torch's own beside it."""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from ongebd.detector import Model
from ongebd.lab.benchmark.plan import BenchPlan
from ongebd.lab.benchmark.subjects import Subject
from ongebd.types import Feature, ImageU8

EAGER = "eager float32"


class Way(Protocol):
    """One stream, whose parts can be run apart from each other.

    Attributes:
        name: What to call it.
        startup: Seconds that it took to make it ready.
        device_bytes: The most memory that it took of a GPU; None on the CPU.
    """

    name: str
    startup: float
    device_bytes: int | None

    def features(self, frame: ImageU8) -> object:
        """From a frame on the host to its feature, done when this returns."""

    def method(self, feature: Feature, time: float) -> object:
        """From a feature to the decision on the host."""

    def overall(self, frame: ImageU8, time: float) -> object:
        """From a frame on the host to the decision on the host."""

    def close(self) -> None:
        """Give back what it holds."""


class CpuWay:
    """A model's stream on the CPU."""

    device_bytes: int | None = None

    def __init__(self, model: Model, name: str) -> None:
        began = time.perf_counter()
        self.name = name
        self._backbone = model.backbone
        self._judging, self._whole = model.stream(), model.stream()
        self.features(np.zeros((model.backbone.resize_size,) * 2 + (3,), np.uint8))
        self.startup = time.perf_counter() - began

    def features(self, frame: ImageU8) -> object:
        """The backbone."""
        return self._backbone.embed(self._backbone.crop(frame)[np.newaxis])

    def method(self, feature: Feature, time: float) -> object:
        """Method and head."""
        return self._judging.update_feature(feature, time)

    def overall(self, frame: ImageU8, time: float) -> object:
        """The detector."""
        return self._whole.update(frame, time)

    def close(self) -> None:
        """Nothing is held."""


class DeviceWay:
    """A model's stream on a GPU.

    Args:
        model: With a GPU form.
        device: `cuda` or `cuda:N`; `cpu` computes the same as tensors, for tests.
        precision: In what backbone and method compute.

    Raises:
        ConfigError: It has no GPU form.
    """

    def __init__(self, model: Model, device: str, precision: str) -> None:
        import torch

        from ongebd.pool.gpu import DeviceStream

        self._torch = torch
        self._cuda = device != "cpu"
        self.name = f"ours, {precision}"
        before = _watch_memory(device)
        self._stream = DeviceStream(model, device=device, precision=precision)
        self._engine: Any = self._stream.runtime.engine
        self.startup = self._stream.runtime.startup
        self.device_bytes = _most_memory(device, before)

    def features(self, frame: ImageU8) -> object:
        """The backbone alone, on the picture that is there already."""
        del frame
        with self._torch.inference_mode():
            if not self._cuda:
                return self._engine.embed(1)
            with self._torch.cuda.device(self._engine.device), self._torch.cuda.stream(self._engine.main):
                self._engine.embed(1)
            return self._engine.main.synchronize()

    def method(self, feature: Feature, time: float) -> object:
        """Method and discriminator, upload of the feature included."""
        return self._stream.update_feature(feature, time)

    def overall(self, frame: ImageU8, time: float) -> object:
        """Everything, upload and read-back included."""
        return self._stream.update(frame, time)

    def close(self) -> None:
        """The runtime."""
        self._stream.close()


class EagerWay:
    """Torch's modules one by one in float32, on the same device.

    Raises:
        ConfigError: The model's backbone has no network in torch.
    """

    name = EAGER

    def __init__(self, model: Model, device: str) -> None:
        from ongebd.lab.benchmark.eager import EagerStream

        began = time.perf_counter()
        before = _watch_memory(device)
        self._judging, self._whole = EagerStream(model, device), EagerStream(model, device)
        self._whole.update(np.zeros((model.backbone.resize_size,) * 2 + (3,), np.uint8), 0.0)
        self.startup = time.perf_counter() - began
        self.device_bytes = _most_memory(device, before)

    def features(self, frame: ImageU8) -> object:
        """Upload and backbone."""
        return self._whole.embed(frame)

    def method(self, feature: Feature, time: float) -> object:
        """Upload of the feature, method, error read back, head."""
        return self._judging.update_feature(feature, time)

    def overall(self, frame: ImageU8, time: float) -> object:
        """Everything."""
        return self._whole.update(frame, time)

    def close(self) -> None:
        """Nothing is held but memory."""


def open_ways(subject: Subject, plan: BenchPlan) -> list[Way]:
    """Ours first, then torch's own where the method has networks, and torch is installed.

    Raises:
        ConfigError: The method has no form for the device.
        MissingExtraError: A package is not installed.
    """
    if plan.on_gpu:
        ours: Way = DeviceWay(subject.model, plan.device, plan.computes_in)
    else:
        how = "" if subject.looks_at_pixels else f", {plan.runtime} {plan.computes_in}"
        ours = CpuWay(subject.model, f"ours{how}")
    ways = [ours]
    if find_spec("torch") is not None and find_spec("onnx") is not None:
        from ongebd.lab.benchmark.eager import has_network

        if has_network(subject.plain.backbone):
            ways.append(EagerWay(subject.plain, plan.device))
    return ways


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
