"""BMN: all segments of a video at once, each with how likely it begins, ends and is one event. Needs torch.

Lin, Liu, Li, Ding and Wen: BMN: Boundary-Matching Network for Temporal Action Proposal Generation. ICCV
2019; facts from public code (github.com/JJBOY/BMN-Boundary-Matching-Network). Two temporal convolutions;
from them start and end of each frame, and for each segment 32 points from a half of its length before it to
a half after it, a convolution over them, two more over the map of segments, and two scores: is it an event,
and how far does it overlap with one. Losses: cross-entropies in which few positives weigh as much as the
rest, and 10 · squared error of the overlap. Shou et al. (ICCV 2021) use it in two ways: *BMN* takes the
ends of good segments as boundaries, *BMN-StartEnd* the frames with a high start or end score.

Differs: an event lasts from one labelled boundary to the next; the published training set has actions only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from ongebd.baselines.network import Size, binary_losses
from ongebd.offline.network import OfflineConfig, OfflineNetwork, centres

OVERLAP_WEIGHT = 10.0
EVENT = 0.9
"""A segment that overlaps so far is an event."""


@dataclass(frozen=True, kw_only=True)
class BmnConfig(OfflineConfig):
    """The shape of a BMN."""

    width: Size = 128
    """Numbers in a frame; twice and four times that are in between."""
    points: Size = 32
    """Of a segment."""


class Bmn(OfflineNetwork):
    """Convolutions; start and end; the map of segments."""

    method: ClassVar[str] = "bmn"
    Shape: ClassVar[type[OfflineConfig]] = BmnConfig
    scope: ClassVar[int | None] = 1
    shape: BmnConfig

    def __init__(self, config: BmnConfig = BmnConfig()) -> None:
        super().__init__()
        self.shape, width = config, config.width
        self.base = nn.Sequential(_conv(config.dim, 2 * width), nn.ReLU(), _conv(2 * width, width), nn.ReLU())
        self.ends = nn.Sequential(
            _conv(width, 2 * width),
            nn.ReLU(),
            _conv(2 * width, 2 * width),
            nn.ReLU(),
            nn.Conv1d(2 * width, 2, 1),
        )
        self.along = nn.Sequential(nn.Linear(config.points * width, 4 * width), nn.ReLU())
        self.across = nn.Sequential(
            nn.Conv2d(4 * width, width, 1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 2, 1),
        )
        first, last = torch.triu_indices(config.length, config.length)
        reach = (last - first + 1) / 2
        step = torch.linspace(0, 1, config.points)
        points = (first - reach)[:, None] + step * (last - first + 2 * reach)[:, None]  # (segments, points)
        place = torch.arange(config.length)[:, None]
        near = (1 - (points.clamp(0, config.length - 1).flatten() - place).abs()).clamp_min(0)
        self.segments: Tensor
        self.sampling: Tensor  # a GPU is far quicker at this product than at the gradient of an index
        self.register_buffer("segments", torch.stack([first, last]), persistent=False)
        self.register_buffer("sampling", near, persistent=False)  # (N, segments · points)

    def forward(self, frames: Tensor, real: Tensor) -> Tensor:
        """(B, N, D) → how good the best segment is that begins or ends with each frame, as a logit (B, N)."""
        return torch.logit(self.scores(frames, real).clamp(1e-6, 1 - 1e-6))

    def scores(self, frames: Tensor, real: Tensor) -> Tensor:
        """The same as a probability: start · end · event · overlap."""
        ends, maps = self._judged(frames, real)
        first, last = self.segments
        ends, segments = ends.sigmoid(), maps.sigmoid().prod(1)
        good = segments * ends[:, 0, first] * ends[:, 1, last]  # (B, segments)
        good = good * real[:, last]
        best = torch.zeros_like(ends[:, 0])
        for edge in (first, last):
            best = best.scatter_reduce(1, edge.expand_as(good), good, "amax")
        return best

    def losses(self, frames: Tensor, targets: Tensor, real: Tensor, weight: Tensor | float = 1.0) -> Tensor:
        """Start and end at each frame; at each frame of a clip, the loss of the clip's map."""
        del weight
        ends, maps = self._judged(frames, real)
        near = targets & real
        each = sum(_balanced(ends[:, part], near, real) for part in range(2))
        overlap, last = self._overlap(centres(near), real), self.segments[1]
        there = real[:, last]
        kind = _balanced(maps[:, 0], overlap > EVENT, there) * there
        apart = (maps[:, 1].sigmoid() - overlap).square() * there
        of_map = (kind + OVERLAP_WEIGHT * apart).sum(1) / there.sum(1).clamp_min(1)
        total: Tensor = each + of_map[:, None]
        return total

    def _judged(self, frames: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """Start and end (B, 2, N), event and overlap of each segment (B, 2, segments), as logits."""
        found = self.base((frames * real[..., None]).transpose(1, 2))  # (B, W, N)
        at = (found @ self.sampling).unflatten(-1, (-1, self.shape.points))  # (B, W, segments, points)
        known = self.along(at.permute(0, 2, 1, 3).flatten(2))  # (B, segments, 4 W)
        first, last = self.segments
        square = known.new_zeros(len(frames), found.shape[-1], found.shape[-1], known.shape[-1])
        square[:, first, last] = known
        maps = self.across(square.permute(0, 3, 1, 2))
        return self.ends(found), maps[:, :, first, last]

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _overlap(self, middle: Tensor, real: Tensor) -> Tensor:
        """How far each segment overlaps with the event that it overlaps with most, (B, segments)."""
        first, last = self.segments
        event = middle.long().cumsum(1)
        best = torch.zeros_like(real[:, first], dtype=torch.float32)
        length = (last - first + 1).float()
        for number in range(int(event.max()) + 1 if event.numel() else 0):
            own = ((event == number) & real).long()
            total = nn.functional.pad(own.cumsum(1), (1, 0))
            both = total[:, last + 1] - total[:, first]
            best = torch.maximum(best, both / (length + own.sum(1, keepdim=True) - both))
        return best


class BmnStartEnd(Bmn):
    """BMN whose boundaries are the frames with a high start or end score."""

    method: ClassVar[str] = "bmn-startend"

    def scores(self, frames: Tensor, real: Tensor) -> Tensor:
        """The higher of both, (B, N)."""
        found = self.base((frames * real[..., None]).transpose(1, 2))
        highest: Tensor = self.ends(found).sigmoid().amax(1)
        return highest


def _balanced(logits: Tensor, truth: Tensor, there: Tensor) -> Tensor:
    """Cross-entropy of each, in which positives weigh as much as the rest together."""
    yes, no = (truth & there).sum().clamp_min(1), (~truth & there).sum().clamp_min(1)
    total = yes + no
    return binary_losses(logits, truth) * torch.where(truth, total / (2 * yes), total / (2 * no))


def _conv(before: int, after: int) -> nn.Conv1d:
    return nn.Conv1d(before, after, 3, padding=1)
