"""What the anticipator is trained with: EST, REST, their sum, and batch-wise weighting. Needs torch.

The paper's section "Objective Functions", with its ambiguities settled:

- ε is kept `EPSILON` away from 0 and 1, where the logarithm has no value.
- The paper divides the K + 1 errors ε_{t−K} … ε_t by K, so that its mean can pass 1 and log(1 − ε̄) has no
  value. Here they are divided by their number, which at the start of a stream is less than K + 1.
- Batch-wise weighting multiplies the loss of boundaries, each term by its own label, by (targets that are no
  boundary / targets that are) of the batch. Of the readings of the paper's words only this one balances.

**Shared windows.** L(ε_t, t) needs the errors of t−K … t, and so K + 1 windows, if each target stands alone.
In a run of frames the same errors serve all targets: N targets need N windows (and K more at the start of the
run), REST is a moving average, and so is the sum of EST. Same numbers, a tenth of the work.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

EPSILON = 1e-6
"""How far ε is kept from 0 and 1: 1 − EPSILON still differs from 1 in float32."""


def est_loss(errors: Tensor, targets: Tensor, weight: Tensor | float = 1.0) -> Tensor:
    """The EST loss: −y log ε − (1 − y) log(1 − ε), the paper's equation "est_loss".

    Args:
        errors: ε, in [0, 1], any shape.
        targets: y, whether each frame is a boundary, the same shape.
        weight: Of boundaries.

    >>> est_loss(torch.tensor([0.5, 0.0, 1.0]), torch.tensor([True, False, True])).round(decimals=4)
    tensor([0.6931, 0.0000, 0.0000])
    """
    safe = errors.float().clamp(EPSILON, 1 - EPSILON)
    return torch.where(targets.bool(), -weight * safe.log(), -torch.log1p(-safe))


def region_terms(values: Tensor, region: int) -> Tensor:
    """The values at t−K … t for each t: (B, T) → (B, T, K + 1), with 0 before the first."""
    length = values.shape[-1]
    padded = functional.pad(values, (region, 0))
    return torch.stack([padded[..., place : place + length] for place in range(region + 1)], dim=-1)


def region_mask(lead: Tensor, region: int) -> Tensor:
    """Which of t−K … t have an error, (B, T) → (B, T, K + 1).

    Args:
        lead: How many errors of the same stretch precede each frame's own, (B, T); negative where the frame
            has none itself.
        region: K.
    """
    back = torch.arange(region, -1, -1, device=lead.device)  # K … 0 frames before t
    return back <= lead.unsqueeze(-1)


def region_mean(errors: Tensor, region: int, lead: Tensor | None = None) -> Tensor:
    """ε̄_t, the mean of those of ε_{t−K} … ε_t that there are, (B, T).

    By default the first error of each row is the first of its stream; for `lead` see `region_mask`.

    >>> region_mean(torch.tensor([[1.0, 0.0, 0.5, 0.0]]), region=1)
    tensor([[1.0000, 0.5000, 0.2500, 0.2500]])
    """
    mask = region_mask(_lead(errors, lead), region)
    total = (region_terms(errors, region) * mask).sum(-1)
    return total / mask.sum(-1).clamp_min(1)


def rest_loss(
    errors: Tensor,
    targets: Tensor,
    region: int = 9,
    weight: Tensor | float = 1.0,
    lead: Tensor | None = None,
) -> Tensor:
    """The REST loss, (B, T): the EST loss of ε̄_t against y_t, the paper's equation "rest"."""
    return est_loss(region_mean(errors, region, lead), targets, weight)


def total_loss(
    errors: Tensor,
    targets: Tensor,
    *,
    region: int = 9,
    alpha: float = 0.5,
    weight: Tensor | float = 1.0,
    est: bool = True,
    rest: bool = True,
    lead: Tensor | None = None,
) -> Tensor:
    """L(ε_t, t) = α · REST(t) + Σ_{i=t−K}^{t} EST(i), the paper's equation "final_loss", for each frame t.

    Args:
        errors: ε of consecutive frames, (B, T).
        targets: y, (B, T).
        region: K.
        alpha: α.
        weight: Of boundaries.
        est: Whether the sum of EST is in it.
        rest: Whether α · REST is in it.
        lead: See `region_mask`.

    Returns:
        (B, T); meaningless where `lead` is negative.
    """
    lead = _lead(errors, lead)
    total = torch.zeros_like(errors, dtype=torch.float32)
    if est:
        each = region_terms(est_loss(errors, targets, weight), region)  # (B, T, K + 1)
        total = total + (each * region_mask(lead, region)).sum(-1)
    if rest:
        total = total + alpha * rest_loss(errors, targets, region, weight, lead)
    return total


def balancing_weight(targets: Tensor, counted: Tensor) -> Tensor:
    """Targets that are no boundary / targets that are; 1 where a batch has only one of the two.

    Only the `counted` ones, a mask of the same shape, are targets of this batch.

    >>> y = torch.tensor([True, False, False, False, True])
    >>> balancing_weight(y, torch.tensor([True, True, True, True, False]))
    tensor(3.)
    """
    boundaries = (targets & counted).sum()
    others = counted.sum() - boundaries
    ratio = others.float() / boundaries.clamp_min(1).float()
    return torch.where((boundaries > 0) & (others > 0), ratio, torch.ones_like(ratio))


def _lead(errors: Tensor, lead: Tensor | None) -> Tensor:
    if lead is not None:
        return lead
    return torch.arange(errors.shape[-1], device=errors.device).expand(errors.shape)
