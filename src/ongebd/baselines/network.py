"""What the trained online baselines have in common. Needs torch.

Each is a published online action detector with its classifier replaced by a *boundary head* of one logit: the
paper's "- BC" rows. It takes one frame's feature at a time and says how likely that frame is a boundary. The
network keeps no state of a stream; `start` makes one, and `step` gives the next.

A baseline is one file: its configuration, its layers, its loss and the settings that its authors trained it
with. Only what several of them need is here and in `ongebd.baselines.attention`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ongebd.errors import ConfigError, a_number, a_whole_number

# Beyond, a network fills gigabytes before anyone can see that its file is damaged.
_MOST, _MOST_LAYERS = 2**16, 1000

State = TypeVar("State", bound=tuple[Tensor, ...])


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a baseline's authors train it.

    Attributes:
        optimizer: Which.
        lr: Its learning rate.
        weight_decay: Its weight decay.
        clip: The largest norm of a gradient; None leaves it as it is.
    """

    optimizer: Literal["adam", "adamw"]
    lr: float
    weight_decay: float
    clip: float | None = None


class Layout(NamedTuple):
    """The runs that a loss is made of, as `ongebd.data.windows` lays them.

    Attributes:
        window: L, frames before the first place that has a target.
        region: K, targets that are computed for what comes after them, and have no loss.
        run: R, targets with a loss.
    """

    window: int
    region: int
    run: int


class NetworkConfig(Protocol):
    """The shape of a baseline: a frozen dataclass."""

    @property
    def dim(self) -> int:
        """D, numbers in a feature."""


class OnlineNetwork(nn.Module, ABC, Generic[State]):
    """A network that reads a stream of features and gives each frame's logit of being a boundary."""

    method: ClassVar[str]
    """The name under which it is loaded."""
    recipe: ClassVar[Recipe]
    """How its authors train it."""

    @property
    @abstractmethod
    def shape(self) -> NetworkConfig:
        """Its configuration."""

    @abstractmethod
    def forward(self, features: Tensor) -> Tensor:
        """Whole streams at once; the same numbers as `step` one by one, to rounding.

        Args:
            features: (B, T, D), each row from the first frame of its stream on.

        Returns:
            Logits, (B, T); each depends on the frames up to its own alone.
        """

    @abstractmethod
    def start(self, streams: int = 1) -> State:
        """The state of B streams before their first frame."""

    @abstractmethod
    def step(self, feature: Tensor, state: State) -> tuple[Tensor, State]:
        """The next frame of B streams.

        Args:
            feature: (B, D).
            state: Of `start`, or of the step before; it is left as it is.

        Returns:
            Logits, (B,), and the state for the next step, of the same size.
        """

    @abstractmethod
    def layout(self) -> Layout:
        """The runs that `losses` takes."""

    @abstractmethod
    def losses(self, frames: Tensor, targets: Tensor, lead: Tensor, weight: Tensor | float = 1.0) -> Tensor:
        """The loss of each target of S runs, as `ongebd.data.windows` lays them.

        Args:
            frames: Features, (S, L + K + R, D).
            targets: y of the last K + R frames, (S, K + R).
            lead: How many frames of the same stream precede each of those, less one: 0 for the second frame,
                negative where there is no target, (S, K + R).
            weight: What the loss of boundaries is multiplied by.

        Returns:
            (S, R); meaningless where `lead` is negative.
        """

    def placement(self) -> tuple[torch.device, torch.dtype]:
        """Where its weights lie, and their type."""
        first = next(self.parameters())
        return first.device, first.dtype


def binary_losses(logits: Tensor, targets: Tensor, weight: Tensor | float = 1.0) -> Tensor:
    """Cross-entropy of a boundary or none from one logit; of the logits' shape.

    >>> binary_losses(torch.tensor([0.0, 2.0]), torch.tensor([True, True])).round(decimals=4)
    tensor([0.6931, 0.1269])
    """
    truth = targets.to(logits.dtype)
    each = functional.binary_cross_entropy_with_logits(logits, truth, reduction="none")
    return torch.where(targets.bool(), weight * each, each)


def latest(window: Tensor, newest: Tensor) -> Tensor:
    """A rolling window (B, N, D) with the newest (B, D) behind and without the oldest."""
    return torch.cat([window[:, 1:], newest[:, None]], dim=1)


def sliding(sequence: Tensor, length: int) -> Tensor:
    """The window that ends with each of the last F − length + 1 places: (B, F, W) → (B, ·, length, W)."""
    return sequence.unfold(1, length, 1).transpose(2, 3)


def begun_with_still(sequence: Tensor, count: int) -> Tensor:
    """A sequence (B, T, W) with its first place `count` times before it: as if a still picture had stood."""
    return torch.cat([sequence[:, :1].expand(-1, count, -1), sequence], dim=1)


def chunks(length: int, size: int) -> Iterator[slice]:
    """0 … length in slices of `size`."""
    yield from (slice(first, min(first + size, length)) for first in range(0, length, size))


def state_bytes(state: tuple[Tensor, ...]) -> int:
    """Bytes of one stream's state."""
    return sum(tensor.numel() * tensor.element_size() for tensor in state)


def check_shape(config: Any, *, heads: tuple[tuple[str, str], ...] = ()) -> None:
    """Make sure that a configuration makes sense.

    Args:
        config: A dataclass: what is a number in its defaults must be one, whole numbers must be at
            least 1, and `dropout` lie from 0 to below 1.
        heads: Pairs (width, heads) of which the first must be a multiple of the second.

    Raises:
        ConfigError: It does not.
    """
    for field in fields(config):
        value = getattr(config, field.name)
        if isinstance(field.default, float):
            a_number(field.name, value)
            if field.name == "dropout" and not 0 <= value < 1:
                raise ConfigError(f"dropout must be at least 0 and below 1, not {value}")
            continue
        most = _MOST_LAYERS if field.name.endswith("layers") else _MOST
        if not 1 <= a_whole_number(field.name, value) <= most:
            raise ConfigError(f"{field.name} must be a whole number from 1 to {most}, not {value!r}")
    for width, parts in heads:
        if getattr(config, width) % getattr(config, parts):
            raise ConfigError(
                f"{width} ({getattr(config, width)}) must be a multiple of {parts} ({getattr(config, parts)})"
            )


def parameter_count(network: nn.Module) -> int:
    """How many numbers are learned."""
    return sum(parameter.numel() for parameter in network.parameters())
