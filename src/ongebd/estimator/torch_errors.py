"""Prediction errors of many frames at once, with gradients. Needs torch.

The paper's error is the cosine distance, scaled to [0, 1]; its table of distances has three others, which
have no upper bound and are min-max normalised over the batch in training. In inference they are used as they
are (`ongebd.estimator.anticipation`): the discriminator compares errors with each other, and needs no bounds.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ongebd.estimator.anticipation import Metric

_TINY = 1e-12


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
