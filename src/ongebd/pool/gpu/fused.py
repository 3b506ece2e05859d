"""Convolutions with what follows them in one kernel, and a ResNet-50 made of these. Needs torch.

Normalisation layers are folded into the convolutions before them, in float32. A convolution, its bias, ReLU
and a block's shortcut are then one kernel of cuDNN's. On an H100 that beats `torch.compile` of the same
network (benchmarks/results/gpu_runtime.md), and it needs no time to compile.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

from ongebd.backbones.resnet50 import Bottleneck, ResNet50


def conv_relu(conv: nn.Conv2d, x: Tensor, added: Tensor | None = None) -> Tensor:
    """ReLU of a convolution, with another tensor added before it: one kernel on a GPU."""
    if not x.is_cuda:
        y: Tensor = conv(x)
        return functional.relu(y if added is None else y + added)
    padding: Any = conv.padding
    settings = conv.stride, padding, conv.dilation, conv.groups
    if added is None:
        return torch.cudnn_convolution_relu(x, conv.weight, conv.bias, *settings)
    return torch.cudnn_convolution_add_relu(x, conv.weight, added, 1.0, conv.bias, *settings)


class FoldedResNet50(nn.Module):
    """A ResNet-50 whose normalisation is folded into its convolutions: 53 of them, and as many kernels.

    Args:
        network: In float32, with its weights; it is not changed.
    """

    def __init__(self, network: ResNet50) -> None:
        super().__init__()
        self.stem = fuse_conv_bn_eval(network.conv1, network.bn1)
        self.blocks = nn.ModuleList(
            FoldedBottleneck(block) for block in network.modules() if isinstance(block, Bottleneck)
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, 3, H, W) → (B, 2048) float32."""
        x = functional.max_pool2d(conv_relu(self.stem, x), 3, stride=2, padding=1)
        for block in self.blocks:
            x = block(x)
        return x.float().mean(dim=(2, 3))


class FoldedBottleneck(nn.Module):
    """One block: four kernels at most."""

    def __init__(self, block: Bottleneck) -> None:
        super().__init__()
        self.narrow = fuse_conv_bn_eval(block.conv1, block.bn1)
        self.spatial = fuse_conv_bn_eval(block.conv2, block.bn2)
        self.widen = fuse_conv_bn_eval(block.conv3, block.bn3)
        self.shortcut: Any = None
        if block.downsample is not None:
            layers: Any = block.downsample
            self.shortcut = fuse_conv_bn_eval(*layers)
            # The two are added up, so one bias is enough, and the shortcut needs no kernel for its bias.
            bias: Any = self.widen.bias
            bias.data += self.shortcut.bias.data
            self.shortcut.bias = None

    def forward(self, x: Tensor) -> Tensor:
        """(B, I, H, W) → (B, O, H/stride, W/stride)."""
        added = x if self.shortcut is None else self.shortcut(x)
        return conv_relu(self.widen, conv_relu(self.spatial, conv_relu(self.narrow, x)), added)
