"""Depthwise convolutions on a GPU, in a kernel of our own: cuDNN's takes many times as long. Needs torch.

Where Triton is not there, or no C compiler for its launcher, cuDNN does the work.
"""

from __future__ import annotations

import shutil
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from ongebd.backbones.efficientnet_lite0_network import PaddedConvolution

_COLUMNS, _CHANNELS = 16, 32  # of a block of results


def is_depthwise(conv: PaddedConvolution) -> bool:
    """Whether each channel has a filter of its own."""
    return conv.groups == conv.in_channels == conv.out_channels > 1


@cache
def available() -> bool:
    """Whether the kernel can be had here."""
    compiler = any(shutil.which(name) for name in ("cc", "gcc", "clang"))
    return torch.cuda.is_available() and compiler and find_spec("triton") is not None


def taps(conv: PaddedConvolution) -> Tensor:
    """The weights as the kernel reads them: (size × size, C)."""
    return conv.weight.flatten(1).t().contiguous()


def depthwise_clipped(conv: PaddedConvolution, weight: Tensor, x: Tensor) -> Tensor:
    """A depthwise convolution with its bias, kept within [0, 6]; sums are float32.

    Args:
        conv: `is_depthwise`.
        weight: `taps(conv)`.
        x: (B, C, H, W), channels last in memory.

    Returns:
        (B, C, H/stride, W/stride), likewise.
    """
    count, channels, height, width = x.shape
    size, stride = conv.kernel_size[0], conv.stride[0]
    around = conv.sides or (int(conv.padding[0]),) * 4
    left, right, top, bottom = around
    rows = (height + top + bottom - size) // stride + 1
    columns = (width + left + right - size) // stride + 1
    x = x.contiguous(memory_format=torch.channels_last)
    shape = count, channels, rows, columns
    y = torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=torch.channels_last)
    grid = count * rows, -(-columns // _COLUMNS), -(-channels // _CHANNELS)
    sizes = height, width, channels, rows, columns, top, left
    _kernel()[grid](x, weight, conv.bias, y, *sizes, stride, size, _COLUMNS, _CHANNELS)
    return y


@cache
def _kernel() -> Any:
    from ongebd.pool.gpu.depthwise_kernel import depthwise_kernel

    return depthwise_kernel
