"""ResNet-50 trained on ImageNet, the paper's backbone: 2048 numbers a frame, 4.1 G multiply-adds.

The weights are torchvision's IMAGENET1K_V1 (BSD-3-Clause; its V2 was trained by another recipe, for which the
paper does not ask). They want a shorter side of 256, a centre of 224, and ImageNet's mean and deviation.
torchvision resizes bilinearly; here, as in the whole package, swscale does it bicubically, in one step with
the conversion from the video's own colours.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError

from ongebd.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

    from ongebd.backbones.torch_backbone import Precision, TorchBackbone

FILE = "resnet50-0676ba61.pth"
"""torchvision's name for the weights; the digits are the first of the file's sha256."""

_URL = f"https://download.pytorch.org/models/{FILE}"

RESIZE_SIZE, INPUT_SIZE = 256, 224


def resnet50(
    weights: Path | None = None, device: str = "cpu", precision: Precision = "float32", threads: int = 1
) -> TorchBackbone:
    """The backbone, loaded.

    Args:
        weights: A checkpoint with torchvision's names for a ResNet-50, with or without the classifier. None
            takes IMAGENET1K_V1 from torch's cache, or downloads it there.
        device: `cpu`, `cuda` or `cuda:N`.
        precision: In what the network computes.
        threads: Threads in which one call of `embed` computes, on the CPU.

    Raises:
        ConfigError: The checkpoint does not fit, it cannot be downloaded, or there is no such device.
    """
    from ongebd.backbones.checkpoint import read_state

    state = _downloaded() if weights is None else read_state(weights)
    state = {key: tensor for key, tensor in state.items() if not key.startswith("fc.")}
    return backbone_of(
        "resnet50", state, str(weights or FILE), f"torchvision's {FILE}", device, precision, threads
    )


def backbone_of(
    name: str,
    state: dict[str, Tensor],
    source: str,
    mend: str,
    device: str,
    precision: Precision,
    threads: int,
) -> TorchBackbone:
    """A ResNet-50 with these weights, named as torchvision names them.

    Args:
        name: The backbone's.
        state: Its weights.
        source: Where they come from, for messages.
        mend: What to give where they do not fit, for messages.
        device: `cpu`, `cuda` or `cuda:N`.
        precision: In what the network computes.
        threads: Threads in which one call of `embed` computes, on the CPU.

    Raises:
        ConfigError: They do not fit, or there is no such device.
    """
    import torch

    from ongebd.backbones.checkpoint import fit_state
    from ongebd.backbones.resnet50_network import DIM, ResNet50
    from ongebd.backbones.torch_backbone import TorchBackbone

    with torch.device("meta"):  # no time is spent on weights that are replaced at once
        network = ResNet50()
    network.to_empty(device="cpu")
    network.load_state_dict(fit_state(state, network.state_dict(), name, source, mend), strict=False)
    return TorchBackbone(
        name,
        network,
        dim=DIM,
        input_size=INPUT_SIZE,
        resize_size=RESIZE_SIZE,
        device=device,
        precision=precision,
        threads=threads,
    )


def _downloaded() -> dict[str, Tensor]:
    """Fetch torchvision's weights as it does: by the same function, from the same address, into its cache."""
    from torch.hub import load_state_dict_from_url

    try:
        state: dict[str, Tensor] = load_state_dict_from_url(
            _URL, map_location="cpu", check_hash=True, weights_only=True
        )
    except (URLError, OSError, RuntimeError) as problem:  # RuntimeError: the hash is another
        reason = " ".join(str(getattr(problem, "reason", problem)).split())
        raise ConfigError(
            f"resnet50: its weights could not be downloaded ({reason}); fetch {FILE} where there is a"
            " network, and give --weights FILE"
        ) from None
    return state
