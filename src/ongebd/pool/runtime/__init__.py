"""What runs many streams of one model: on the CPU, or on a GPU.

>>> import numpy as np, ongebd
>>> from ongebd.pool.runtime import Work, open_runtime
>>> model = ongebd.load("persistence")
>>> runtime = open_runtime(model)
>>> slot = runtime.open(model.configured())
>>> picture = runtime.accept(np.zeros((120, 160, 3), np.uint8))
>>> runtime.begin([Work(slot, picture, time=0.0)]).finish()[0].is_boundary
False
>>> runtime.close()
"""

from __future__ import annotations

from importlib.util import find_spec
from inspect import signature
from typing import Any

from ongebd.detector.models import Model
from ongebd.errors import ConfigError, MissingExtraError
from ongebd.pool.runtime.base import Outcome, Runtime, Step, StreamSlot, Work
from ongebd.pool.runtime.cpu import CpuRuntime

__all__ = ["CpuRuntime", "Outcome", "Runtime", "Step", "StreamSlot", "Work", "open_runtime"]


def open_runtime(model: Model, device: str = "cpu", precision: str | None = None, **options: Any) -> Runtime:
    """The runtime for a device.

    Args:
        model: A loaded model.
        device: "cpu", which needs no torch, or a GPU: "cuda" or "cuda:N".
        precision: Of backbone and method: "float32", "bfloat16" or "float16". None: float32 on the CPU, which
            knows no other, and float16 on a GPU.
        **options: Those of `CpuRuntime` or `ongebd.pool.gpu.GpuRuntime`.

    Raises:
        ConfigError: This model doesn't support the device, the precision or an option.
        MissingExtraError: A GPU is asked for, and torch is not installed.
    """
    if not isinstance(device, str):
        raise ConfigError(f"device must be cpu, cuda or cuda:N, not {device!r}")
    kind: type[Any] = CpuRuntime
    if device == "cpu":
        if precision not in (None, "float32"):
            raise ConfigError(f"on the CPU a stream computes in float32, not in {precision}")
    else:
        if find_spec("torch") is None:
            raise MissingExtraError.of("torch", "train")
        from ongebd.pool.gpu import GpuRuntime

        kind = GpuRuntime
        options |= {"device": device, "precision": precision or "float16"}
    if unknown := sorted(set(options) - set(signature(kind).parameters)):
        raise ConfigError(f"device {device}: unknown option {', '.join(unknown)}")
    runtime: Runtime = kind(model, **options)
    return runtime
