"""The paper's backbones, ResNet-50 networks in PyTorch: 2048 numbers a frame, 4.1 G multiply-adds.

`resnet50` is torchvision's IMAGENET1K_V1 (BSD-3-Clause; V2 comes from another recipe, and the paper doesn't
use it). `tsn-kinetics` and `tsn-sthv2` are mmaction2's TSN (Apache-2.0), trained on the actions of Kinetics
or of Something-Something v2. In mmaction2 a layer is a convolution and its normalisation in one module:
`backbone.layer1.0.conv1.conv.weight`, `….conv1.bn.weight`, `….downsample.conv.weight`; otherwise the network
is torchvision's.

All want RGB, a shorter side of 256, a centre of 224, and ImageNet's mean and deviation. torchvision resizes
bilinearly; here, as in the whole package, swscale resizes bicubically, together with the conversion from the
video's own colours.

The network is written out here because torchvision is compiled against one exact torch, and can't even be
imported with another. The parameters have torchvision's names, so any of its ResNet-50 checkpoints fits. A
test checks that both agree if torchvision is there. (He et al., Deep Residual Learning for Image Recognition,
2016; with the stride of 2 in the 3×3 convolution of a block, called v1.5, as in torchvision and mmaction2.)
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.error import URLError

import torch
from torch import Tensor, nn

from ongebd.backbones.checkpoint import fit_state, read_state
from ongebd.backbones.torch_backbone import Precision, TorchBackbone
from ongebd.errors import ConfigError

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


FILE = "resnet50-0676ba61.pth"
"""torchvision's name for the weights; the digits begin the file's sha256."""

_URL = f"https://download.pytorch.org/models/{FILE}"
# For each set of TSN, the possible numbers of its classes, and one of mmaction2's checkpoints.
_CLASSES = {"tsn-kinetics": (400, 600, 700), "tsn-sthv2": (174,)}
_FILES = {
    "tsn-kinetics": "tsn_imagenet-pretrained-r50_8xb32-1x1x8-100e_kinetics400-rgb_20220906-2692d16c.pth",
    "tsn-sthv2": "tsn_imagenet-pretrained-r50_8xb32-1x1x8-50e_sthv2-rgb_20221122-ad2dbb37.pth",
}
_HEAD = "cls_head.fc_cls.weight"


def resnet50(
    name: str = "resnet50",
    weights: Path | None = None,
    device: str = "cpu",
    precision: Precision = "float32",
    threads: int = 1,
) -> TorchBackbone:
    """`resnet50`, `tsn-kinetics` or `tsn-sthv2`, loaded; see `TorchBackbone`.

    The weights are a checkpoint of torchvision's or mmaction2's, with or without the classifier. None takes
    IMAGENET1K_V1 for `resnet50`, from torch's cache or the network.

    Raises:
        ConfigError: The checkpoint is missing, doesn't fit, or was trained on another set.
    """
    source = str(weights or FILE)
    if name in _FILES:
        instead = f"mmaction2's {_FILES[name]}"
        if weights is None:
            raise ConfigError(f"{name}: needs --weights FILE: {instead}, or one like it")
        state = read_state(weights)
        if _HEAD in state and len(state[_HEAD]) not in _CLASSES[name]:
            raise ConfigError(
                f"{weights}: doesn't fit {name}: it has {len(state[_HEAD])} classes,"
                f" not {' or '.join(map(str, _CLASSES[name]))}; give {instead}"
            )
        state = {
            _torchvision_name(key.removeprefix("backbone.")): tensor
            for key, tensor in state.items()
            if key.startswith("backbone.")
        }
    else:
        instead = f"torchvision's {FILE}"
        state = _downloaded() if weights is None else read_state(weights)
        state = {key: tensor for key, tensor in state.items() if not key.startswith("fc.")}
    with torch.device("meta"):  # spends no time on weights that are then replaced
        network = ResNet50()
    network.to_empty(device="cpu")
    network.load_state_dict(fit_state(state, network.state_dict(), name, source, instead), strict=False)
    return TorchBackbone(name, network, device=device, precision=precision, threads=threads)


def _torchvision_name(key: str) -> str:
    """A tensor's name in torchvision, from mmaction2's.

    >>> _torchvision_name("layer1.0.conv2.bn.running_mean")
    'layer1.0.bn2.running_mean'
    >>> _torchvision_name("layer1.0.downsample.conv.weight")
    'layer1.0.downsample.0.weight'
    """
    key = re.sub(r"\bconv(\d)\.conv\.", r"conv\1.", key)
    key = re.sub(r"\bconv(\d)\.bn\.", r"bn\1.", key)
    return key.replace("downsample.conv.", "downsample.0.").replace("downsample.bn.", "downsample.1.")


def _downloaded() -> dict[str, Tensor]:
    """Torchvision's weights, fetched as torchvision does: same function, address and cache."""
    try:
        state: dict[str, Tensor] = torch.hub.load_state_dict_from_url(
            _URL, map_location="cpu", check_hash=True, weights_only=True
        )
    except (URLError, OSError, RuntimeError) as problem:  # RuntimeError: the hash differs
        reason = " ".join(str(getattr(problem, "reason", problem)).split())
        raise ConfigError(
            f"resnet50: can't download its weights ({reason}); fetch {FILE} on another machine, and give"
            " --weights FILE"
        ) from None
    return state
