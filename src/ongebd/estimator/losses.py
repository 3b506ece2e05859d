"""What the anticipator is trained with: errors, EST, REST, and batch-wise weighting. Needs torch.

The paper's error is the cosine distance, scaled to [0, 1]. Its table of distances has three others, without
an upper bound. Training min-max normalises them over the batch; inference doesn't.

The paper's section "Objective Functions", with its ambiguities settled:

- ε is kept `EPSILON` away from 0 and 1, where the logarithm has no value.
- The paper divides the K + 1 errors ε_{t−K} … ε_t by K, so that its mean can pass 1 and log(1 − ε̄) has no
  value. Here they are divided by their number, which at the start of a stream is less than K + 1.
- Batch-wise weighting multiplies the loss of boundaries, each term by its own label, by (other targets /
  boundaries) of the batch. Of the readings of the paper's words only this one balances.

**Shared windows.** L(ε_t, t) needs the errors of t−K … t, and so K + 1 windows, if each target stands alone.
In a run of frames the same errors serve all targets: N targets need N windows (and K more at the start of the
run), REST is a moving average, and so is the sum of EST. Same numbers, a tenth of the work.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ongebd.estimator.anticipation import Metric

_TINY = 1e-12
EPSILON = 1e-6
"""How far ε is kept from 0 and 1: 1 − EPSILON still differs from 1 in float32."""


def prediction_errors(features: Tensor, anticipated: Tensor, metric: Metric = "cosine") -> Tensor:
    """ε of each frame, in float32 whatever the inputs are.

    Args:
        features: f, (…, D).
        anticipated: f̂, (…, D).
        metric: "cosine": (1 − cos) / 2, the paper's equation "error", in [0, 1], and 1/2 where a norm is
            zero. "l1": mean of the absolute differences. "l2": Euclidean distance. "kl": KL divergence of
            softmax(f̂) from softmax(f); the paper does not say how features become distributions.

    Returns:
        (…).
    """
    f, g = features.float(), anticipated.float()
    if metric == "cosine":
        norms = ((f * f).sum(-1) * (g * g).sum(-1)).clamp_min(_TINY).sqrt()
        return ((1 - (f * g).sum(-1) / norms) / 2).clamp(0, 1)
    if metric == "l1":
        return (f - g).abs().mean(-1)
    if metric == "l2":
        length: Tensor = torch.linalg.vector_norm(f - g, dim=-1)
        return length
    log_f, log_g = functional.log_softmax(f, -1), functional.log_softmax(g, -1)
    return (log_f.exp() * (log_f - log_g)).sum(-1)


def min_max_normalised(errors: Tensor, known: Tensor) -> Tensor:
    """Errors moved and scaled so that the known ones of a batch span [0, 1].

    Smallest and largest count as constants: no gradient passes through them. Where all are equal, all become
    0.

    Args:
        errors: Any shape.
        known: Which of them are errors of real frames, the same shape.

    >>> import torch
    >>> min_max_normalised(torch.tensor([4.0, 2.0, 3.0, 99.0]), torch.tensor([True, True, True, False]))
    tensor([1.0000, 0.0000, 0.5000, 1.0000])
    """
    fixed = errors.detach()
    low = fixed.masked_fill(~known, torch.inf).amin()
    high = fixed.masked_fill(~known, -torch.inf).amax()
    return ((errors - low) / (high - low).clamp_min(_TINY)).clamp(0, 1)


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


def region_mean(errors: Tensor, region: int, lead: Tensor) -> Tensor:
    """ε̄_t, the mean of those of ε_{t−K} … ε_t that there are, (B, T).

    For `lead` see `region_mask`.

    >>> region_mean(torch.tensor([[1.0, 0.0, 0.5, 0.0]]), region=1, lead=torch.tensor([[0, 1, 2, 3]]))
    tensor([[1.0000, 0.5000, 0.2500, 0.2500]])
    """
    mask = region_mask(lead, region)
    total = (region_terms(errors, region) * mask).sum(-1)
    return total / mask.sum(-1).clamp_min(1)


def total_loss(
    errors: Tensor,
    targets: Tensor,
    lead: Tensor,
    *,
    region: int = 9,
    alpha: float = 0.5,
    weight: Tensor | float = 1.0,
    est: bool = True,
    rest: bool = True,
) -> Tensor:
    """L(ε_t, t) = α · REST(t) + Σ_{i=t−K}^{t} EST(i), the paper's equation "final_loss", for each frame t.

    REST is the EST loss of ε̄_t against y_t, the paper's equation "rest".

    Args:
        errors: ε of consecutive frames, (B, T).
        targets: y, (B, T).
        lead: See `region_mask`.
        region: K.
        alpha: α.
        weight: Of boundaries.
        est: Whether the sum of EST is in it.
        rest: Whether α · REST is in it.

    Returns:
        (B, T); meaningless where `lead` is negative.
    """
    total = torch.zeros_like(errors, dtype=torch.float32)
    if est:
        each = region_terms(est_loss(errors, targets, weight), region)  # (B, T, K + 1)
        total = total + (each * region_mask(lead, region)).sum(-1)
    if rest:
        total = total + alpha * est_loss(region_mean(errors, region, lead), targets, weight)
    return total


def balancing_weight(targets: Tensor, counted: Tensor) -> Tensor:
    """Other targets / boundaries; 1 if a batch has only one of the two.

    Only the `counted` ones, a mask of the same shape, are targets of this batch.

    >>> y = torch.tensor([True, False, False, False, True])
    >>> balancing_weight(y, torch.tensor([True, True, True, True, False]))
    tensor(3.)
    """
    boundaries = (targets & counted).sum()
    others = counted.sum() - boundaries
    ratio = others.float() / boundaries.clamp_min(1).float()
    return torch.where((boundaries > 0) & (others > 0), ratio, torch.ones_like(ratio))
