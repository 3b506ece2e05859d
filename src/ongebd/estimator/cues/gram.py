"""The last features of a stream, and how each of them lies to each other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ongebd.types import Feature


class RecentFeatures:
    """The last features of one stream and their Gram matrix, kept up to date by one product a frame.

    Features are rounded to bfloat16 (the upper half of a float32, to nearest even) as they come: half the
    memory, and angles between them change by less than 0.1°, far below those of sensor noise. Every entry of
    the matrix is computed once, so that no error grows with the length of the stream.

    Args:
        dim: D, numbers in a feature.
        length: How many are kept.

    Attributes:
        count: How many there are, `length` at most.
        gram: float32, (length, length): of the i-th and the j-th last feature, from 0, the dot product; 0
            where there is no such feature.
    """

    def __init__(self, dim: int, length: int) -> None:
        self._ring: npt.NDArray[np.uint16] = np.empty((length, dim), np.uint16)
        self._next = 0
        self.count = 0
        self.gram: npt.NDArray[np.float32] = np.zeros((length, length), np.float32)

    @property
    def state_bytes(self) -> int:
        """Of features and matrix."""
        return self._ring.nbytes + self.gram.nbytes

    def reset(self) -> None:
        """Forget all."""
        self._next = self.count = 0
        self.gram.fill(0)

    def add(self, feature: Feature) -> None:
        """Take the next one, float32, (D,)."""
        at = self._next
        self._ring[at] = to_bfloat16(feature)
        self._next = (at + 1) % len(self._ring)
        self.count = n = min(self.count + 1, len(self._ring))
        past = from_bfloat16(self._ring[:n])
        # Not by `@`: BLAS would wake a thread on each core for this, and bits would hang on their number.
        dots = np.einsum("ij,j->i", past, past[at])
        newest_first = np.concatenate([dots[at::-1], dots[:at:-1]])
        self.gram[1:, 1:] = self.gram[:-1, :-1]
        self.gram[0, :n] = self.gram[:n, 0] = newest_first


def to_bfloat16(x: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """The upper halves of finite float32 numbers, rounded to nearest even.

    >>> from_bfloat16(to_bfloat16(np.float32([1.0, 1.001, 3.1416])))
    array([1.      , 1.      , 3.140625], dtype=float32)
    """
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounded: npt.NDArray[np.uint16] = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return rounded


def from_bfloat16(upper: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """The float32 numbers again."""
    bits = upper.astype(np.uint32)
    np.left_shift(bits, 16, out=bits)
    return bits.view(np.float32)
