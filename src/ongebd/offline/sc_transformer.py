"""SC-Transformer, and LCVSL's head: each frame among its neighbours, then how alike those are. Needs torch.

Li, Wang, Hong, Wang, Zhang, Luo and Wen: Structured Context Transformer for Generic Event Boundary
Detection. 2022; facts from its public code (github.com/lufficc/SC-Transformer). Four temporal convolutions;
eight frames before, the frame and eight after; six transformer layers over them; cosines of every two in
four groups; four convolutions of 5 × 5, averaged; three temporal convolutions; soft targets, σ = 1; SGD,
0.01. (The paper shares contexts between frames to save work; the windows are the same.)

*LCVSL* (Zhang, Gu, Li, Luo and Fan: Local Compressed Video Stream Learning for Generic Event Boundary
Detection. IJCV 2024; github.com/GX77/LCVSL) has an LSTM of two layers for the transformer. Differs: its
other half, which makes features of compressed video from motion vectors and residuals, can't stand on a
store.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from torch import Tensor, nn

from ongebd.baselines.network import Layers, Size
from ongebd.offline.maps import FrameClassifier, cosines, in_parts, soft_bce
from ongebd.offline.network import OfflineConfig, OfflineNetwork, bells, windows


@dataclass(frozen=True, kw_only=True)
class ScConfig(OfflineConfig):
    """The shape of an SC-Transformer."""

    width: Size = 512
    """Numbers in a frame."""
    side: Size = 8
    """Frames on either side."""
    layers: Layers = 6
    """Of the transformer."""
    heads: Size = 8
    """Attention heads."""
    ffn: Size = 2048
    """Width of the feed-forward network."""
    groups: Size = 4
    """Groups of cosines."""
    shared_by: ClassVar[tuple[str, ...]] = ("heads", "groups")


class ScTransformer(OfflineNetwork):
    """Projection, convolutions, context, cosines, convolutions, classifier."""

    method: ClassVar[str] = "sc-transformer"
    Shape: ClassVar[type[OfflineConfig]] = ScConfig
    shape: ScConfig

    def __init__(self, config: ScConfig = ScConfig()) -> None:
        super().__init__()
        self.shape, width = config, config.width
        self.project = nn.Linear(config.dim, width)
        embed = [
            layer
            for _ in range(4)
            for layer in (nn.Conv1d(width, width, 3, padding=1), nn.BatchNorm1d(width), nn.PReLU())
        ]
        self.embed = nn.Sequential(*embed)
        self.context = self.make_context()
        channels = [config.groups, width, width, width, width]
        self.read = nn.Sequential(
            *(
                layer
                for before, after in pairwise(channels)
                for layer in (
                    nn.Conv2d(before, after, 5, padding=2, bias=False),
                    nn.BatchNorm2d(after),
                    nn.ReLU(),
                )
            )
        )
        self.classify = FrameClassifier(width)

    def make_context(self) -> nn.Module:
        """What looks at the frames of a window."""
        shape = self.shape
        layer = nn.TransformerEncoderLayer(shape.width, shape.heads, shape.ffn, 0.1, "gelu", batch_first=True)
        return nn.TransformerEncoder(layer, shape.layers, enable_nested_tensor=False)

    def forward(self, frames: Tensor, real: Tensor) -> Tensor:
        """(B, N, D) → logits (B, N)."""
        del real  # filled-up frames look like a video that stands still
        embedded = self.embed(self.project(frames).transpose(1, 2)).transpose(1, 2)
        around = windows(embedded, self.shape.side).flatten(0, 1)
        logits: Tensor = self.classify(in_parts(self.seen, around, 64).view(*frames.shape[:2], -1))
        return logits

    def seen(self, around: Tensor) -> Tensor:
        """What is known of the middle of windows (S, L, W), (S, W)."""
        found: Tensor = self.read(cosines(self.in_context(around), self.shape.groups)).mean((-1, -2))
        return found

    def in_context(self, around: Tensor) -> Tensor:
        """Each frame of the windows with what it knows of the others."""
        found: Tensor = self.context(around)
        return found

    def losses(self, frames: Tensor, targets: Tensor, real: Tensor, weight: Tensor | float = 1.0) -> Tensor:
        """Cross-entropy with soft targets."""
        del weight
        return soft_bce(self(frames, real), bells(targets & real))


class Lcvsl(ScTransformer):
    """The same with an LSTM."""

    method: ClassVar[str] = "lcvsl"

    def make_context(self) -> nn.Module:
        """As in `ScTransformer`."""
        return nn.LSTM(self.shape.width, self.shape.width, 2, batch_first=True)

    def in_context(self, around: Tensor) -> Tensor:
        """As in `ScTransformer`."""
        found: Tensor = self.context(around)[0]
        return found
