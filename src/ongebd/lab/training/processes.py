"""One process, or several that `torchrun` started, each with its GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import distributed

from ongebd.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Processes:
    """This process and its fellows.

    Attributes:
        rank: Its number, from 0; the first one writes files and speaks.
        world: How many there are.
        device: Where this one computes.
    """

    rank: int
    world: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and speaks."""
        return self.rank == 0

    def wait(self) -> None:
        """Wait until all have come here."""
        if self.world > 1:
            distributed.barrier()


@contextmanager
def joined(device: str) -> Iterator[Processes]:
    """Join the other processes, if `torchrun` started several.

    Args:
        device: As in `TrainConfig.device`.

    Raises:
        ConfigError: There is no such device.
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
    """The device of a name, once it is known to be there.

    Args:
        name: As in `TrainConfig.device`.
        local: Which GPU is meant where none is named.

    Raises:
        ConfigError: There is no such device.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"device must be auto, cpu, cuda or cuda:N, not {name!r}") from None
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise ConfigError(f"device {name}: torch sees no GPU here; leave device at auto, or say cpu")
        return torch.device(name if ":" in name else f"cuda:{local}")
    return device
