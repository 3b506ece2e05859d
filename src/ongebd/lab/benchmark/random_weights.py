"""The paper's methods at the paper's sizes with random weights: what they cost does not depend on them."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ongebd.detector import Model
from ongebd.detector.recipes import UNTRAINED
from ongebd.detector.trained import ESTIMATOR, ONNX_FILE
from ongebd.errors import MissingExtraError

if TYPE_CHECKING:
    from ongebd.backbones.resnet50_network import ResNet50
    from ongebd.backbones.torch_backbone import TorchBackbone
    from ongebd.estimator.anticipator import ConsistentEventAnticipator

NOTE = "random weights: speed only"


def random_resnet50() -> ResNet50:
    """Random weights, with normalisation that has something to do."""
    import torch

    from ongebd.backbones.resnet50_network import ResNet50

    network = ResNet50().eval()
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.normal_(module.get_buffer("running_mean"), 0, 0.1)
            torch.nn.init.uniform_(module.get_buffer("running_var"), 0.5, 1.5)
    return network


@cache
def resnet50_backbone(threads: int = 1) -> TorchBackbone:
    """The paper's backbone with random weights; one for all methods."""
    import torch

    from ongebd.backbones.torch_backbone import TorchBackbone

    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = random_resnet50()
    return TorchBackbone("resnet50", network, dim=2048, input_size=224, resize_size=256, threads=threads)


def random_model(name: str, threads: int = 1, folder: Path | None = None) -> Model:
    """One of the paper's methods on ResNet-50.

    Args:
        name: `estimator`, or one of the four baselines.
        threads: CPU threads for one frame's inference.
        folder: Where the files of an anticipator are kept while it is in use; None makes one.

    Raises:
        MissingExtraError: Torch is not installed, or what writes and reads a network's files.
    """
    try:
        import torch

        with torch.random.fork_rng():
            torch.manual_seed(1)
            if name == ESTIMATOR:
                from ongebd.estimator.anticipator import ConsistentEventAnticipator

                network = ConsistentEventAnticipator().eval()
                return estimator_model(network, resnet50_backbone(threads), threads, folder)
            return _baseline(name, threads)
    except ModuleNotFoundError as problem:
        raise MissingExtraError.of(problem.name, "train") from None


def estimator_model(
    network: ConsistentEventAnticipator, backbone: TorchBackbone, threads: int = 1, folder: Path | None = None
) -> Model:
    """An anticipator on a backbone, run on the CPU as a trained one is: by onnxruntime.

    Args:
        network: In evaluation mode.
        backbone: Of its D.
        threads: CPU threads for one frame's inference.
        folder: Where its files go; None makes a folder, which stays until the system clears it.
    """
    from ongebd.estimator.onnx_anticipator import OnnxAnticipator
    from ongebd.lab.training.onnx_export import export_onnx

    place = Path(tempfile.mkdtemp(prefix="ongebd-")) if folder is None else folder
    network.save_pretrained(place)
    export_onnx(network, place / ONNX_FILE)
    anticipator = OnnxAnticipator(place / ONNX_FILE, ESTIMATOR, network.config.window, threads)
    return Model(ESTIMATOR, NOTE, backbone, UNTRAINED, lambda _window: anticipator)


def _baseline(name: str, threads: int) -> Model:
    from ongebd.baselines.methods import make_network
    from ongebd.baselines.network_scorer import NetworkScorer

    network = make_network(name).eval().requires_grad_(False)
    return Model(
        name,
        NOTE,
        resnet50_backbone(threads),
        UNTRAINED,
        method=lambda _config: NetworkScorer(network, name),
    )
