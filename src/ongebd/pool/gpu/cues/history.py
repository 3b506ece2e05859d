"""What is kept of the last frames of each stream: the newest first. Needs torch."""

from __future__ import annotations

from torch import Tensor, cat


def with_newest(newest: Tensor, past: Tensor) -> Tensor:
    """The newest (B, …) before the past (B, L, …): (B, L + 1, …)."""
    return cat([newest[:, None].to(past.dtype), past], dim=1)


def frames_ago(history: Tensor, lags: Tensor, seen: Tensor) -> Tensor:
    """What was so many frames ago, or at the stream's first frame where that is less long ago.

    Args:
        history: The newest frame first, (B, L, …).
        lags: In frames, below L, (n,), int64.
        seen: Frames of each stream before the newest, (B,), int64.

    Returns:
        (B, n, …).
    """
    places = lags.minimum(seen[:, None])  # (B, n)
    places = places.view(*places.shape, *[1] * (history.dim() - 2))
    return history.gather(1, places.expand(-1, -1, *history.shape[2:]))


def weight_of_newest(least: float, seen: Tensor, offset: int) -> Tensor:
    """How much the newest frame counts in a running mean: evenly at first, then as its half-life has it.

    Args:
        least: The weight in the long run.
        seen: Frames of each stream before the newest, (B,), int64.
        offset: The weight is 1 / (seen + offset) at first.

    Returns:
        (B,), float32.
    """
    return (1.0 / (seen.double() + offset)).clamp_min(least).float()
