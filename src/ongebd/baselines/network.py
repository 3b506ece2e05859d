"""What the trained online baselines have in common. Needs torch.

Each is a published online action detector whose classifier is replaced by a *boundary head* of one logit: the
paper's "- BC" rows. It takes one frame's feature at a time and says how likely that frame is a boundary. The
network keeps no state of a stream; `start` makes one, and `step` gives the next.

A baseline is one file: its shape, its layers and its loss; its authors' training settings are in
`ongebd.baselines.methods`. What several of them need is here and in `ongebd.baselines.attention`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from ongebd.backbones.torch_backbone import computing_threads
from ongebd.common.settings import Range, check_fields
from ongebd.errors import ConfigError
from ongebd.types import Feature

# Beyond these sizes a network fills gigabytes before anyone can see that its file is damaged.
Size = Annotated[int, Range(least=1, most=2**16)]
Layers = Annotated[int, Range(least=1, most=1000)]
Dropout = Annotated[float, Range(least=0, below=1)]
State = TypeVar("State", bound=tuple[Tensor, ...])


class Layout(NamedTuple):
    """The runs that a loss is made of, as `ongebd.data.windows` lays them.

    Attributes:
        window: L, frames before the first place that has a target.
        region: K, targets that are computed for what comes after them, and have no loss.
        run: R, targets with a loss.
        stride: An epoch takes one run of so many.
    """

    window: int
    region: int
    run: int
    stride: int = 1


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """The shape of a baseline; the defaults are the published one."""

    dim: Size = 2048
    """D, numbers in a feature."""
    shared_by: ClassVar[tuple[str, ...]] = ()
    """The fields whose heads share `width` evenly."""

    def __post_init__(self) -> None:
        check_fields(self)
        values: Any = self
        for heads in self.shared_by:
            count = getattr(self, heads)
            if values.width % count:
                raise ConfigError(f"width ({values.width}) must be a multiple of {heads} ({count})")


class OnlineNetwork(nn.Module, ABC, Generic[State]):
    """A network that reads a stream of features and gives each frame's logit of being a boundary."""

    method: ClassVar[str]
    """The name under which it is loaded."""
    shape: NetworkConfig
    """Its configuration."""

    @abstractmethod
    def forward(self, features: Tensor) -> Tensor:
        """Whole streams; the same numbers as `step` one by one, to rounding.

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
        """The next frame of B streams: features (B, D) → logits (B,) and the next state, of the same size."""

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
                negative for a frame without a target, (S, K + R).
            weight: Of the loss of boundaries.

        Returns:
            (S, R); meaningless where `lead` is negative.
        """

    def zeros(self, *size: int) -> Tensor:
        """Zeros where the weights lie, of their type."""
        return next(self.parameters()).new_zeros(*size)


def binary_losses(logits: Tensor, targets: Tensor, weight: Tensor | float = 1.0) -> Tensor:
    """Cross-entropy of a boundary or none from one logit; of the logits' shape.

    >>> binary_losses(torch.tensor([0.0, 2.0]), torch.tensor([True, True])).round(decimals=4)
    tensor([0.6931, 0.1269])
    """
    truth = targets.to(logits.dtype)
    each = functional.binary_cross_entropy_with_logits(logits, truth, reduction="none")
    return torch.where(targets.bool(), weight * each, each)


def latest(window: Tensor, newest: Tensor) -> Tensor:
    """A rolling window (B, N, …) with the newest (B, …) behind and without the oldest."""
    return torch.cat([window[:, 1:], newest[:, None]], dim=1)


def sliding(sequence: Tensor, length: int) -> Tensor:
    """The window that ends with each of the last F − length + 1 places: (B, F, W) → (B, ·, length, W)."""
    return sequence.unfold(1, length, 1).transpose(2, 3)


def begun_with_still(sequence: Tensor, count: int) -> Tensor:
    """A sequence (B, T, W) with its first place `count` times before it, like a still picture."""
    return torch.cat([sequence[:, :1].expand(-1, count, -1), sequence], dim=1)


def chunks(length: int, size: int) -> Iterator[slice]:
    """0 … length in slices of `size`."""
    yield from (slice(first, min(first + size, length)) for first in range(0, length, size))


def parameter_count(network: nn.Module) -> int:
    """How many numbers are learned."""
    return sum(parameter.numel() for parameter in network.parameters())


class NetworkScorer:
    """A scorer (`ongebd.detector.detector.Scorer`) that owns one stream's state; the network is shared.

    Args:
        network: In evaluation mode.
        name: What to call it.
        threads: CPU threads in which a frame is computed; None leaves them as PyTorch has them.
    """

    latency: int = 0

    def __init__(self, network: OnlineNetwork[Any], name: str, threads: int | None = None) -> None:
        self.name = name
        self.network = network
        self._threads = threads
        weights = next(network.parameters())
        self._device, self._dtype = weights.device, weights.dtype
        self.reset()
        self.state_bytes = sum(tensor.nbytes for tensor in self._state)

    @torch.inference_mode()
    def reset(self) -> None:
        """Forget everything seen."""
        self._state = self.network.start()
        self._first = True

    @torch.inference_mode()
    def update(self, feature: Feature, time: float) -> float | None:
        """The next frame's probability, from its feature (D,); None for the first, which ends nothing."""
        del time  # frames come at the rate that the network was trained at
        given = torch.from_numpy(np.asarray(feature, np.float32)).to(self._device, self._dtype)
        with computing_threads(self._threads, self._device):
            logit, self._state = self.network.step(given[None], self._state)
        first, self._first = self._first, False
        return None if first else float(logit.float().sigmoid()[0])

    @torch.inference_mode()
    def probabilities(self, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Those of all frames of a stream, (T, D) → (T,), in one call; the first one ends nothing."""
        given = torch.from_numpy(features).to(self._device, self._dtype)
        with computing_threads(self._threads, self._device):
            logits = self.network(given[None])[0]
        result: npt.NDArray[np.float64] = logits.float().sigmoid().double().cpu().numpy()
        return result

    def flush(self) -> list[float | None]:
        """Nothing is held back."""
        return []
