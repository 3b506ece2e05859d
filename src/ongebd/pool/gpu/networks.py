"""Backbones as the GPU runs them: from uint8 pictures to features. Needs torch."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from ongebd.backbones import Backbone
from ongebd.backbones.onnx_backbone import LUMA, OnnxBackbone, WholePicture
from ongebd.backbones.resnet50 import ResNet50
from ongebd.backbones.torch_backbone import TorchBackbone
from ongebd.errors import ConfigError, MissingExtraError
from ongebd.pool.gpu.fused import FoldedResNet50

Normalisation = tuple[tuple[float, ...], tuple[float, ...]]
"""Mean and deviation, one number or three each."""


class DeviceNetwork(nn.Module):
    """Pictures, (B, S, S, 3) uint8, to features, (B, D) float32.

    Args:
        body: From normalised pictures (B, 3, S, S), in the network's type, to features.
        pixels: Their mean and deviation.
        dtype: What the body computes in.
        device: Where.
        luma: Whether the pictures' `small_luma` follows the features.
    """

    def __init__(
        self, body: nn.Module, pixels: Normalisation, dtype: torch.dtype, device: torch.device, luma: bool
    ) -> None:
        super().__init__()
        mean, deviation = pixels
        # Torch's own stubs lack the form with a memory format.
        self.body = body.eval().to(device, dtype).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.mean = torch.tensor(mean, device=device).view(1, -1, 1, 1)
        self.deviation = torch.tensor(deviation, device=device).view(1, -1, 1, 1)
        self.dtype = dtype
        self.luma = luma

    def forward(self, pictures: Tensor) -> Tensor:
        """(B, S, S, 3) uint8 → (B, D) float32, or (B, D + 3136) with luma."""
        x = pictures.permute(0, 3, 1, 2)  # the channels stay last in memory
        features: Tensor = self.body(((x.float() - self.mean) / self.deviation).to(self.dtype)).float()
        return torch.cat([features, small_luma(pictures)], dim=1) if self.luma else features


def small_luma(pictures: Tensor) -> Tensor:
    """The luma of `WholePicture`, 56 × 56, 0 to 255: (B, S, S, 3) uint8 → (B, 3136) float32."""
    count, size = pictures.shape[:2]
    step = size // LUMA
    rows = pictures.view(count, LUMA, step, size, 3).sum(2, dtype=torch.int32).float()
    red, green, blue = rows.unbind(-1)  # (B, 56, S) each
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    means: Tensor = luma.view(count, LUMA, LUMA, step).sum(-1) / step**2
    return means.flatten(1)


def device_network(backbone: Backbone, device: torch.device, dtype: torch.dtype) -> DeviceNetwork:
    """A backbone for the GPU, with its own copy of the weights.

    It may be EfficientNet-Lite0, of the centre or the whole picture, or any `TorchBackbone`.

    Raises:
        ConfigError: The backbone has no GPU form.
        MissingExtraError: `onnx` is needed and not installed.
    """
    whole = isinstance(backbone, WholePicture) and backbone.name == "efficientnet_lite0_whole"
    if whole or (isinstance(backbone, OnnxBackbone) and backbone.name == "efficientnet_lite0"):
        try:
            from ongebd.backbones.efficientnet_lite0_network import MEAN, SCALE
            from ongebd.pool.gpu.lite0 import FoldedEfficientNetLite0
        except ModuleNotFoundError as problem:
            raise MissingExtraError.of(problem.name, "train") from None
        return DeviceNetwork(FoldedEfficientNetLite0(dtype), ((MEAN,), (SCALE,)), dtype, device, whole)
    if isinstance(backbone, TorchBackbone):
        network = copy.deepcopy(backbone.network).cpu().float()
        body = FoldedResNet50(network) if isinstance(network, ResNet50) else network
        return DeviceNetwork(body, backbone.normalisation, dtype, device, luma=False)
    raise ConfigError(f"{backbone.name}: this backbone can't run on a GPU; leave out device")
