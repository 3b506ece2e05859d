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
from ongebd.backbones.torch_backbone import TorchBackbone
from ongebd.backbones.whole_picture import WholePicture, small_luma
from ongebd.baselines.network_scorer import NetworkScorer
from ongebd.detector import Model
from ongebd.detector.scorers import AnticipationScorer, Scorer
from ongebd.errors import ConfigError
from ongebd.estimator import Anticipator
from ongebd.estimator.anticipator import ConsistentEventAnticipator
from ongebd.estimator.onnx_anticipator import OnnxAnticipator
from ongebd.estimator.torch_anticipator import TorchAnticipator, load_anticipator
from ongebd.estimator.torch_errors import prediction_errors
from ongebd.types import Feature, ImageU8

_LITE0 = ("efficientnet_lite0", "efficientnet_lite0_whole")


class EagerBackbone:
    """A backbone's network in float32 on a device, as torch runs it by itself. The backbone stays as it is.

    Raises:
        ConfigError: It has no network in torch.
    """

    def __init__(self, backbone: Backbone, device: str) -> None:
        self.crop = backbone.crop
        self.size = backbone.input_size
        self._device = device
        self._luma = isinstance(backbone, WholePicture)
        if isinstance(backbone, TorchBackbone):
            network: nn.Module = copy.deepcopy(backbone.network).float()
            mean, deviation = backbone.normalisation
        elif has_network(backbone):
            network, mean, deviation = EfficientNetLite0(), (MEAN,), (SCALE,)
        else:
            raise ConfigError(f"{backbone.name}: has no network in torch")
        self.network = network.eval().requires_grad_(False).to(device)
        self._mean = torch.tensor(mean, device=device).view(1, -1, 1, 1)
        self._deviation = torch.tensor(deviation, device=device).view(1, -1, 1, 1)

    @torch.inference_mode()
    def embed(self, frame: ImageU8) -> Tensor:
        """A frame's feature, (1, D), on the device, computed when this returns."""
        square = self.crop(frame)
        pictures = torch.from_numpy(square).to(self._device).permute(2, 0, 1)[None]
        feature: Tensor = self.network((pictures.float() - self._mean) / self._deviation)
        if self._luma:
            feature = torch.cat([feature, torch.from_numpy(small_luma(square[None])).to(self._device)], dim=1)
        if feature.is_cuda:
            torch.cuda.synchronize(feature.device)
        return feature


class EagerScorer:
    """A model's method: its network in float32 on a device; without a network, as ever on the host.

    Attributes:
        network: The network, if there is one.
    """

    def __init__(self, model: Model, device: str) -> None:
        self.network: nn.Module | None = None
        self._state: Any = None
        self._past: Tensor | None = None
        method = model.method(model.configured())
        match method:
            case OnnxAnticipator():
                self.network = load_anticipator(method.path.parent)
            case TorchAnticipator():
                self.network = copy.deepcopy(method.model)
            case NetworkScorer():
                self.network = copy.deepcopy(method.network)
            case Anticipator():
                self._host: Scorer = AnticipationScorer(method, model.error, model.backbone.dim)
            case _:
                self._host = method
        if self.network is not None:
            self.network = self.network.float().eval().requires_grad_(False).to(device)

    @torch.inference_mode()
    def score(self, feature: Tensor, time: float) -> float | None:
        """The score, read back; None for a frame that has none."""
        network: Any = self.network
        if network is None:
            return self._host.update(feature[0].cpu().numpy(), time)
        if not isinstance(network, ConsistentEventAnticipator):
            if self._state is None:
                self._state = network.start()
            logit, self._state = network.step(feature, self._state)
            return float(logit.sigmoid()[0])
        if self._past is None:
            self._past = feature[:, None].expand(-1, network.config.window, -1)
        anticipated = network(self._past)[:, -1]
        self._past = torch.cat([self._past[:, 1:], feature[:, None]], dim=1)
        return float(prediction_errors(feature, anticipated)[0])


class EagerStream:
    """A stream run the paper's way: frame to feature to score on a device, the decision on the host.

    Raises:
        ConfigError: The model's backbone has no network in torch.
    """

    def __init__(self, model: Model, device: str) -> None:
        config = model.configured()
        self.backbone = EagerBackbone(model.backbone, device)
        self.scorer = EagerScorer(model, device)
        self._head, self._runs = config.new_head(), config.runs()
        self._device = device

    def embed(self, frame: ImageU8) -> Tensor:
        """A frame's feature, (1, D), on the device."""
        return self.backbone.embed(frame)

    def update(self, frame: ImageU8, time: float | Fraction) -> bool:
        """Take the next frame; whether it is positive."""
        return self._judge(self.embed(frame), float(time))

    def update_feature(self, feature: Feature, time: float | Fraction) -> bool:
        """The same for a feature, (D,), on the host."""
        tensor = torch.from_numpy(np.asarray(feature, np.float32)).to(self._device)
        return self._judge(tensor[None], float(time))

    def _judge(self, feature: Tensor, time: float) -> bool:
        score = self.scorer.score(feature, time)
        if score is None:
            return False
        head = self._head.update(score)
        self._runs.update(time, head.is_boundary, head.z)
        return head.is_boundary


def has_network(backbone: Backbone) -> bool:
    """Whether a backbone has a network that torch can run."""
    return isinstance(backbone, TorchBackbone) or backbone.name in _LITE0
