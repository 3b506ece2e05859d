"""Maps of how alike the frames around a place are, and what reads them. Needs torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


def cosines(frames: Tensor, groups: int = 1) -> Tensor:
    """Cosine of every two frames (S, L, W), in groups of their numbers: maps (S, G, L, L)."""
    parts = frames.view(*frames.shape[:2], groups, -1).transpose(1, 2)  # (S, G, L, W / G)
    unit = functional.normalize(parts, dim=-1)
    return unit @ unit.transpose(-1, -2)


def sines(frames: int, width: int) -> Tensor:
    """Sinusoids of each place, (frames, W)."""
    rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    angle = torch.arange(frames)[:, None] * rate
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :width]


def soft_bce(logits: Tensor, soft: Tensor) -> Tensor:
    """Cross-entropy with soft targets, of each."""
    return functional.binary_cross_entropy_with_logits(logits, soft, reduction="none")


def in_parts(module: Callable[[Tensor], Tensor], frames: Tensor, size: int) -> Tensor:
    """A module on so many rows at a time, which bounds memory; in training on all, for its statistics."""
    if torch.is_grad_enabled() or len(frames) <= size:
        return module(frames)
    return torch.cat([module(part) for part in torch.split(frames, size)])


class _Block(nn.Module):
    """Two convolutions with a way around them."""

    def __init__(self, before: int, after: int, stride: int, norm: Callable[[int], nn.Module]) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            norm(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            norm(after),
        )
        self.around: nn.Module = nn.Identity()
        if stride != 1 or before != after:
            self.around = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), norm(after))

    def forward(self, maps: Tensor) -> Tensor:
        return torch.relu(self.first(maps) + self.around(maps))


def map_encoder(
    channels: int, width: int, strides: Sequence[int], norm: Callable[[int], nn.Module] = nn.BatchNorm2d
) -> nn.Sequential:
    """A ResNet of four blocks, W / 8 to W numbers wide: (S, C, L, L) → (S, W, L', L')."""
    widths = [max(1, width // 8), max(1, width // 4), max(1, width // 2), width]
    layers: list[nn.Module] = [
        nn.Conv2d(channels, widths[0], 3, padding=1, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
    ]
    before = widths[0]
    for after, stride in zip(widths, strides, strict=True):
        layers.append(_Block(before, after, stride, norm))
        before = after
    return nn.Sequential(*layers)


class FrameClassifier(nn.Sequential):
    """Logits (B, N) from what is known of each frame, (B, N, W), by three convolutions."""

    def __init__(self, width: int) -> None:
        super().__init__(
            nn.Conv1d(width, width, 3, padding=1),
            nn.PReLU(),
            nn.Conv1d(width, width, 3, padding=1),
            nn.PReLU(),
            nn.Conv1d(width, 1, 1),
        )

    def forward(self, known: Tensor) -> Tensor:
        known = known.transpose(1, 2)
        for layer in self:
            known = layer(known)
        return known.squeeze(1)
