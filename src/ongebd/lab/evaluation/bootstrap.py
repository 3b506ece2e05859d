"""Bootstrap over videos: how much of a score is the luck of which videos were drawn.

All sums are drawn with the same videos, so differences between two systems, or between a system and its
floor, are paired.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ongebd.data.numbers import FloatArray
from ongebd.lab.evaluation.counts import Counts, Scores

_CHUNK = 2_000_000  # elements of the table of weights


class Interval(NamedTuple):
    """A 95 % interval: the percentiles 2.5 and 97.5 of the bootstrap samples."""

    low: float
    high: float

    @classmethod
    def of(cls, samples: FloatArray) -> Interval | None:
        """The interval of samples, shape (B,); None without samples, or if one isn't finite."""
        if not len(samples) or not np.isfinite(samples).all():
            return None
        low, high = np.percentile(samples, [2.5, 97.5])
        return cls(float(low), float(high))


def resampled_sums(values: FloatArray, resamples: int, seed: int) -> FloatArray:
    """Sums over videos drawn with replacement; the same seed draws the same videos.

    Args:
        values: One row per video, shape (V, K).
        resamples: The number of draws, B.
        seed: Of the draws.

    Returns:
        Shape (B, K); (0, K) for fewer than two videos, because one video can't vary.
    """
    videos = len(values)
    sums = [np.zeros((0, values.shape[1]))]
    rng = np.random.default_rng(seed)
    step = max(1, _CHUNK // max(1, videos))
    for start in range(0, resamples if videos > 1 else 0, step):
        draws = rng.integers(0, videos, (min(step, resamples - start), videos))
        weights = np.array([np.bincount(row, minlength=videos) for row in draws], dtype=np.float64)
        sums.append(weights @ values)
    return np.concatenate(sums)


def resampled_scores(
    players: Mapping[str, Counts], resamples: int, seed: int, extra: FloatArray
) -> tuple[dict[str, Scores], FloatArray]:
    """Scores of several players on the same draws of videos.

    Args:
        players: Counts by name, arrays of shape (V, T); T may differ between players.
        resamples: The number of draws, B.
        seed: Of the draws.
        extra: Another value per video to sum, shape (V,).

    Returns:
        Scores by name, arrays of shape (B, T); and the sums of `extra`, shape (B,).
    """
    blocks = [part for each in players.values() for part in (each.tp, each.positives, each.detections)]
    table = np.concatenate([*blocks, extra[:, None]], axis=1).astype(np.float64)
    sums = resampled_sums(table, resamples, seed)
    ends = np.cumsum([block.shape[1] for block in blocks])
    parts = iter(np.split(sums, ends, axis=1))
    return {name: Scores.of(next(parts), next(parts), next(parts)) for name in players}, sums[:, -1]
