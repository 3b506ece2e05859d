"""What an anticipator is, and how wrong it was by each distance of the paper's table."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, nan
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ongebd.types import Feature

Metric = Literal["cosine", "l1", "l2", "kl"]
ErrorFunction = Callable[[Feature, Feature], float]
"""From (f_t, f̂_t), each (D,), to ε_t."""


@runtime_checkable
class Anticipator(Protocol):
    """Predicts the next feature from the last ones. It keeps no state; streams share it."""

    @property
    def name(self) -> str:
        """The name under which it is loaded."""

    @property
    def window(self) -> int:
        """L, the number of past features that it looks at."""

    def anticipate(self, past: npt.NDArray[np.float32]) -> Feature:
        """Predict the feature that comes next.

        Args:
            past: The features before it, oldest first, (n, D) with 1 ≤ n ≤ `window`; n is smaller than
                `window` at the start of a stream only.

        Returns:
            f̂_t, float32, (D,).
        """
        ...


def full_window(past: npt.NDArray[np.float32], length: int) -> npt.NDArray[np.float32]:
    """A window at the start of a stream, (L, D): the first feature repeated to the left, as in training.

    >>> full_window(np.float32([[1, 2], [3, 4]]), 3).tolist()
    [[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]]
    """
    missing = length - len(past)
    return past if missing <= 0 else np.concatenate([np.repeat(past[:1], missing, axis=0), past])


def cosine_error(feature: Feature, anticipated: Feature) -> float:
    """ε_t = (1 − cos(f_t, f̂_t)) / 2, in [0, 1], computed in float64 (the paper's prediction error).

    An anticipation of norm zero says nothing: its error is 1/2, as at right angles. One that is not finite
    gives NaN.

    >>> import numpy as np
    >>> east, north = np.float32([1, 0]), np.float32([0, 2])
    >>> cosine_error(east, 3 * east), cosine_error(east, north), cosine_error(east, -east)
    (0.0, 0.5, 1.0)
    """
    f = feature.astype(np.float64)
    g = anticipated.astype(np.float64)
    norms = float(np.sqrt((f @ f) * (g @ g)))
    if norms == 0.0:
        return 0.5
    if not isfinite(norms):
        return nan
    return float(np.clip((1.0 - (f @ g) / norms) / 2.0, 0.0, 1.0))


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
