"""What a method needs to score one frame of each of B streams together, as tensors. Needs torch."""

from __future__ import annotations

import torch
from torch import Tensor

Rows = tuple[Tensor, ...]
"""State of B streams: tensors whose first dimension is B, of fixed shapes and types."""
Scored = tuple[Tensor, Tensor, Rows]
"""Scores, whether each is one, and new state: see `BatchedScorer.step`."""


class BatchedScorer:
    """A method at work on many streams: the GPU's counterpart of `ongebd.detector.detector.Scorer`.

    For a new kind of model write a subclass, and give the model's method (what it puts into a stream) a
    function `batched(device, dtype)` that makes one. See docs/runtime.md.

    A scorer keeps nothing of a stream. Its functions take and return *rows* of state, one row a stream. The
    engine decides where these lie, when a stream starts fresh, and what a broken frame must not change. The
    functions must consist of tensor operations alone and look at no value, so that a CUDA graph can capture
    them.

    Attributes:
        name: The method's.
        empty: The state of one stream before its first frame, (1, …) each.
        compiles: Whether `torch.compile` can take `step` and `prepare`; it can't take cuDNN's recurrent
            layers.
        cuts: Whether `step` gives the three `Signs` of a frame in further columns.
    """

    name: str
    empty: Rows
    compiles = True
    cuts = False

    def prepare(self, state: Rows) -> Rows:
        """What can be computed from the state before the next frame's feature is there; for `step`."""
        return ()

    def step(self, features: Tensor, state: Rows, prepared: Rows, seen: Tensor, time: Tensor) -> Scored:
        """The next frame.

        Args:
            features: (B, D), float32.
            state: `empty`, or from the step before; not changed.
            prepared: What `prepare` made of that state; meaningless for a stream's first frame.
            seen: Frames of each stream before this one, (B,), int64.
            time: Of this one, in seconds, (B,), float64.

        Returns:
            The scores, (B,), or (B, 13) with those columns, any float type; whether each frame has one, (B,),
            bool; and the new state.
        """
        raise NotImplementedError


def exact_cosine_errors(features: Tensor, anticipated: Tensor) -> Tensor:
    """(1 − cos) / 2 of each row in float64, like `ongebd.estimator.cosine_error`: (B, D) → (B,)."""
    f, g = features.double(), anticipated.double()
    norms = ((f * f).sum(-1) * (g * g).sum(-1)).sqrt()
    return torch.where(norms == 0, 0.5, ((1 - (f * g).sum(-1) / norms) / 2).clamp(0, 1))


def newest_last(window: Tensor, newest: Tensor) -> Tensor:
    """A window (B, L, …) without its oldest entry and with the newest (B, …) at its end."""
    return torch.cat([window[:, 1:], newest[:, None].to(window.dtype)], dim=1)
