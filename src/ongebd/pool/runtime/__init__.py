"""What runs many streams of one model: on the CPU, or on a GPU.

>>> import numpy as np, ongebd
>>> from ongebd.pool.runtime import Work, open_runtime
>>> model = ongebd.load("persistence")
>>> runtime = open_runtime(model)
>>> slot = runtime.open(model.configured())
>>> picture = runtime.accept(np.zeros((120, 160, 3), np.uint8))
>>> finish = runtime.begin([Work(slot, picture, time=0.0)])
>>> finish()[0].is_boundary
False
>>> runtime.close()
"""

from __future__ import annotations

from typing import Any

from ongebd.detector.models import Model
from ongebd.errors import ConfigError, import_extra
from ongebd.pool.runtime.base import Finish, Outcome, Runtime, StreamSlot, Work
from ongebd.pool.runtime.cpu import CpuRuntime

__all__ = ["CpuRuntime", "Finish", "Outcome", "Runtime", "StreamSlot", "Work", "open_runtime"]


def open_runtime(model: Model, device: str = "cpu", precision: str | None = None, **options: Any) -> Runtime:
    """The runtime for a device.

    Args:
        model: A loaded model.
        device: "cpu", which needs no torch, or a GPU: "cuda" or "cuda:N".
        precision: Of backbone and method: "float32", "bfloat16" or "float16". None: float32 on the CPU, which
            knows no other, and float16 on a GPU.
        **options: Those of `CpuRuntime` or `ongebd.pool.gpu.GpuRuntime`.

    Raises:
        ConfigError: This model doesn't support the device or the precision.
        MissingExtraError: A GPU is asked for, and torch is not installed.
    """
    if device == "cpu":
        if precision not in (None, "float32"):
            raise ConfigError(f"on the CPU a stream computes in float32, not in {precision}")
        return CpuRuntime(model, **options)
    import_extra("torch", "train")
    from ongebd.pool.gpu import GpuRuntime

    return GpuRuntime(model, device=device, precision=precision or "float16", **options)
