"""The prediction error of one frame by each distance of the paper's table, as the stream computes it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ongebd.estimator.anticipation import cosine_error
from ongebd.estimator.anticipator_config import Metric
from ongebd.types import Feature

ErrorFunction = Callable[[Feature, Feature], float]
"""From (f_t, f̂_t), each (D,), to ε_t."""


def l1_error(feature: Feature, anticipated: Feature) -> float:
    """The mean of the absolute differences, in float64.

    >>> l1_error(np.float32([1, 0]), np.float32([0, 0.5]))
    0.75
    """
    return float(np.abs(feature.astype(np.float64) - anticipated).mean())


def l2_error(feature: Feature, anticipated: Feature) -> float:
    """The Euclidean distance, in float64.

    >>> l2_error(np.float32([3, 0]), np.float32([0, 4]))
    5.0
    """
    return float(np.linalg.norm(feature.astype(np.float64) - anticipated))


def kl_error(feature: Feature, anticipated: Feature) -> float:
    """KL(softmax(f) ‖ softmax(f̂)), in float64.

    >>> kl_error(np.float32([1, 2]), np.float32([1, 2]))
    0.0
    """
    log_f, log_g = _log_softmax(feature), _log_softmax(anticipated)
    return max(0.0, float((np.exp(log_f) * (log_f - log_g)).sum()))


ERRORS: dict[Metric, ErrorFunction] = {
    "cosine": cosine_error,
    "l1": l1_error,
    "l2": l2_error,
    "kl": kl_error,
}


def _log_softmax(values: Feature) -> npt.NDArray[np.float64]:
    exact = values.astype(np.float64)
    exact -= exact.max()
    return np.asarray(exact - np.log(np.exp(exact).sum()))
