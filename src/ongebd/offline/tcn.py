"""TCN: temporal convolutions that shrink a video and stretch it again, so each frame sees far. Needs torch.

Lea, Flynn, Vidal, Reiter and Hager: Temporal Convolutional Networks for Action Segmentation and Detection.
CVPR 2017, its encoder-decoder: layer l has 96 + 32 l filters; convolution, dropout, ReLU divided by the
largest value, and pooling by two; the decoder does it backwards. Shou et al. and Shao et al. (TAPOS, CVPR
2020) put a boundary classifier on it, without more detail: kernel, rate and optimiser here are the TCN
paper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ongebd.baselines.network import Dropout, Layers, Size
from ongebd.errors import ConfigError
from ongebd.offline.network import OfflineConfig, OfflineNetwork


@dataclass(frozen=True, kw_only=True)
class TcnConfig(OfflineConfig):
    """The shape of a TCN."""

    width: Size = 96
    """Layer l has this and 32 l filters."""
    layers: Layers = 2
    """Of the encoder, and of the decoder."""
    kernel: Size = 25
    """Frames that a convolution sees; odd."""
    dropout: Dropout = 0.3
    """Dropout of whole filters."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.kernel % 2:
            raise ConfigError(f"kernel must be odd, not {self.kernel}")


class Tcn(OfflineNetwork):
    """Encoder, decoder, logit of each frame."""

    method: ClassVar[str] = "tcn"
    Shape: ClassVar[type[OfflineConfig]] = TcnConfig
    shape: TcnConfig

    def __init__(self, config: TcnConfig = TcnConfig()) -> None:
        super().__init__()
        self.shape = config
        filters = [config.width + 32 * (layer + 1) for layer in range(config.layers)]
        down, up = [config.dim, *filters], [*filters[::-1], *filters[:1]]

        def layers(sizes: list[int]) -> nn.ModuleList:
            kernel, side = config.kernel, config.kernel // 2
            return nn.ModuleList(nn.Conv1d(a, b, kernel, padding=side) for a, b in pairwise(sizes))

        self.encoder, self.decoder = layers(down), layers(up)
        self.drop = nn.Dropout1d(config.dropout)
        self.head = nn.Conv1d(filters[0], 1, 1)

    def forward(self, frames: Tensor, real: Tensor) -> Tensor:
        """(B, N, D) → logits (B, N)."""
        found = (frames * real[..., None]).transpose(1, 2)  # (B, D, N)
        lengths = []
        for layer in self.encoder:
            lengths.append(found.shape[-1])
            found = functional.max_pool1d(self._normed(layer(found)), 2, ceil_mode=True)
        for layer in self.decoder:
            found = functional.interpolate(found, size=lengths.pop())
            found = self._normed(layer(found))
        logits: Tensor = self.head(found).squeeze(1)
        return logits

    def _normed(self, found: Tensor) -> Tensor:
        """Dropout, and ReLU divided by the largest value of each frame."""
        found = torch.relu(self.drop(found))
        return found / (found.amax(dim=1, keepdim=True) + 1e-5)
