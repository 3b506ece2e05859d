"""The Online Boundary Discriminator on B streams together: `BoundaryDiscriminator`, as tensors. Needs torch.

Mean and deviation are computed afresh from each queue in float64, so nothing drifts however long a stream is.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

SETTINGS = ("tau", "delta", "warmup", "min_std", "min_error", "inliers_only")
"""The columns of the settings, one row a stream."""

_MOST = 1e9


class Verdicts(NamedTuple):
    """On one frame of each stream, (B,) each: see `BoundaryDiscriminator`."""

    mean: Tensor
    std: Tensor
    z: Tensor
    threshold: Tensor
    positive: Tensor
    ready: Tensor


def judge(
    errors: Tensor, known: Tensor, queue: Tensor, filled: Tensor, settings: Tensor
) -> tuple[Verdicts, Tensor, Tensor]:
    """Test one error of each stream, then add it to the stream's queue.

    Args:
        errors: ε, (B,), float64.
        known: Whether there is one, (B,), bool; if not, the queue stays as it is.
        queue: The last errors, the newest last, (B, Δ), of which the last `filled` count. Δ is the largest of
            all streams; a stream with a smaller one looks at fewer.
        filled: How many errors there were, up to Δ, (B,), int64.
        settings: (B, 6), float64, as in `SETTINGS`.

    Returns:
        The verdicts, the new queue, and how far it is filled.
    """
    tau, delta, warmup, min_std, min_error, inliers_only = settings.unbind(1)
    length = queue.shape[1]
    count = torch.minimum(filled.double(), delta)
    age = torch.arange(length, 0, -1, device=queue.device)  # (Δ,): 1 for the newest
    counts = age <= count[:, None]  # (B, Δ)
    share = count.clamp_min(1)
    mean = torch.where(counts, queue, 0).sum(1) / share
    std = (torch.where(counts, queue - mean[:, None], 0).square().sum(1) / share).sqrt()
    spread = torch.maximum(std, min_std)
    above = errors - mean
    steep = (above / torch.where(spread > 0, spread, 1)).clamp(-_MOST, _MOST)
    ready = count >= warmup
    z = torch.where(ready, torch.where(spread > 0, steep, above.sign() * _MOST), 0)
    positive = known & ready & (z > tau) & (errors > min_error)
    threshold = torch.maximum(mean + tau * spread, min_error)
    joins = known & ~(positive & (inliers_only > 0))
    joined = torch.cat([queue[:, 1:], errors[:, None]], dim=1)
    queue = torch.where(joins[:, None], joined, queue)
    filled = torch.where(joins, (filled + 1).clamp_max(length), filled)
    return Verdicts(mean, std, z, threshold, positive, ready), queue, filled
