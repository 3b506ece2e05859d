"""ResNet-50 as torchvision builds it, without its classifier.

It is written out here because torchvision is compiled against one exact torch, and can't even be imported
with another. The parameters have torchvision's names, so any of its ResNet-50 checkpoints fits. A test checks
that both agree if torchvision is there.

He et al., Deep Residual Learning for Image Recognition, 2016; with the stride of 2 in the 3×3 convolution of
a block (called v1.5), as in torchvision and mmaction2.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

DIM = 2048
_EXPANSION = 4
_STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # width, blocks, stride of the first


class Bottleneck(nn.Module):
    """1×1, 3×3, 1×1 convolutions beside a shortcut: (B, I, H, W) → (B, 4·width, H/stride, W/stride)."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * _EXPANSION
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        """(B, I, H, W) → (B, 4·width, H/stride, W/stride)."""
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        shortcut = x if self.downsample is None else self.downsample(x)
        result: Tensor = self.relu(y + shortcut)
        return result


class ResNet50(nn.Module):
    """The convolutions of ResNet-50 and the mean over the picture; 23,508,032 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        inputs = 64
        for number, (width, blocks, stride) in enumerate(_STAGES, start=1):
            layers = [Bottleneck(inputs, width, stride)]
            inputs = width * _EXPANSION
            layers += [Bottleneck(inputs, width, 1) for _ in range(blocks - 1)]
            self.add_module(f"layer{number}", nn.Sequential(*layers))

    def forward(self, x: Tensor) -> Tensor:
        """Normalised pictures (B, 3, H, W) → features (B, 2048)."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))  # (B, 64, H/4, W/4)
        for number in range(1, len(_STAGES) + 1):
            x = self.get_submodule(f"layer{number}")(x)
        return torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1)  # (B, 2048, H/32, W/32) → (B, 2048)
