"""Bootstrap over videos: how much of a score is the luck of which videos were drawn.

All sums that scores are made of are drawn with the same videos, so that differences between two systems, or
between a system and its floor, are paired.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ongebd.data.numbers import FloatArray
from ongebd.lab.evaluation.counts import Counts, Scores

_CHUNK = 2_000_000  # elements of the table of weights


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval: the percentiles 2.5 and 97.5 of the bootstrap samples."""

    low: float
    high: float

    @classmethod
    def of(cls, samples: FloatArray) -> Interval | None:
        """The interval of samples, shape (B,); None where there is none or one of them is not a number."""
        if not len(samples) or not np.isfinite(samples).all():
            return None
        low, high = np.percentile(samples, [2.5, 97.5])
        return cls(float(low), float(high))


def resampled_sums(values: FloatArray, resamples: int, seed: int) -> FloatArray:
    """Sums over videos drawn with replacement.

    Args:
        values: One row a video, shape (V, K).
        resamples: How many draws, B.
        seed: The same seed draws the same videos.

    Returns:
        Shape (B, K); no rows where there are fewer than two videos, since one cannot vary.
    """
    videos = len(values)
    if videos < 2:
        return np.zeros((0, values.shape[1]))
    rng = np.random.default_rng(seed)
    sums = []
    step = max(1, _CHUNK // videos)
    for start in range(0, resamples, step):
        draws = rng.integers(0, videos, (min(step, resamples - start), videos))
        weights = np.array([np.bincount(row, minlength=videos) for row in draws], dtype=np.float64)
        sums.append(weights @ values)
    return np.concatenate(sums) if sums else np.zeros((0, values.shape[1]))


def resampled_scores(
    players: Mapping[str, Counts], resamples: int, seed: int, extra: FloatArray
) -> tuple[dict[str, Scores], FloatArray]:
    """Scores of several players on the same draws of videos.

    Args:
        players: Counts by name, arrays of shape (V, T), T of each player's own.
        resamples: How many draws, B.
        seed: The seed of the draws.
        extra: Another value a video, summed likewise, shape (V,).

    Returns:
        Scores by name, arrays of shape (B, T); and the sums of `extra`, shape (B,).
    """
    blocks = [
        part for counts in players.values() for part in (counts.tp, counts.positives, counts.detections)
    ]
    table = np.concatenate([*blocks, extra[:, None]], axis=1).astype(np.float64)
    sums = resampled_sums(table, resamples, seed)
    scores = {}
    start = 0
    for name, counts in players.items():
        width = counts.tp.shape[1]
        tp, positives, detections = (sums[:, start + i * width : start + (i + 1) * width] for i in range(3))
        scores[name] = Scores.of(tp, positives, detections)
        start += 3 * width
    return scores, sums[:, -1]
