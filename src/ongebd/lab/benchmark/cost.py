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
"""Numbers in our file of the backbone, its normalisation folded in; a test holds it to that."""
_FRAMES = 16


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one frame of one stream.

    Attributes:
        backbone_parameters: Numbers in the backbone.
        method_parameters: Numbers that are learned, of the method alone.
        backbone_gflops: Two for each multiplication with its addition; None without torch.
        method_gflops: Likewise; None where the method has no network, or none that is counted.
        window_gflops: Backbone and method where the method's whole window is computed anew, as in training.
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
    config = model.configured()
    stream = model.stream()
    recipe = RECIPES.get(model.name.partition(":")[0])
    name, method = model.name.partition(":")[0], recipe.parameters if recipe is not None else 0
    backbone = _backbone_parameters(model.backbone)
    latency = round(stream.latency * float(config.rate()))
    if name == "transnetv2":
        method = TRANSNETV2_PARAMETERS
    _fill(stream, model.backbone.dim)
    if not backbone or find_spec("torch") is None or find_spec("onnx") is None:
        return Cost(backbone, method, None, None, None, stream.state_bytes, latency)
    import torch

    from ongebd.lab.benchmark.eager import EagerBackbone, EagerScorer

    eager = EagerBackbone(model.backbone, "cpu")
    picture = gflops(lambda: eager.network(torch.zeros(1, 3, eager.size, eager.size)))
    network = EagerScorer(model.method(config), model.backbone.dim, model.error, "cpu").network
    if network is None:
        return Cost(backbone, method, picture, None, None, stream.state_bytes, latency)
    step, window = network_gflops(network)
    count = sum(parameter.numel() for parameter in network.parameters())
    return Cost(backbone, count, picture, step, picture + window, stream.state_bytes, latency)


def network_gflops(network: nn.Module) -> tuple[float, float]:
    """GFLOPs of a network's next frame, and of one whose whole window is computed anew."""
    import torch

    from ongebd.estimator.anticipator import ConsistentEventAnticipator

    if isinstance(network, ConsistentEventAnticipator):
        step = gflops(lambda: network(torch.zeros(1, network.config.window, network.config.dim)))
        return step, step
    online: Any = network
    state = online.start()
    step = gflops(lambda: online.step(torch.zeros(1, online.shape.dim), state))
    # A recurrent network has no window: it carries its state on, in the paper too.
    return step, step if online.method in ("miniroad", "simon") else window_gflops(online)


def window_gflops(network: OnlineNetwork[Any]) -> float:
    """GFLOPs of one frame's verdict where its whole window is computed anew, as in training."""
    import torch

    from ongebd.baselines.methods import make_network, network_shape

    if "run" in vars(network.shape):  # frames with a verdict: one
        network = make_network(
            network.method, network_shape(network.method, vars(network.shape) | {"run": 1})
        )
        network = network.eval().requires_grad_(False)
    layout = network.layout()
    frames = torch.zeros(1, sum(layout), network.shape.dim)
    places = layout.region + layout.run
    targets, lead = torch.zeros(1, places, dtype=torch.bool), torch.full((1, places), 10_000)
    return gflops(lambda: network.losses(frames, targets, lead + torch.arange(places)))


def gflops(work: Callable[[], Any]) -> float:
    """GFLOPs of some work: two for each multiplication with its addition."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        work()
    return float(counter.get_total_flops()) / 1e9


def _fill(stream: OnlineDetector, dim: int) -> None:
    """Give a stream some features, for some of what it keeps begins with them."""
    random = np.random.default_rng(0)
    for number in range(_FRAMES):
        stream.update_feature(random.uniform(1, 2, dim).astype(np.float32), number / 24)


def _backbone_parameters(backbone: Backbone) -> int:
    name = backbone.name
    if name.startswith("efficientnet_lite0"):
        return EFFICIENTNET_LITE0
    if name == "resnet50" or name.startswith("tsn"):
        return RESNET50
    return 0
