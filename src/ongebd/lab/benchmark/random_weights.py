"""The paper's methods at the paper's sizes with random weights, on which their cost doesn't depend."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ongebd.detector import Model
from ongebd.detector.recipes import UNTRAINED
from ongebd.detector.trained import ESTIMATOR, ONNX_FILE
from ongebd.errors import MissingExtraError

if TYPE_CHECKING:
    from ongebd.backbones.resnet50 import ResNet50
    from ongebd.backbones.torch_backbone import TorchBackbone

NOTE = "random weights: speed only"


def random_resnet50() -> ResNet50:
    """Random weights, with a normalisation that isn't trivial."""
    import torch

    from ongebd.backbones.resnet50 import ResNet50

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
    return TorchBackbone("resnet50", network, threads=threads)


def random_model(name: str, folder: Path, threads: int = 1) -> Model:
    """One of the paper's methods on ResNet-50; the folder takes the files of `estimator`.

    Raises:
        MissingExtraError: Torch, or what writes and reads a network's files, is not installed.
    """
    try:
        import torch

        with torch.random.fork_rng():
            torch.manual_seed(1)
            if name == ESTIMATOR:
                return _estimator(threads, folder)
            return _baseline(name, threads)
    except ModuleNotFoundError as problem:
        raise MissingExtraError.of(problem.name, "train") from None


def _estimator(threads: int, folder: Path) -> Model:
    """Run on the CPU as a trained one is: by onnxruntime."""
    from ongebd.estimator.anticipator import ConsistentEventAnticipator
    from ongebd.estimator.onnx_anticipator import OnnxAnticipator
    from ongebd.lab.training.onnx_export import export_onnx

    network = ConsistentEventAnticipator().eval()
    backbone = resnet50_backbone(threads)
    network.save_pretrained(folder)
    export_onnx(network, folder / ONNX_FILE)
    anticipator = OnnxAnticipator(folder / ONNX_FILE, ESTIMATOR, network.config.window, threads)
    return Model(ESTIMATOR, NOTE, backbone, UNTRAINED, lambda _window: anticipator)


def _baseline(name: str, threads: int) -> Model:
    from ongebd.baselines.methods import make_network
    from ongebd.baselines.network import NetworkScorer

    network = make_network(name).eval().requires_grad_(False)
    backbone = resnet50_backbone(threads)
    return Model(name, NOTE, backbone, UNTRAINED, method=lambda _config: NetworkScorer(network, name))
