"""TSN's ResNet-50, trained on the actions of Kinetics or of Something-Something v2; 2048 numbers a frame.

The checkpoints are mmaction2's (Apache-2.0). A layer there is a convolution and its normalisation in one
module: `backbone.layer1.0.conv1.conv.weight`, `….conv1.bn.weight`, `….downsample.conv.weight`; the network is
otherwise torchvision's. They want what ResNet-50 wants: RGB, a shorter side of 256, a centre of 224 (as in
mmaction2's validation), mean [123.675, 116.28, 103.53] and deviation [58.395, 57.12, 57.375].
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from ongebd.backbones.resnet50 import backbone_of
from ongebd.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

    from ongebd.backbones.torch_backbone import Precision, TorchBackbone

# For each set, the numbers of its classes, and one of mmaction2's checkpoints.
_CLASSES = {"tsn-kinetics": (400, 600, 700), "tsn-sthv2": (174,)}
_FILES = {
    "tsn-kinetics": "tsn_imagenet-pretrained-r50_8xb32-1x1x8-100e_kinetics400-rgb_20220906-2692d16c.pth",
    "tsn-sthv2": "tsn_imagenet-pretrained-r50_8xb32-1x1x8-50e_sthv2-rgb_20221122-ad2dbb37.pth",
}
_HEAD = "cls_head.fc_cls.weight"


def tsn(
    name: str,
    weights: Path | None,
    device: str = "cpu",
    precision: Precision = "float32",
    threads: int = 1,
) -> TorchBackbone:
    """The backbone, loaded.

    Args:
        name: `tsn-kinetics` or `tsn-sthv2`.
        weights: A checkpoint of mmaction2's TSN with a ResNet-50.
        device: `cpu`, `cuda` or `cuda:N`.
        precision: In what the network computes.
        threads: Threads in which one call of `embed` computes, on the CPU.

    Raises:
        ConfigError: No checkpoint is given, it does not fit or was trained on another set, or there is no
            such device.
    """
    mend = f"mmaction2's {_FILES[name]}"
    if weights is None:
        raise ConfigError(f"{name}: needs --weights FILE: {mend}, or one like it")
    from ongebd.backbones.checkpoint import read_state

    state = read_state(weights)
    if _HEAD in state and len(state[_HEAD]) not in _CLASSES[name]:
        raise ConfigError(
            f"{weights}: does not fit {name}: it tells {len(state[_HEAD])} classes apart,"
            f" not {' or '.join(map(str, _CLASSES[name]))}; give {mend}"
        )
    return backbone_of(name, torchvision_names(state), str(weights), mend, device, precision, threads)


def torchvision_names(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The backbone's tensors of an mmaction2 checkpoint, named as torchvision names them; no others."""
    return {
        _torchvision_name(key.removeprefix("backbone.")): tensor
        for key, tensor in state.items()
        if key.startswith("backbone.")
    }


def _torchvision_name(key: str) -> str:
    """One name.

    >>> _torchvision_name("layer1.0.conv2.bn.running_mean")
    'layer1.0.bn2.running_mean'
    >>> _torchvision_name("layer1.0.downsample.conv.weight")
    'layer1.0.downsample.0.weight'
    """
    key = re.sub(r"\bconv(\d)\.conv\.", r"conv\1.", key)
    key = re.sub(r"\bconv(\d)\.bn\.", r"bn\1.", key)
    return key.replace("downsample.conv.", "downsample.0.").replace("downsample.bn.", "downsample.1.")
