"""EfficientNet-Lite0 on a GPU, with depthwise convolutions in a kernel of our own. Needs torch.

cuDNN's depthwise convolutions take many times as long. They do the work where Triton is not available.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from ongebd.backbones.efficientnet_lite0_network import EfficientNetLite0, PaddedConvolution, clipped_at_six
from ongebd.pool.gpu.cuda import triton_available
from ongebd.pool.gpu.fused import conv_relu

_COLUMNS, _CHANNELS = 16, 32  # of a block of results


class FoldedEfficientNetLite0(nn.Module):
    """Our default backbone: bias and clip at zero in the convolution's kernel, the clip at six in another.

    In half precision most of its error comes from the rounding of the weights: layers subtract large sums
    from each other, and rounded weights shift them by nearly the same amount in every picture. Each bias
    takes that shift back, as measured on synthetic pictures with the spectrum of photographs; in float16 that
    halves the features' error.

    Args:
        dtype: The type it will compute in.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.network = EfficientNetLite0()
        self._taps: dict[PaddedConvolution, Tensor] = {}
        if dtype != torch.float32:
            with torch.no_grad():
                self.network.run(_synthetic_pictures(), clipped_at_six, partial(_take_back_shift, dtype))

    def forward(self, x: Tensor) -> Tensor:
        """(B, 3, S, S) → (B, 1280) float32."""
        if not x.is_cuda:
            features: Tensor = self.network(x)
            return features
        return self.network.run(x, self._clipped)

    def _clipped(self, conv: PaddedConvolution, x: Tensor) -> Tensor:
        if is_depthwise(conv) and triton_available():
            if conv not in self._taps:  # once, before a graph is captured
                self._taps[conv] = taps(conv)
            return depthwise_clipped(conv, self._taps[conv], x)
        return conv_relu(conv, conv.padded(x)).clamp_max_(6)


def is_depthwise(conv: PaddedConvolution) -> bool:
    """Whether each channel has its own filter."""
    return conv.groups == conv.in_channels == conv.out_channels > 1


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
        (B, C, H/stride, W/stride), channels last in memory.
    """
    from ongebd.pool.gpu.triton_kernels import depthwise_kernel

    count, channels, height, width = x.shape
    size, stride = conv.kernel_size[0], conv.stride[0]
    left, right, top, bottom = conv.sides or (int(conv.padding[0]),) * 4
    rows = (height + top + bottom - size) // stride + 1
    columns = (width + left + right - size) // stride + 1
    x = x.contiguous(memory_format=torch.channels_last)
    shape = count, channels, rows, columns
    y = torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=torch.channels_last)
    grid = count * rows, -(-columns // _COLUMNS), -(-channels // _CHANNELS)
    sizes = height, width, channels, rows, columns, top, left
    depthwise_kernel[grid](x, weight, conv.bias, y, *sizes, stride, size, _COLUMNS, _CHANNELS)
    return y


def _take_back_shift(dtype: torch.dtype, conv: PaddedConvolution, given: Tensor) -> None:
    """Take from a convolution's bias what rounding its weights adds to its results on average."""
    lost = (conv.weight - conv.weight.to(dtype)).sum(dim=(2, 3))  # (O, I / groups)
    mean = conv.padded(given).mean(dim=(0, 2, 3))  # (I,)
    if conv.bias is not None:
        conv.bias += lost @ mean if conv.groups == 1 else lost[:, 0] * mean


def _synthetic_pictures(count: int = 8, size: int = 224) -> Tensor:
    """Normalised pictures (count, 3, size, size) whose spectrum falls off as that of photographs does."""
    chance = torch.Generator().manual_seed(0)
    rows, columns = torch.fft.fftfreq(size)[:, None], torch.fft.rfftfreq(size)
    frequency: Tensor = torch.hypot(rows, columns.expand(size, -1)).clamp_min(1 / size)
    falloff = frequency.pow(-1.2)
    noise = torch.randn(count, 3, size, size, generator=chance)
    smooth = torch.fft.irfft2(torch.fft.rfft2(noise) * falloff, s=(size, size))
    smooth = smooth / smooth.std(dim=(2, 3), keepdim=True)
    brightness = 1.2 * torch.rand(count, 1, 1, 1, generator=chance) - 0.6
    pictures: Tensor = (brightness + 0.35 * smooth[:, :1] + 0.12 * smooth).clamp(-1, 1)
    return pictures
