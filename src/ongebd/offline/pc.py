"""PC, the pairwise boundary classifier: is what comes after a frame unlike what was before it? Needs torch.

Shou et al., ICCV 2021; facts from its public code (github.com/StanLei52/GEBD): every third frame, five
frames before and five after, the mean of either side, both behind each other, a classifier; as many
boundaries as other frames in a batch; SGD, 0.01. A score above a threshold is a boundary; neighbours are
joined in their middle.

Differs: the published classifier is linear, and its backbone is trained with it. On frozen features a
linear one can't compare two sides, so a projection and a hidden layer stand in for the trained backbone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from ongebd.baselines.network import Size, binary_losses
from ongebd.offline.network import OfflineConfig, OfflineNetwork, windows


@dataclass(frozen=True, kw_only=True)
class PcConfig(OfflineConfig):
    """The shape of a PC."""

    side: Size = 5
    """Frames before, and after."""
    width: Size = 512
    """Numbers in a projected frame, and in the hidden layer."""


class Pc(OfflineNetwork):
    """Projection of each frame; mean before and mean after; hidden layer; logit."""

    method: ClassVar[str] = "pc"
    Shape: ClassVar[type[OfflineConfig]] = PcConfig
    shape: PcConfig

    def __init__(self, config: PcConfig = PcConfig()) -> None:
        super().__init__()
        self.shape = config
        self.project = nn.Sequential(nn.Linear(config.dim, config.width), nn.ReLU())
        self.classify = nn.Sequential(
            nn.Linear(2 * config.width, config.width), nn.ReLU(), nn.Linear(config.width, 1)
        )

    def forward(self, frames: Tensor, real: Tensor) -> Tensor:
        """(B, N, D) → logits (B, N)."""
        del real  # filled-up frames look like a video that stands still
        side = self.shape.side
        around = windows(self.project(frames), side)  # (B, N, 2 · side + 1, W)
        pair = torch.cat([around[:, :, :side].mean(2), around[:, :, side + 1 :].mean(2)], dim=-1)
        logits: Tensor = self.classify(pair).squeeze(-1)
        return logits

    def losses(self, frames: Tensor, targets: Tensor, real: Tensor, weight: Tensor | float = 1.0) -> Tensor:
        """Cross-entropy in which boundaries weigh as much as all other frames of the batch together.

        The public code draws equally many of both; in expectation that is the same.
        """
        del weight
        yes, no = (targets & real).sum(), (~targets & real).sum()
        return binary_losses(self(frames, real), targets, no / yes.clamp_min(1))
