"""How far features lie from earlier ones, of B streams: `AppearanceCues`, as tensors. Needs torch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ongebd.estimator.cues.appearance import FIRST, FLOOR, LENGTH, NOVELTY, SECOND, SPLIT, TINY, window_plan
from ongebd.pool.gpu.cues.history import with_newest

_K = len(NOVELTY)


class BatchedAppearance:
    """The cues in the order of `AppearanceCues.names`.

    Of each stream the features of the frames before are kept, in bfloat16, (59, D), and their Gram matrix,
    (59, 59), float32, both the newest first; zeros stand where there is no frame. How features are weighed
    hangs on how many there are: each stream picks its plan from a stack of all 60. Products of features are
    summed in float32, what is made of them in float64, as on the CPU.

    Args:
        dim: D, numbers in a feature, luma not among them.
        device: Where to compute.
    """

    def __init__(self, dim: int, device: torch.device) -> None:
        plans = [window_plan(count) for count in range(1, LENGTH + 1)]

        def stacked(name: str) -> Tensor:
            return torch.from_numpy(np.stack([getattr(plan, name) for plan in plans])).to(device)

        self._windows, self._halves, self._enough = stacked("windows"), stacked("halves"), stacked("enough")
        self._first = torch.from_numpy(FIRST).to(device)
        self._second = torch.from_numpy(SECOND).to(device)
        self._features = torch.zeros(1, LENGTH - 1, dim, dtype=torch.bfloat16, device=device)
        self._gram = torch.zeros(1, LENGTH - 1, LENGTH - 1, device=device)

    def initial(self, streams: int) -> tuple[Tensor, Tensor]:
        """No feature, and products of none."""
        return self._features.expand(streams, -1, -1), self._gram.expand(streams, -1, -1)

    def step(
        self, features: Tensor, past: Tensor, past_gram: Tensor, seen: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The cues of the next frame.

        Args:
            features: (B, D), float32.
            past: The features before, (B, 59, D), bfloat16.
            past_gram: Their products, (B, 59, 59), float32.
            seen: How many there were since the stream began, (B,), int64.

        Returns:
            (B, 66), float32; and the new features and products to be kept.
        """
        recent = with_newest(features, past)
        dots = (recent.float() * recent[:, :1].float()).sum(-1)  # (B, 60)
        below = torch.cat([dots[:, 1:, None], past_gram], dim=2)
        gram = torch.cat([dots[:, None], below], dim=1)  # (B, 60, 60)
        place = seen.clamp_max(LENGTH - 1)
        cues = self._cues(gram.double(), place)
        return cues, recent[:, :-1], gram[:, :-1, :-1]

    def _cues(self, gram: Tensor, place: Tensor) -> Tensor:
        windows = self._windows[place]  # (B, windows, 60)
        weighed = torch.bmm(windows, gram)
        squares = (weighed * windows).sum(-1)
        products = (weighed[:, self._first] * windows[:, self._second]).sum(-1)  # (B, pairs)
        lengths = (squares[:, self._first] * squares[:, self._second]).sqrt()
        error = ((1.0 - products / lengths.clamp_min(TINY)) / 2.0).clamp_min(0.0)
        log_error = (error + FLOOR).log()

        norms = gram.diagonal(dim1=1, dim2=2).sqrt().clamp_min(TINY)
        halves = self._halves[place] / norms[:, None]  # (B, 2 K, 60): the newer halves, then the older
        weighed = torch.bmm(halves, gram)
        alike = (weighed * halves).sum(-1)
        between = (weighed[:, :_K] * halves[:, _K:]).sum(-1)
        novelty = ((alike[:, :_K] + alike[:, _K:]) / 2.0 - between).clamp_min(0.0) * self._enough[place]
        parts = [
            error[:, :SPLIT],
            log_error[:, :SPLIT],
            error[:, SPLIT:],
            log_error[:, SPLIT:],
            (novelty + FLOOR).log(),
        ]
        return torch.cat(parts, dim=1).float()
