"""DDM-Net: dense difference maps, and attention between them and the frames. Needs torch.

Tang, Liu, Qian, Wu and Wang: Progressive Attention on Multi-Level Dense Difference Maps for Generic Event
Boundary Detection. CVPR 2022; facts from its public code (github.com/MCG-NJU/DDM). Five frames before and
five after; each level of features smoothed over short, middle and long times; a map of the distances of
every two frames for each; a ResNet of four blocks; attention along the map; then six decoder layers with
five queries on the frames and on the map, and six between both, either way; a verdict after each of the
last. A score is a boundary if it is the highest among five on either side.

Differs: a store has one of the authors' three levels, so there are three maps instead of nine. The losses
of all verdicts are averaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ongebd.baselines.network import Layers, Size, binary_losses
from ongebd.offline.maps import in_parts, map_encoder, sines
from ongebd.offline.network import OfflineConfig, OfflineNetwork, windows


@dataclass(frozen=True, kw_only=True)
class DdmConfig(OfflineConfig):
    """The shape of a DDM-Net."""

    width: Size = 512
    """Numbers in a frame."""
    side: Size = 5
    """Frames before, and after."""
    layers: Layers = 6
    """Of each decoder."""
    heads: Size = 8
    """Attention heads."""
    ffn: Size = 2048
    """Width of the feed-forward networks."""
    queries: Size = 5
    """Of each decoder."""
    shared_by: ClassVar[tuple[str, ...]] = ("heads",)


class DdmNet(OfflineNetwork):
    """Frames and maps, each through its decoder, then each through the other."""

    method: ClassVar[str] = "ddm-net"
    Shape: ClassVar[type[OfflineConfig]] = DdmConfig
    scope: ClassVar[int | None] = 5
    shape: DdmConfig

    def __init__(self, config: DdmConfig = DdmConfig()) -> None:
        super().__init__()
        self.shape, width = config, config.width
        self.project = nn.Sequential(nn.Linear(config.dim, width), nn.ReLU(), nn.Linear(width, width))
        self.short, self.middle, self.long = (_twice(width, kernel) for kernel in (1, 3, 3))
        self.read = map_encoder(3, width, (1, 1, 1, 1), lambda size: nn.InstanceNorm2d(size, affine=True))
        self.frame_key = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.map_key = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.attend = nn.Sequential(nn.Linear(width, 1), nn.ReLU())
        self.decode = nn.Sequential(
            _conv(width, 5),
            nn.ReLU(),
            _conv(width, 5),
            nn.ReLU(),
            _conv(width, 1),
            nn.ReLU(),
            _conv(width, 1),
        )
        self.place: Tensor
        self.register_buffer("place", sines(2 * config.side, width), persistent=False)
        self.queries = nn.Parameter(torch.zeros(2, config.queries, width))
        nn.init.normal_(self.queries)
        self.within = nn.ModuleList(self._decoder() for _ in range(2))
        self.between = nn.ModuleList(self._decoder() for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))
        self.heads = nn.ModuleList(nn.Linear(width, 1) for _ in range(2))
        self.share = nn.Parameter(torch.zeros(config.layers))

    def forward(self, frames: Tensor, real: Tensor) -> Tensor:
        """(B, N, D) → logits (B, N)."""
        return self._verdicts(frames, real)[..., -1, 0]

    def losses(self, frames: Tensor, targets: Tensor, real: Tensor, weight: Tensor | float = 1.0) -> Tensor:
        """Cross-entropy of all verdicts, in which boundaries weigh as much as the other frames together."""
        del weight
        yes, no = (targets & real).sum(), (~targets & real).sum()
        verdicts = self._verdicts(frames, real)
        all_targets = targets[..., None, None].expand_as(verdicts)
        return binary_losses(verdicts, all_targets, no / yes.clamp_min(1)).mean((-1, -2))

    def _verdicts(self, frames: Tensor, real: Tensor) -> Tensor:
        """After each layer, by both, by the frames and by the map: (B, N, layers, 3)."""
        del real  # filled-up frames look like a video that stands still
        side = self.shape.side
        around = windows(self.project(frames), side)
        around = torch.cat([around[:, :, :side], around[:, :, side + 1 :]], dim=2).flatten(0, 1)
        return in_parts(self._judged, around, 256).view(*frames.shape[:2], -1, 3)

    def _judged(self, around: Tensor) -> Tensor:
        """Verdicts on windows (S, 2 · side, W): (S, layers, 3)."""
        found = around.transpose(1, 2)  # (S, W, L)
        middle = 0.5 * (self.middle(found) + found)
        scales = [0.5 * (self.short(found) + found), middle, 0.5 * (self.long(middle) + middle)]
        levels = torch.stack(scales, dim=1).transpose(2, 3)  # (S, 3, L, W)
        maps = self.read(functional.instance_norm(-torch.cdist(levels.detach(), levels)))  # (S, W, L, L)
        maps = maps.permute(0, 2, 3, 1)
        key = torch.tanh(self.frame_key(around)[:, :, None] + self.map_key(maps))
        along = (self.attend(key).softmax(dim=2) * maps).sum(2)  # (S, L, W)
        seen = self.decode(along.transpose(1, 2)).transpose(1, 2)
        by = [self._decoded(number, memory)[-1] for number, memory in enumerate((around, seen))]
        crossed = [self._crossed(0, by[1], by[0]), self._crossed(1, by[0], by[1])]
        logits = [
            head(torch.stack(layers, 1).mean(2)).squeeze(-1)
            for head, layers in zip(self.heads, crossed, strict=True)
        ]
        share = torch.sigmoid(self.share)
        return torch.stack([(1 - share) * logits[0] + share * logits[1], *logits], dim=-1)

    def _decoded(self, number: int, memory: Tensor) -> list[Tensor]:
        """The queries after each layer on a memory (S, L, W)."""
        queries = self.queries[number].expand(len(memory), -1, -1)
        return _through(self.within[number], self.norms[number], queries, memory + self.place)

    def _crossed(self, number: int, queries: Tensor, memory: Tensor) -> list[Tensor]:
        return _through(self.between[number], self.norms[2 + number], queries, memory)

    def _decoder(self) -> nn.ModuleList:
        shape = self.shape
        return nn.ModuleList(
            nn.TransformerDecoderLayer(shape.width, shape.heads, shape.ffn, 0.1, batch_first=True)
            for _ in range(shape.layers)
        )


def _through(layers: nn.Module, norm: nn.Module, queries: Tensor, memory: Tensor) -> list[Tensor]:
    found = []
    for layer in layers.children():
        queries = layer(queries, memory)
        found.append(norm(queries))
    return found


def _conv(width: int, kernel: int) -> nn.Conv1d:
    return nn.Conv1d(width, width, kernel, padding=kernel // 2)


def _twice(width: int, kernel: int) -> nn.Sequential:
    return nn.Sequential(_conv(width, kernel), nn.ReLU(), _conv(width, kernel), nn.ReLU())
