"""The paper's way, for comparison: networks in float32, module by module, frame by frame. Needs torch."""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ongebd.backbones import Backbone
from ongebd.backbones.efficientnet_lite0_network import MEAN, SCALE, EfficientNetLite0
from ongebd.backbones.onnx_backbone import WholePicture, small_luma
from ongebd.backbones.torch_backbone import TorchBackbone
from ongebd.baselines.network import NetworkScorer
from ongebd.detector import Model
from ongebd.detector.detector import AnticipationScorer, Scorer
from ongebd.estimator import Anticipator
from ongebd.estimator.anticipator import ConsistentEventAnticipator
from ongebd.estimator.losses import prediction_errors
from ongebd.estimator.onnx_anticipator import OnnxAnticipator
from ongebd.estimator.torch_anticipator import TorchAnticipator, load_anticipator
from ongebd.types import Feature, ImageU8

_LITE0 = ("efficientnet_lite0", "efficientnet_lite0_whole")


def has_network(backbone: Backbone) -> bool:
    """Whether a backbone has a network that torch can run."""
    return isinstance(backbone, TorchBackbone) or backbone.name in _LITE0


def backbone_network(backbone: Backbone) -> tuple[nn.Module, tuple[float, ...], tuple[float, ...]]:
    """A copy of the network of a backbone that has one, in float32; mean and deviation of its pixels."""
    if isinstance(backbone, TorchBackbone):
        return _ready(backbone.network), *backbone.normalisation
    return _ready(EfficientNetLite0()), (MEAN,), (SCALE,)


def method_network(method: Anticipator | Scorer) -> nn.Module | None:
    """A copy of a method's network in float32, if it has one."""
    match method:
        case OnnxAnticipator():
            return _ready(load_anticipator(method.path.parent))
        case TorchAnticipator():
            return _ready(method.model)
        case NetworkScorer():
            return _ready(method.network)
    return None


def _ready(network: nn.Module) -> nn.Module:
    return copy.deepcopy(network).float().eval().requires_grad_(False)


class EagerStream:
    """A stream run the paper's way: frame to feature to score on a device, the decision on the host.

    The backbone must have a network. A method without one runs on the host, as ever.
    """

    def __init__(self, model: Model, device: str) -> None:
        backbone, config = model.backbone, model.configured()
        self._crop, self._device = backbone.crop, device
        self._luma = isinstance(backbone, WholePicture)
        network, mean, deviation = backbone_network(backbone)
        self._backbone = network.to(device)
        self._mean, self._deviation = (
            torch.tensor(values, device=device).view(1, -1, 1, 1) for values in (mean, deviation)
        )
        method = model.method(config)
        own = method_network(method)
        self._network: Any = None if own is None else own.to(device)
        self._host = (
            AnticipationScorer(method, model.error, backbone.dim)
            if isinstance(method, Anticipator)
            else method
        )
        self._state: Any = None
        self._past: Tensor | None = None
        self._head, self._runs = config.new_head(), config.runs()

    def update(self, frame: ImageU8, time: float | Fraction) -> bool:
        """Take the next frame; whether it is positive."""
        return self._judge(self.embed(frame), float(time))

    def update_feature(self, feature: Feature, time: float | Fraction) -> bool:
        """The same for a feature, (D,), on the host."""
        tensor = torch.from_numpy(np.asarray(feature, np.float32)).to(self._device)
        return self._judge(tensor[None], float(time))

    @torch.inference_mode()
    def embed(self, frame: ImageU8) -> Tensor:
        """A frame's feature, (1, D), on the device, computed when this returns."""
        square = self._crop(frame)
        pictures = torch.from_numpy(square).to(self._device).permute(2, 0, 1)[None]
        feature: Tensor = self._backbone((pictures.float() - self._mean) / self._deviation)
        if self._luma:
            feature = torch.cat([feature, torch.from_numpy(small_luma(square[None])).to(self._device)], dim=1)
        if feature.is_cuda:
            torch.cuda.synchronize(feature.device)
        return feature

    @torch.inference_mode()
    def score(self, feature: Tensor, time: float) -> float | None:
        """The score of a feature, (1, D), on the device, read back; None if it has none."""
        network = self._network
        if network is None:
            return self._host.update(feature[0].cpu().numpy(), time)
        if not isinstance(network, ConsistentEventAnticipator):
            state = network.start() if self._state is None else self._state
            logit, self._state = network.step(feature, state)
            return float(logit.sigmoid()[0])
        if self._past is None:
            self._past = feature[:, None].expand(-1, network.config.window, -1)
        anticipated = network(self._past)[:, -1]
        self._past = torch.cat([self._past[:, 1:], feature[:, None]], dim=1)
        return float(prediction_errors(feature, anticipated)[0])

    def _judge(self, feature: Tensor, time: float) -> bool:
        score = self.score(feature, time)
        if score is None:
            return False
        head = self._head.update(score)
        self._runs.update(time, head.z, head.is_boundary)
        return head.is_boundary
