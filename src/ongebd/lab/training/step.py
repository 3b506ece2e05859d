"""One step of a training, and what it runs on: precision, compilation, several GPUs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ongebd.lab.training.batches import Batch
from ongebd.lab.training.config import TrainConfig
from ongebd.lab.training.processes import Processes

StepFunction = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""`Objective.forward`, perhaps compiled or shared between processes."""


def train_step(
    objective: StepFunction,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    autocast: Callable[[], AbstractContextManager[Any]],
) -> Tensor:
    """One step down the gradient of one batch; its loss, still on the device."""
    with autocast():
        loss, _ = objective(batch.frames, batch.targets, batch.lead, batch.weight, batch.count)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.detach().clone()


def precision(config: TrainConfig, device: torch.device) -> Callable[[], AbstractContextManager[Any]]:
    """The autocast of a step."""
    low = config.precision == "bfloat16" or (config.precision == "auto" and device.type == "cuda")
    if not low:
        return nullcontext
    return lambda: torch.autocast(device.type, torch.bfloat16)


def prepared(objective: nn.Module, config: TrainConfig, processes: Processes) -> StepFunction:
    """The objective, shared between processes and compiled, where that is asked for."""
    module = objective
    if processes.world > 1:
        ids = [processes.device] if processes.device.type == "cuda" else None
        module = DistributedDataParallel(module, device_ids=ids, gradient_as_bucket_view=True)
    if config.compile == "off" or (config.compile == "auto" and processes.device.type != "cuda"):
        return module
    mode = "reduce-overhead" if config.compile == "graphs" else "default"
    compiled: StepFunction = torch.compile(module, mode=mode, dynamic=False)
    return compiled
