"""What an anticipator is, and how wrong it was."""

from __future__ import annotations

from math import isfinite, nan
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ongebd.types import Feature


@runtime_checkable
class Anticipator(Protocol):
    """Predicts the next feature from the last ones. It keeps no state: streams own theirs, and share it."""

    @property
    def name(self) -> str:
        """The name under which it is loaded."""

    @property
    def window(self) -> int:
        """L, the number of past features that it looks at."""

    def anticipate(self, past: npt.NDArray[np.float32]) -> Feature:
        """Predict the feature that comes next.

        Args:
            past: The features before it, oldest first, float32, shape (n, D) with 1 ≤ n ≤ `window`; n is
                smaller than `window` at the start of a stream only.

        Returns:
            f̂_t, float32, shape (D,).
        """
        ...


def cosine_error(feature: Feature, anticipated: Feature) -> float:
    """ε_t = (1 − cos(f_t, f̂_t)) / 2, in [0, 1], computed in float64 (the paper's prediction error).

    An anticipation of norm zero says nothing, and gives the error of one at right angles: 1/2. One that is
    not finite gives NaN.

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
