"""The window at the start of a stream, before L features are known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def full_window(past: npt.NDArray[np.float32], length: int) -> npt.NDArray[np.float32]:
    """The first feature repeated to the left until the window is full, as in training.

    Args:
        past: The features there are, oldest first, (n, D) with 1 ≤ n ≤ length.
        length: L.

    Returns:
        (L, D).

    >>> full_window(np.float32([[1, 2], [3, 4]]), 3).tolist()
    [[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]]
    """
    missing = length - len(past)
    return past if missing <= 0 else np.concatenate([np.repeat(past[:1], missing, axis=0), past])
