"""BasicGEBD and EfficientGEBD: a map of how alike neighbours are, read by a small ResNet. Needs torch.

Zheng, Zhang, Wang, Song, Huang and Yang: Rethinking the Architecture Design for Efficient Generic Event
Boundary Detection. ACM MM 2024; facts from its public code (github.com/Ziwei-Zheng/EfficientGEBD). 17
frames around each one; a depth-wise convolution; cosines of every two; a ResNet of four blocks; three
temporal convolutions; soft targets, σ = 1; SGD, 0.01. BasicGEBD ends there. EfficientGEBD adds differences
of neighbouring frames (the difference mixer), a second map of them, an encoder of the frames themselves,
and gates between both.

Differs: the authors' best variants read several levels of their backbone, which a store doesn't have; these
are their variants on the last level, L4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ongebd.baselines.network import Size
from ongebd.offline.maps import FrameClassifier, cosines, in_parts, map_encoder, soft_bce
from ongebd.offline.network import OfflineConfig, OfflineNetwork, bells, windows


@dataclass(frozen=True, kw_only=True)
class GebdConfig(OfflineConfig):
    """The shape of both."""

    width: Size = 512
    """Numbers in a frame."""
    side: Size = 8
    """Frames on either side."""


class BasicGebd(OfflineNetwork):
    """Projection, map, ResNet, classifier."""

    method: ClassVar[str] = "basicgebd"
    Shape: ClassVar[type[OfflineConfig]] = GebdConfig
    shape: GebdConfig
    maps: ClassVar[int] = 1

    def __init__(self, config: GebdConfig = GebdConfig()) -> None:
        super().__init__()
        self.shape, width = config, config.width
        self.project = nn.Sequential(nn.Linear(config.dim, width), nn.ReLU())
        self.near = nn.Conv1d(width, width, 3, padding=1, groups=width)
        self.read = map_encoder(self.maps, width, (1, 1, 2, 2))
        self.classify = FrameClassifier(width)

    def forward(self, frames: Tensor, real: Tensor) -> Tensor:
        """(B, N, D) → logits (B, N)."""
        del real  # filled-up frames look like a video that stands still
        around = windows(self.project(frames), self.shape.side)
        known = in_parts(self.seen, around.flatten(0, 1), 256).view(*frames.shape[:2], -1)
        logits: Tensor = self.classify(known)
        return logits

    def seen(self, around: Tensor) -> Tensor:
        """What is known of the middle of windows (S, L, W), (S, W)."""
        found: Tensor = self.read(cosines(self.smoothed(around))).mean((-1, -2))
        return found

    def smoothed(self, around: Tensor) -> Tensor:
        """Half each frame, half its surroundings."""
        return 0.5 * (torch.relu(self.near(around.transpose(1, 2))).transpose(1, 2) + around)

    def losses(self, frames: Tensor, targets: Tensor, real: Tensor, weight: Tensor | float = 1.0) -> Tensor:
        """Cross-entropy with soft targets."""
        del weight
        return soft_bce(self(frames, real), bells(targets & real))


class EfficientGebd(BasicGebd):
    """The same with differences, their map and their encoder."""

    method: ClassVar[str] = "efficientgebd"
    maps: ClassVar[int] = 2

    def __init__(self, config: GebdConfig = GebdConfig()) -> None:
        super().__init__(config)
        width = config.width
        self.normed = nn.BatchNorm1d(width)
        self.mix = nn.ModuleList(
            nn.Sequential(nn.Conv1d(width, width, 1), nn.BatchNorm1d(width), nn.GELU()) for _ in range(2)
        )
        self.encode = nn.Sequential(
            *(
                layer
                for _ in range(3)
                for layer in (
                    nn.Conv1d(width, width, 3, padding=1, groups=width),
                    nn.Conv1d(width, width, 1),
                    nn.BatchNorm1d(width),
                    nn.ReLU(),
                )
            )
        )
        small = max(1, width // 4)
        self.gates = nn.ModuleList(
            nn.Sequential(
                nn.Linear(width, small, bias=False),
                nn.ReLU(),
                nn.Linear(small, width, bias=False),
                nn.Sigmoid(),
            )
            for _ in range(2)
        )
        self.fuse = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU())

    def seen(self, around: Tensor) -> Tensor:
        """As in `BasicGebd`."""
        plain = self.smoothed(around)
        found = plain.transpose(1, 2)  # (S, W, L)
        normed = self.normed(found)
        moved = functional.pad(normed.diff(dim=2), (1, 0), mode="replicate")
        mixed = found + self.mix[0](normed) + self.mix[1](moved)
        maps = torch.cat([cosines(plain), cosines(mixed.transpose(1, 2))], dim=1)
        by_map, by_frame = self.read(maps).mean((-1, -2)), self.encode(mixed).mean(-1)  # (S, W) each
        pair = torch.cat([by_map * self.gates[0](by_frame), by_frame * self.gates[1](by_map)], dim=1)
        fused: Tensor = self.fuse(pair)
        return fused
