"""Methods that score one frame of each of B streams at once, as tensors. Needs torch.

This is the GPU's counterpart of `ongebd.detector.scorers.Scorer`, and the door for a new kind of model:
write a class with the three functions of `BatchedScorer`, and give the model's method (what it puts into a
stream) a function `batched(device, dtype)` that makes one. See docs/runtime.md.

A scorer keeps nothing of a stream. Its functions take and give *rows* of state, one row a stream; where these
lie, when a stream begins anew, and what a broken frame must not change is the engine's business. They must be
made of tensor operations alone, with no look at a value, so that they can be captured in a CUDA graph.
"""

from __future__ import annotations

import copy
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from ongebd.baselines.naive import Persistence, WindowMean
from ongebd.baselines.network import OnlineNetwork
from ongebd.baselines.network_scorer import NetworkScorer
from ongebd.detector.scorers import Scorer
from ongebd.errors import ConfigError
from ongebd.estimator import Anticipator
from ongebd.estimator.anticipator import ConsistentEventAnticipator
from ongebd.estimator.anticipator_config import Metric
from ongebd.estimator.learned import LearnedScorer
from ongebd.estimator.onnx_anticipator import OnnxAnticipator
from ongebd.estimator.torch_anticipator import TorchAnticipator, load_anticipator
from ongebd.estimator.torch_errors import prediction_errors
from ongebd.pool.gpu.learned import BatchedLearned

Rows = tuple[Tensor, ...]
"""State of B streams: tensors whose first dimension is B, of fixed shapes and types."""


class BatchedScorer(Protocol):
    """A method at work on many streams.

    Attributes:
        name: The method's.
        compiles: Whether `torch.compile` can take `step` and `prepare`; cuDNN's recurrent layers it cannot.
    """

    name: str
    compiles: bool

    def initial(self, streams: int) -> Rows:
        """The state of streams before their first frame; the same for each."""

    def prepare(self, state: Rows) -> Rows:
        """What can be known of the next frame before it is there: computed beside the backbone.

        Args:
            state: After the last frame.

        Returns:
            Rows that `step` is given; may be empty.
        """

    def step(
        self, features: Tensor, state: Rows, prepared: Rows, seen: Tensor
    ) -> tuple[Tensor, Tensor, Rows]:
        """The next frame.

        Args:
            features: (B, D), float32.
            state: Of `initial` or of the step before; it is left as it is.
            prepared: What `prepare` made of that state; meaningless for a stream's first frame.
            seen: Frames of each stream before this one, (B,), int64.

        Returns:
            The scores, (B,), any float type (or as `SpeaksInViews` has it); whether each is one, (B,), bool;
            and the new state.
        """


@runtime_checkable
class OffersBatches(Protocol):
    """A model's method that has a form for many streams at once."""

    def batched(self, device: torch.device, dtype: torch.dtype) -> BatchedScorer:
        """A new scorer, computing there and in that type."""


class BatchedPersistence:
    """The error of "nothing changes": a stream's state is its last feature, (B, D)."""

    name = "persistence"
    compiles = True

    def __init__(self, dim: int, device: torch.device) -> None:
        self._last = torch.zeros(1, dim, device=device)

    def initial(self, streams: int) -> Rows:
        """No feature."""
        return (self._last.expand(streams, -1),)

    def prepare(self, state: Rows) -> Rows:
        """Nothing is to be computed."""
        return ()

    def step(
        self, features: Tensor, state: Rows, prepared: Rows, seen: Tensor
    ) -> tuple[Tensor, Tensor, Rows]:
        """ε of each frame but the first."""
        return exact_cosine_errors(features, state[0]), seen > 0, (features,)


class BatchedWindowMean:
    """The error of the mean direction of the last L features, which are a stream's state, (B, L, D)."""

    name = "window-mean"
    compiles = True

    def __init__(self, window: int, dim: int, device: torch.device) -> None:
        self._past = torch.zeros(1, window, dim, device=device)

    def initial(self, streams: int) -> Rows:
        """Directions of length zero, which add nothing to a mean."""
        return (self._past.expand(streams, -1, -1),)

    def prepare(self, state: Rows) -> Rows:
        """The sum of the directions: the cosine knows no difference between that and the mean."""
        return (state[0].sum(dim=1),)

    def step(
        self, features: Tensor, state: Rows, prepared: Rows, seen: Tensor
    ) -> tuple[Tensor, Tensor, Rows]:
        """ε of each frame but the first."""
        exact = features.double()
        direction = (exact / torch.linalg.vector_norm(exact, dim=1, keepdim=True)).float()
        return exact_cosine_errors(features, prepared[0]), seen > 0, (newest_last(state[0], direction),)


class BatchedAnticipator:
    """The paper's anticipator. A stream's state are its last L features, (B, L, D), the first one repeated.

    Args:
        network: With its weights; a copy of it is made.
        name: What to call it.
        device: Where to compute.
        dtype: In what.
    """

    compiles = True

    def __init__(
        self, network: ConsistentEventAnticipator, name: str, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.name = name
        self._metric: Metric = network.config.metric
        self._network = copy.deepcopy(network).eval().to(device, dtype)
        self._past = torch.zeros(1, network.config.window, network.config.dim, device=device, dtype=dtype)

    def initial(self, streams: int) -> Rows:
        """A window that the first feature will fill."""
        return (self._past.expand(streams, -1, -1),)

    def prepare(self, state: Rows) -> Rows:
        """f̂ of the next frame, (B, D), float32."""
        anticipated: Tensor = self._network(state[0])
        return (anticipated[:, -1].float(),)

    def step(
        self, features: Tensor, state: Rows, prepared: Rows, seen: Tensor
    ) -> tuple[Tensor, Tensor, Rows]:
        """ε of each frame but the first."""
        (past,) = state
        feature = features.to(past.dtype)
        first = (seen == 0)[:, None, None]
        window = torch.where(first, feature[:, None].expand_as(past), newest_last(past, feature))
        errors = (
            exact_cosine_errors(features, prepared[0])
            if self._metric == "cosine"
            else prediction_errors(features, prepared[0], self._metric)
        )
        return errors, seen > 0, (window,)


class BatchedNetwork:
    """A trained online baseline (MiniROAD, TeSTra, Sim-On, OadTR): the probability of a boundary.

    Args:
        network: With its weights; a copy of it is made. Its state is its own, one row a stream.
        name: What to call it.
        device: Where to compute.
        dtype: In what.
    """

    compiles = False

    def __init__(
        self, network: OnlineNetwork[Any], name: str, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.name = name
        self._network = copy.deepcopy(network).eval().to(device, dtype)
        self._dtype = dtype
        self._start: type[Any] = type(self._network.start(1))

    def initial(self, streams: int) -> Rows:
        """The network's."""
        return tuple(self._network.start(streams))

    def prepare(self, state: Rows) -> Rows:
        """Nothing is computed ahead."""
        return ()

    def step(
        self, features: Tensor, state: Rows, prepared: Rows, seen: Tensor
    ) -> tuple[Tensor, Tensor, Rows]:
        """The probability of each frame but the first, which ends nothing."""
        logits, after = self._network.step(features.to(self._dtype), self._start(*state))
        return logits.float().sigmoid(), seen > 0, tuple(after)


def batched_scorer(
    method: Anticipator | Scorer, dim: int, device: torch.device, dtype: torch.dtype
) -> BatchedScorer:
    """The form for many streams of what a model puts into one.

    Args:
        method: An anticipator or a scorer, as for `OnlineDetector`.
        dim: D.
        device: Where it shall compute.
        dtype: In what networks compute; the errors are computed in float64 whatever it is.

    Raises:
        ConfigError: It has no such form.
    """
    if isinstance(method, OffersBatches):
        return method.batched(device, dtype)
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
    raise ConfigError(f"{method.name}: there is no GPU form of this method; leave out device")


def exact_cosine_errors(features: Tensor, anticipated: Tensor) -> Tensor:
    """(1 − cos) / 2 of each row in float64, as `ongebd.estimator.cosine_error` has it: (B, D) → (B,)."""
    f, g = features.double(), anticipated.double()
    norms = ((f * f).sum(-1) * (g * g).sum(-1)).sqrt()
    return torch.where(norms == 0, 0.5, ((1 - (f * g).sum(-1) / norms) / 2).clamp(0, 1))


def newest_last(window: Tensor, newest: Tensor) -> Tensor:
    """A window (B, L, …) without its oldest entry and with the newest (B, …) behind."""
    return torch.cat([window[:, 1:], newest[:, None].to(window.dtype)], dim=1)
