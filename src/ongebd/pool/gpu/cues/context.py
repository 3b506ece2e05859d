"""What the trees of B streams see: `Context`, as tensors. Needs torch."""

from __future__ import annotations

import torch
from torch import Tensor

from ongebd.estimator.cues.context import CONTEXT, LEAST_WEIGHT
from ongebd.pool.gpu.cues.history import frames_ago, weight_of_newest, with_newest


class BatchedContext:
    """The cues now, 3, 6 and 12 frames ago, and now less their running mean.

    Of each stream the cues of the last 12 frames are kept, (12, C), and their mean, (C,), both float32.

    Args:
        cues: C.
        device: Where to compute.
    """

    def __init__(self, cues: int, device: torch.device) -> None:
        self._lags = torch.tensor(CONTEXT, device=device)
        self._past = torch.zeros(1, max(CONTEXT), cues, device=device)

    def initial(self, streams: int) -> tuple[Tensor, Tensor]:
        """No cues, and no mean."""
        return self._past.expand(streams, -1, -1), self._past[:, 0].expand(streams, -1)

    def step(self, cues: Tensor, past: Tensor, mean: Tensor, seen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The inputs for the next frame.

        Args:
            cues: (B, C), float32.
            past: Of the frames before, (B, 12, C).
            mean: Of them, (B, C).
            seen: How many there were since the stream began, (B,), int64.

        Returns:
            (B, 5 C), float32, as `context_names` has them; and the new past and mean.
        """
        recent = with_newest(cues, past)
        lagged = frames_ago(recent, self._lags, seen).flatten(1)
        before = torch.where(seen[:, None] > 0, mean, cues)
        above = cues - before
        weight = weight_of_newest(LEAST_WEIGHT, seen, 2)
        return torch.cat([lagged, above], dim=1), recent[:, :-1], before + weight[:, None] * above
