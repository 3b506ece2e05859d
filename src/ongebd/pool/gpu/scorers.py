"""Our methods as they score one frame of each of B streams together. Needs torch."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from ongebd.baselines.naive import Persistence, WindowMean
from ongebd.baselines.network import NetworkScorer, OnlineNetwork
from ongebd.detector.detector import Scorer
from ongebd.errors import ConfigError
from ongebd.estimator import Anticipator
from ongebd.estimator.anticipator import ConsistentEventAnticipator
from ongebd.estimator.learned import LearnedScorer
from ongebd.estimator.losses import prediction_errors
from ongebd.estimator.onnx_anticipator import OnnxAnticipator
from ongebd.estimator.torch_anticipator import TorchAnticipator, load_anticipator
from ongebd.pool.gpu.batched_scorer import BatchedScorer, Rows, Scored, exact_cosine_errors, newest_last
from ongebd.pool.gpu.learned import BatchedLearned


class BatchedPersistence(BatchedScorer):
    """The error of "nothing changes": a stream's state is its last feature, (B, D)."""

    name = "persistence"

    def __init__(self, dim: int, device: torch.device) -> None:
        self.empty = (torch.zeros(1, dim, device=device),)

    def step(self, features: Tensor, state: Rows, prepared: Rows, seen: Tensor, time: Tensor) -> Scored:
        """ε of each frame but the first."""
        return exact_cosine_errors(features, state[0]), seen > 0, (features,)


class BatchedWindowMean(BatchedScorer):
    """The error of the mean direction of the last L features, which are a stream's state, (B, L, D).

    Before there are so many, directions of length zero add nothing to the mean.
    """

    name = "window-mean"

    def __init__(self, window: int, dim: int, device: torch.device) -> None:
        self.empty = (torch.zeros(1, window, dim, device=device),)

    def prepare(self, state: Rows) -> Rows:
        """The sum of the directions; it has the same cosine as their mean."""
        return (state[0].sum(dim=1),)

    def step(self, features: Tensor, state: Rows, prepared: Rows, seen: Tensor, time: Tensor) -> Scored:
        """ε of each frame but the first."""
        exact = features.double()
        direction = (exact / torch.linalg.vector_norm(exact, dim=1, keepdim=True)).float()
        return exact_cosine_errors(features, prepared[0]), seen > 0, (newest_last(state[0], direction),)


class BatchedAnticipator(BatchedScorer):
    """The paper's anticipator. The state is the last L features, (B, L, D), the first one repeated."""

    def __init__(
        self, network: ConsistentEventAnticipator, name: str, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.name = name
        self._metric = network.config.metric
        self._network = copy.deepcopy(network).eval().to(device, dtype)
        self.empty = (torch.zeros(1, network.config.window, network.config.dim, device=device, dtype=dtype),)

    def prepare(self, state: Rows) -> Rows:
        """f̂ of the next frame, (B, D), float32."""
        anticipated: Tensor = self._network(state[0])
        return (anticipated[:, -1].float(),)

    def step(self, features: Tensor, state: Rows, prepared: Rows, seen: Tensor, time: Tensor) -> Scored:
        """ε of each frame but the first."""
        (past,) = state
        feature = features.to(past.dtype)
        first = (seen == 0)[:, None, None]
        window = torch.where(first, feature[:, None].expand_as(past), newest_last(past, feature))
        if self._metric == "cosine":
            return exact_cosine_errors(features, prepared[0]), seen > 0, (window,)
        return prediction_errors(features, prepared[0], self._metric), seen > 0, (window,)


class BatchedNetwork(BatchedScorer):
    """A trained online baseline (MiniROAD, TeSTra, Sim-On, OadTR): the probability of a boundary."""

    compiles = False

    def __init__(
        self, network: OnlineNetwork[Any], name: str, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.name = name
        self._network = copy.deepcopy(network).eval().to(device, dtype)
        self._dtype = dtype
        start = self._network.start(1)
        self._state_type: type[Any] = type(start)
        self.empty = tuple(start)

    def step(self, features: Tensor, state: Rows, prepared: Rows, seen: Tensor, time: Tensor) -> Scored:
        """The probability of each frame but the first, which ends no event."""
        logits, after = self._network.step(features.to(self._dtype), self._state_type(*state))
        return logits.float().sigmoid(), seen > 0, tuple(after)


def batched_scorer(
    method: Anticipator | Scorer, dim: int, device: torch.device, dtype: torch.dtype
) -> BatchedScorer:
    """The form for many streams of what a model puts into one.

    Networks are copied and compute in `dtype`; errors are always computed in float64.

    Raises:
        ConfigError: It has no such form.
    """
    if hasattr(method, "batched"):
        own: BatchedScorer = method.batched(device, dtype)
        return own
    if isinstance(method, Persistence):
        return BatchedPersistence(dim, device)
    if isinstance(method, WindowMean):
        return BatchedWindowMean(method.window, dim, device)
    if isinstance(method, TorchAnticipator):
        return BatchedAnticipator(method.model, method.name, device, dtype)
    if isinstance(method, OnnxAnticipator):
        return BatchedAnticipator(load_anticipator(method.path.parent), method.name, device, dtype)
    if isinstance(method, LearnedScorer):
        return BatchedLearned(method.model, dim, device)
    if isinstance(method, NetworkScorer):
        return BatchedNetwork(method.network, method.name, device, dtype)
    raise ConfigError(f"{method.name}: this method can't run on a GPU; leave out device")
