"""CoSeg: frames that their neighbours can't rebuild are boundaries; no labels are needed. Needs torch.

Wang, Liu, Mei and Luo: CoSeg: Cognitively Inspired Unsupervised Generic Event Segmentation. TNNLS 2023;
facts from its public code (github.com/wang3702/CoSeg). Windows of ten frames, one of them hidden; two
transformer layers with eight heads rebuild its feature; the error is the mean square, both of norm one.
Errors are smoothed over ten frames; where their slope is highest among many neighbours is a boundary. SGD,
0.002.

Differs: the authors learn the features along, by contrast; ours are frozen. In training and at work the
hidden frame is the sixth; their rate and range on Kinetics-GEBD aren't stated: eight frames a second and a
second are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ongebd.baselines.network import Layers, Size
from ongebd.offline.maps import in_parts
from ongebd.offline.network import OfflineConfig, OfflineNetwork, Rate, windows

SIDE = 5
"""Frames before the hidden one; there is one fewer after it."""


@dataclass(frozen=True, kw_only=True)
class CosegConfig(OfflineConfig):
    """The shape of a CoSeg."""

    fps: Rate = 24.0
    """Frames a second that it looks at."""
    length: Size = 240
    """Frames in a clip."""
    width: Size = 1024
    """Numbers in a frame."""
    layers: Layers = 2
    """Of the transformer."""
    heads: Size = 8
    """Attention heads."""
    smoothed: Size = 10
    """Frames over which errors are averaged."""
    shared_by: ClassVar[tuple[str, ...]] = ("heads",)


class Coseg(OfflineNetwork):
    """Projection, transformer around a hidden frame, its feature again."""

    method: ClassVar[str] = "coseg"
    Shape: ClassVar[type[OfflineConfig]] = CosegConfig
    scope: ClassVar[int | None] = 24
    shape: CosegConfig

    def __init__(self, config: CosegConfig = CosegConfig()) -> None:
        super().__init__()
        self.shape, width = config, config.width
        self.project = nn.Linear(config.dim, width)
        self.hidden = nn.Parameter(torch.zeros(width))
        self.place = nn.Parameter(0.02 * torch.randn(2 * SIDE, width))
        layer = nn.TransformerEncoderLayer(width, config.heads, 4 * width, 0.1, "gelu", batch_first=True)
        self.context = nn.TransformerEncoder(layer, config.layers, enable_nested_tensor=False)
        self.rebuild = nn.Linear(width, config.dim)

    def forward(self, frames: Tensor, real: Tensor) -> Tensor:
        """(B, N, D) → how wrong each frame was rebuilt, (B, N)."""
        del real  # filled-up frames look like a video that stands still
        unit = functional.normalize(frames, dim=-1)
        around = windows(self.project(unit), SIDE)[:, :, : 2 * SIDE].flatten(0, 1)
        rebuilt: Tensor = functional.normalize(in_parts(self._rebuilt, around, 1024), dim=-1)
        errors: Tensor = (rebuilt.view_as(unit) - unit).square().sum(-1)
        return errors

    def losses(self, frames: Tensor, targets: Tensor, real: Tensor, weight: Tensor | float = 1.0) -> Tensor:
        """The error; the labels aren't looked at."""
        del targets, weight
        errors: Tensor = self(frames, real)
        return errors

    def scores(self, frames: Tensor, real: Tensor) -> Tensor:
        """The slope of the smoothed error where it rises, (B, N)."""
        count = min(self.shape.smoothed, frames.shape[1])
        padded = functional.pad(self(frames, real)[:, None], (count // 2, (count - 1) // 2), mode="replicate")
        smooth = functional.avg_pool1d(padded, count, 1)[:, 0]
        (slope,) = torch.gradient(smooth, dim=1)
        return torch.relu(slope)

    def _rebuilt(self, around: Tensor) -> Tensor:
        """The hidden frame's feature from windows (S, 2 · SIDE, W): (S, D)."""
        shown = torch.cat(
            [around[:, :SIDE], self.hidden.expand(len(around), 1, -1), around[:, SIDE + 1 :]], 1
        )
        rebuilt: Tensor = self.rebuild(self.context(shown + self.place)[:, SIDE])
        return rebuilt
