"""What a method costs: parameters, and operations by torch's own counter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from ongebd.backbones import Backbone
from ongebd.baselines.transnet import PARAMETERS as TRANSNETV2_PARAMETERS
from ongebd.detector import Model, OnlineDetector
from ongebd.detector.recipes import RECIPES, RESNET50

if TYPE_CHECKING:
    from torch import nn

    from ongebd.baselines.network import OnlineNetwork

EFFICIENTNET_LITE0 = 3_350_000
"""Numbers in our file of the backbone, with its normalisation folded in; a test checks it."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one frame of one stream. GFLOPs are None without torch, and for what has no network.

    Attributes:
        backbone_parameters: Numbers in the backbone.
        method_parameters: Learned numbers of the method alone.
        backbone_gflops: Two operations for each multiplication with its addition.
        method_gflops: The same of the method.
        window_gflops: Backbone and method, if the method's whole window is computed, as in training.
        state_bytes: What a stream keeps.
        latency: Frames of future that a verdict waits for.
    """

    backbone_parameters: int
    method_parameters: int
    backbone_gflops: float | None
    method_gflops: float | None
    window_gflops: float | None
    state_bytes: int
    latency: int


def cost(model: Model) -> Cost:
    """Count a model's cost."""
    stream, name = model.stream(), model.name.partition(":")[0]
    latency = round(stream.latency * float(model.configured().rate()))
    _fill(stream, model.backbone.dim)
    backbone, method = _backbone_parameters(model.backbone), 0
    if name == "transnetv2":
        method = TRANSNETV2_PARAMETERS
    elif name in RECIPES:
        method = RECIPES[name].parameters
    if not backbone or find_spec("torch") is None or find_spec("onnx") is None:
        return Cost(backbone, method, None, None, None, stream.state_bytes, latency)
    import torch

    from ongebd.lab.benchmark.eager import backbone_network, method_network

    eager, size = backbone_network(model.backbone)[0], model.backbone.input_size
    picture = gflops(lambda: eager(torch.zeros(1, 3, size, size)))
    network = method_network(model.method(model.configured()))
    step = whole = None
    if network is not None:
        step, window = network_gflops(network)
        whole = picture + window
        method = sum(parameter.numel() for parameter in network.parameters())
    return Cost(backbone, method, picture, step, whole, stream.state_bytes, latency)


def network_gflops(network: nn.Module) -> tuple[float, float]:
    """GFLOPs of a network's next frame, and of one whose whole window is computed."""
    import torch

    from ongebd.estimator.anticipator import ConsistentEventAnticipator

    if isinstance(network, ConsistentEventAnticipator):
        step = gflops(lambda: network(torch.zeros(1, network.config.window, network.config.dim)))
        return step, step
    online: Any = network
    state = online.start()
    step = gflops(lambda: online.step(torch.zeros(1, online.shape.dim), state))
    # A recurrent network has no window: it carries its state on, in the paper too.
    return step, step if online.method in ("miniroad", "simon") else _window_gflops(online)


def _window_gflops(network: OnlineNetwork[Any]) -> float:
    import torch

    from ongebd.baselines.methods import make_network, network_shape

    if "run" in vars(network.shape):  # frames with a verdict: one
        shape = network_shape(network.method, vars(network.shape) | {"run": 1})
        network = make_network(network.method, shape).eval().requires_grad_(False)
    layout = network.layout()
    frames = torch.zeros(1, sum(layout[:3]), network.shape.dim)
    places = layout.region + layout.run
    targets, lead = torch.zeros(1, places, dtype=torch.bool), torch.full((1, places), 10_000)
    return gflops(lambda: network.losses(frames, targets, lead + torch.arange(places)))


def gflops(work: Callable[[], Any]) -> float:
    """GFLOPs of some work: two operations for each multiplication with its addition."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        work()
    return float(counter.get_total_flops()) / 1e9


def _fill(stream: OnlineDetector, dim: int) -> None:
    """Give a stream some features, since part of its state begins with them."""
    random = np.random.default_rng(0)
    for number in range(16):
        stream.update_feature(random.uniform(1, 2, dim).astype(np.float32), number / 24)


def _backbone_parameters(backbone: Backbone) -> int:
    if backbone.name.startswith("efficientnet_lite0"):
        return EFFICIENTNET_LITE0
    return RESNET50 if backbone.name.startswith(("resnet50", "tsn")) else 0
