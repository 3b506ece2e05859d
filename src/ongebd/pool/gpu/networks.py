"""Backbones as the GPU runs them: from uint8 pictures to features, with as few kernels as can be.

Normalisation layers are folded into the convolutions before these, in float32. Convolution, bias, ReLU and a
block's shortcut are then one kernel of cuDNN's each. Measured on an H100 (benchmarks/results/gpu_runtime.md),
that beats what `torch.compile` makes of the same network, and takes no time to compile.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

from ongebd.backbones import Backbone
from ongebd.backbones.onnx_backbone import OnnxBackbone
from ongebd.backbones.resnet50_network import Bottleneck, ResNet50
from ongebd.backbones.torch_backbone import TorchBackbone
from ongebd.backbones.whole_picture import LUMA, WholePicture
from ongebd.errors import ConfigError, MissingExtraError
from ongebd.pool.gpu.depthwise import available, depthwise_clipped, is_depthwise, taps

if TYPE_CHECKING:
    from ongebd.backbones.efficientnet_lite0_network import PaddedConvolution


class DeviceNetwork(nn.Module):
    """Pictures as they lie in memory, (B, S, S, 3) uint8, to features (B, D) float32.

    Args:
        body: From normalised pictures (B, 3, S, S), in the network's type, to features.
        mean: Of the pixels, one number or three.
        deviation: Likewise.
        dtype: In what the body computes.
        device: Where.
    """

    def __init__(
        self,
        body: nn.Module,
        mean: tuple[float, ...],
        deviation: tuple[float, ...],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        super().__init__()
        # Torch's own stubs lack the form with a memory format.
        self.body = body.eval().to(device, dtype).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.mean = torch.tensor(mean, device=device).view(1, -1, 1, 1)
        self.deviation = torch.tensor(deviation, device=device).view(1, -1, 1, 1)
        self.dtype = dtype

    def forward(self, pictures: Tensor) -> Tensor:
        """(B, S, S, 3) uint8 → (B, D) float32."""
        x = pictures.permute(0, 3, 1, 2)  # the channels stay last in memory
        features: Tensor = self.body(((x.float() - self.mean) / self.deviation).to(self.dtype))
        return features.float()


class FoldedResNet50(nn.Module):
    """A ResNet-50 whose normalisation is folded into its convolutions: 53 of them, and as many kernels.

    Args:
        network: In float32, with its weights; left as it is.
    """

    def __init__(self, network: ResNet50) -> None:
        super().__init__()
        self.stem = fuse_conv_bn_eval(network.conv1, network.bn1)
        self.blocks = nn.ModuleList(
            FoldedBottleneck(block)
            for name, stage in network.named_children()
            if name.startswith("layer")
            for block in stage.children()
        )

    def forward(self, x: Tensor) -> Tensor:
        """(B, 3, H, W) → (B, 2048) float32."""
        x = functional.max_pool2d(conv_relu(self.stem, x), 3, stride=2, padding=1)
        for block in self.blocks:
            x = block(x)
        return x.float().mean(dim=(2, 3))


class FoldedBottleneck(nn.Module):
    """One block: four kernels at most."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        if not isinstance(block, Bottleneck):
            raise ConfigError(f"resnet50: a block of its own kind, {type(block).__name__}, is not known here")
        self.narrow = fuse_conv_bn_eval(block.conv1, block.bn1)
        self.spatial = fuse_conv_bn_eval(block.conv2, block.bn2)
        self.widen = fuse_conv_bn_eval(block.conv3, block.bn3)
        self.shortcut: nn.Conv2d | None = None
        if block.downsample is not None:
            conv, norm = block.downsample.children()
            if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                self.shortcut = fuse_conv_bn_eval(conv, norm)
                self._take_bias(self.shortcut)

    def _take_bias(self, shortcut: nn.Conv2d) -> None:
        """Both are added up, so one bias is enough, and the shortcut needs no kernel for its own."""
        if self.widen.bias is not None and shortcut.bias is not None:
            self.widen.bias.data += shortcut.bias.data
            shortcut.bias = None

    def forward(self, x: Tensor) -> Tensor:
        """(B, I, H, W) → (B, O, H/stride, W/stride)."""
        beside = x if self.shortcut is None else self.shortcut(x)
        return conv_relu(self.widen, conv_relu(self.spatial, conv_relu(self.narrow, x)), beside)


def conv_relu(conv: nn.Conv2d, x: Tensor, added: Tensor | None = None) -> Tensor:
    """ReLU of a convolution, with another tensor added before it: one kernel on a GPU."""
    if not x.is_cuda:
        y: Tensor = conv(x)
        return functional.relu(y if added is None else y + added)
    stride, padding, dilation = conv.stride, conv.padding, conv.dilation
    if isinstance(padding, str):
        raise TypeError("a convolution's padding must be numbers here")
    if added is None:
        return torch.cudnn_convolution_relu(x, conv.weight, conv.bias, stride, padding, dilation, conv.groups)
    return torch.cudnn_convolution_add_relu(
        x, conv.weight, added, 1.0, conv.bias, stride, padding, dilation, conv.groups
    )


class FoldedEfficientNetLite0(nn.Module):
    """Our default backbone: bias and clip at zero in the convolution's kernel, the clip at six in another.

    Depthwise convolutions have a kernel of our own (`ongebd.pool.gpu.depthwise`).

    In half precision most of its error comes from the rounding of the weights: layers subtract large sums
    from each other, and rounded weights shift them by nearly the same amount in every picture. Each bias
    takes that shift back, as it is on made pictures with the spectrum of photographs; in float16 that halves
    the features' error.

    Args:
        dtype: In what it will compute.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        try:
            from ongebd.backbones.efficientnet_lite0_network import EfficientNetLite0, clipped_at_six
        except ModuleNotFoundError as problem:
            raise MissingExtraError.of(problem.name, "train") from None
        self.network = EfficientNetLite0()
        self._taps: dict[PaddedConvolution, Tensor] = {}
        if dtype != torch.float32:
            with torch.no_grad():
                self.network.run(_made_pictures(), clipped_at_six, partial(_take_back_shift, dtype))

    def forward(self, x: Tensor) -> Tensor:
        """(B, 3, 224, 224) → (B, 1280) float32."""
        if not x.is_cuda:
            features: Tensor = self.network(x)
            return features
        return self.network.run(x, self._clipped)

    def _clipped(self, conv: PaddedConvolution, x: Tensor) -> Tensor:
        if is_depthwise(conv) and available():
            if conv not in self._taps:  # once, before a graph is captured
                self._taps[conv] = taps(conv)
            return depthwise_clipped(conv, self._taps[conv], x)
        return conv_relu(conv, conv.padded(x)).clamp_max_(6)


class WholePictureNetwork(DeviceNetwork):
    """The backbone `efficientnet_lite0_whole`: the network's features, and behind them the picture's luma.

    The luma is that of `WholePicture`, from the same pixels, in float32 whatever the body computes in.

    Args:
        dtype: In what the body computes.
        device: Where.
    """

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__(*_lite0(dtype), dtype, device)

    def forward(self, pictures: Tensor) -> Tensor:
        """(B, S, S, 3) uint8 → (B, D + 3136) float32."""
        return torch.cat([super().forward(pictures), small_luma(pictures)], dim=1)


def small_luma(pictures: Tensor) -> Tensor:
    """The luma of square pictures at 56 × 56, 0 to 255: (B, S, S, 3) uint8 → (B, 3136) float32."""
    count, size = pictures.shape[:2]
    step = size // LUMA
    rows = pictures.view(count, LUMA, step, size, 3).sum(2, dtype=torch.int32).float()
    red, green, blue = rows.unbind(-1)  # (B, 56, S) each
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    means: Tensor = luma.view(count, LUMA, LUMA, step).sum(-1) / step**2
    return means.flatten(1)


def _lite0(dtype: torch.dtype) -> tuple[FoldedEfficientNetLite0, tuple[float], tuple[float]]:
    """The default backbone for that type, with mean and deviation of its pixels."""
    body = FoldedEfficientNetLite0(dtype)
    from ongebd.backbones.efficientnet_lite0_network import MEAN, SCALE

    return body, (MEAN,), (SCALE,)


def _take_back_shift(dtype: torch.dtype, conv: PaddedConvolution, given: Tensor) -> None:
    """Change a convolution's bias by what rounding its weights adds to its results in the mean."""
    lost = (conv.weight - conv.weight.to(dtype)).sum(dim=(2, 3))  # (O, I / groups)
    mean = conv.padded(given).mean(dim=(0, 2, 3))  # (I,)
    if conv.bias is not None:
        conv.bias += lost @ mean if conv.groups == 1 else lost[:, 0] * mean


def _made_pictures(count: int = 8, size: int = 224) -> Tensor:
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


def device_network(backbone: Backbone, device: torch.device, dtype: torch.dtype) -> DeviceNetwork:
    """A backbone for the GPU, with weights of its own; the backbone is left as it is.

    Args:
        backbone: EfficientNet-Lite0, of the centre or the whole picture, ResNet-50 or TSN, or another
            `TorchBackbone`.
        device: Where it shall compute.
        dtype: In what.

    Raises:
        ConfigError: It is none of them.
        MissingExtraError: `onnx` is needed and not installed.
    """
    if isinstance(backbone, WholePicture) and backbone.name == "efficientnet_lite0_whole":
        return WholePictureNetwork(dtype, device)
    if isinstance(backbone, OnnxBackbone) and backbone.name == "efficientnet_lite0":
        return DeviceNetwork(*_lite0(dtype), dtype, device)
    if isinstance(backbone, TorchBackbone):
        network = copy.deepcopy(backbone.network).cpu().float()
        body = FoldedResNet50(network) if isinstance(network, ResNet50) else network
        mean, deviation = backbone.normalisation
        return DeviceNetwork(body, mean, deviation, dtype, device)
    raise ConfigError(f"{backbone.name}: there is no GPU form of this backbone; leave out device")
