"""Where a training runs: one process, or several that `torchrun` started; devices, precision, compilation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from ongebd.backbones.torch_backbone import torch_device
from ongebd.lab.training.config import TrainConfig
from ongebd.offline.systems import SYSTEMS

StepFunction = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""`Objective.forward`, perhaps compiled or shared between processes."""


@dataclass(frozen=True, slots=True)
class Processes:
    """This process among `world` processes; number 0 writes files and prints."""

    rank: int
    world: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0

    def wait(self) -> None:
        """Wait until all processes reach this point."""
        if self.world > 1:
            distributed.barrier()


@contextmanager
def joined(device: str) -> Iterator[Processes]:
    """Join the other processes, if `torchrun` started several.

    Raises:
        ConfigError: `device`, as in `TrainConfig`, doesn't exist.
    """
    world, local = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("LOCAL_RANK", "0"))
    place = checked_device(device, local)
    if place.type == "cuda":
        torch.cuda.set_device(place)
    if world == 1:
        yield Processes(0, 1, place)
        return
    distributed.init_process_group("nccl" if place.type == "cuda" else "gloo")
    try:
        yield Processes(distributed.get_rank(), world, place)
    finally:
        distributed.destroy_process_group()


def checked_device(name: str, local: int = 0) -> torch.device:
    """The device of a name as in `TrainConfig.device`; `local` is the GPU if none is named.

    Raises:
        ConfigError: The device doesn't exist.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch_device(name)
    return torch.device("cuda", local) if name == "cuda" else device


def precision(config: TrainConfig, device: torch.device) -> Callable[[], AbstractContextManager[Any]]:
    """The autocast of a step."""
    if config.precision == "bfloat16" or (config.precision == "auto" and device.type == "cuda"):
        return lambda: torch.autocast(device.type, torch.bfloat16)
    return nullcontext


def prepared(objective: nn.Module, config: TrainConfig, processes: Processes) -> StepFunction:
    """The objective, shared between processes and compiled as configured."""
    on_gpu = processes.device.type == "cuda"
    if processes.world > 1:
        ids = [processes.device] if on_gpu else None
        objective = DistributedDataParallel(objective, device_ids=ids, gradient_as_bucket_view=True)
    pays = on_gpu and (config.method not in SYSTEMS or SYSTEMS[config.method].compiles)
    if config.compile == "off" or (config.compile == "auto" and not pays):
        return objective
    mode = "reduce-overhead" if config.compile == "graphs" else "default"
    compiled: StepFunction = torch.compile(objective, mode=mode, dynamic=False)
    return compiled
