"""PA, predictability assessment: boundaries are where the future is farthest from the past.

Shou, Lei, Wang, Ghadiyaram and Feiszli: Generic Event Boundary Detection: A Benchmark for Event
Segmentation. ICCV 2021. Its public code (github.com/StanLei52/GEBD) takes every third frame; a moment's
error is the mean squared difference between the mean feature of five frames before it and of five after it.
The Laplacian of a Gaussian of the negative errors, σ = 15, peaks at blobs of large error: each peak is a
boundary, whatever its height, and nothing is a threshold.

Differs: the code compares ResNet-50's maps before pooling, a store has pooled features. *PA-Random* isn't
in the public code, and we did not have the paper's text: that each video gets the boundaries of another one,
at the same places relative to its length, is our reading of the name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ongebd.offline.whole_video import Scores, stride_of

FPS = 8.0
"""Frames a second that it looks at: every third of 24."""
SIDE = 5
"""Frames before, and after."""
SIGMA = 15.0
"""Of the Laplacian of a Gaussian, in those frames."""


def score_video(features: npt.NDArray[np.float32], fps: float, sigma: float = SIGMA) -> Scores:
    """1 for the boundaries of a video with features (T, D), 0 for its other frames.

    >>> still = np.repeat(np.float32([[1, 0], [0, 1]]), 60, axis=0)
    >>> np.flatnonzero(score_video(still, 8.0))
    array([59])
    """
    stride, out = stride_of(fps, FPS), np.zeros(len(features))
    sampled = features[::stride].astype(np.float64)
    windows = len(sampled) - 2 * SIDE + 1
    if windows < 2:
        return out
    total = np.concatenate([np.zeros((1, sampled.shape[1])), sampled.cumsum(axis=0)])
    means = (total[SIDE:] - total[:-SIDE]) / SIDE
    errors = np.square(means[:windows] - means[SIDE:]).mean(axis=1)
    for window in _peaks(laplacian_of_gaussian(-errors, sigma)):
        out[stride * (window + SIDE - 1)] = 1.0  # the last frame before
    return out


def _peaks(curve: Scores) -> list[int]:
    """Where the slope of a curve turns from up to down: the nearer of the two places."""
    slope = np.gradient(curve)
    up = np.flatnonzero((slope[:-1] >= 0) & (slope[1:] <= 0) & (slope[:-1] > slope[1:]))
    return [int(place + (slope[place] > -slope[place + 1])) for place in up]


def laplacian_of_gaussian(signal: Scores, sigma: float) -> Scores:
    """The second derivative of a smoothed signal; its ends go on as they are. Four σ to either side count."""
    reach = int(4 * sigma + 0.5)
    place = np.arange(-reach, reach + 1)
    bell = np.exp(-0.5 * (place / sigma) ** 2)
    kernel = bell / bell.sum() * (place**2 / sigma**4 - 1 / sigma**2)
    return np.convolve(np.pad(signal, reach, mode="edge"), kernel, mode="valid")


def swapped(scores: Sequence[Scores], seed: int = 0) -> list[Scores]:
    """PA-Random: the scores of other videos, squeezed or stretched to each video's frames.

    >>> [each.tolist() for each in swapped([np.array([0.0, 1.0]), np.array([1.0, 0, 0, 0])])]
    [[1.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
    """
    order = np.random.default_rng(seed).permutation(len(scores))
    given = dict(zip(order.tolist(), np.roll(order, 1).tolist(), strict=True))
    out = []
    for number, own in enumerate(scores):
        other, new = scores[given[number]], np.zeros(len(own))
        if len(own):
            new[np.flatnonzero(other) * len(own) // max(1, len(other))] = 1.0
        out.append(new)
    return out
