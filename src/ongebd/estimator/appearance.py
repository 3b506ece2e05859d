"""How far the newest features lie from earlier ones, at many horizons; from their Gram matrix alone.

A *window* is the mean of a run of features. Each cue compares two windows: their cosine error
e = (1 − cos) / 2 needs the products of the two with themselves and each other, wᵀ G v, of which G, the Gram
matrix of the last features, is enough: each feature itself is used only once.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ongebd.types import AGO, Feature

Window = tuple[int, int]
"""Its newest frame, counted back from the present one (0), and its length, in frames."""

NOW: Window = (0, 1)
SMOOTHED = (2, 4, 8, 12)
SHORT_AND_LONG = ((1, 4), (2, 8), (4, 8), (4, 16), (8, 16), (8, 32), (12, 24), (12, 48))
NOVELTY = (4, 8, 12, 20)
MEMORY, RECENT = (8, 16, 32, 64), 2
"""Spans of the memory, in looks of the network, of which there are four a second; it skips the newest two."""

_HORIZON_PAIRS: dict[str, tuple[Window, Window]] = {
    **{f"to {k} ago": (NOW, (k, 1)) for k in AGO},
    **{f"to mean of {k}": (NOW, (1, k)) for k in AGO[1:]},
    **{f"mean of {k} to {k} ago": ((0, k), (k, k)) for k in SMOOTHED},
}
_WINDOW_PAIRS: dict[str, tuple[Window, Window]] = {
    f"mean of {s} to {n} before": ((0, s), (s, n)) for s, n in SHORT_AND_LONG
}
_PAIRS = {**_HORIZON_PAIRS, **_WINDOW_PAIRS}
_WINDOWS = sorted({window for pair in _PAIRS.values() for window in pair})
FIRST = np.array([_WINDOWS.index(pair[0]) for pair in _PAIRS.values()])
SECOND = np.array([_WINDOWS.index(pair[1]) for pair in _PAIRS.values()])
LENGTH = max(start + length for start, length in _WINDOWS)
FLOOR = 2e-3
_ENOUGH, _SPANS = 4, np.array(MEMORY) - RECENT  # features, for a novelty
TINY = 1e-6

HORIZON_NAMES = (*_HORIZON_PAIRS, *(f"log {name}" for name in _HORIZON_PAIRS))
WINDOW_NAMES = (
    *_WINDOW_PAIRS,
    *(f"log {name}" for name in _WINDOW_PAIRS),
    *(f"log novelty {k}" for k in NOVELTY),
)
MEMORY_NAMES = tuple(f"log nearest of {k} looks" for k in MEMORY)


class AppearanceCues:
    """Cues from the network's features of one stream.

    `horizons` (46): the error e of the newest feature against the one k frames ago, and against the mean of
    the k before it; of the mean of the last k against the k before those; and log(e + 0.002) of each.

    `windows` (20): the error of the mean of the last s against the mean of the L before those, and its
    logarithm; and the logarithm of Foote's novelty in the last 2k features, (N + O − 2 M) / 2, of the mean
    cosines N among the newer half, O among the older, and M between the two. Under four features it is 0.

    `memory` (4): see `LookMemory`.

    Args:
        dim: D, numbers in a feature.
    """

    names = (*HORIZON_NAMES, *WINDOW_NAMES, *MEMORY_NAMES)

    def __init__(self, dim: int) -> None:
        self.recent, self._memory = RecentFeatures(dim, LENGTH), LookMemory(dim)
        self.state_bytes = self.recent.state_bytes + self._memory.state_bytes

    def reset(self) -> None:
        """Forget everything."""
        self.recent.reset()
        self._memory.reset()

    def update(self, feature: Feature) -> npt.NDArray[np.float32]:
        """Take the next frame's feature, float32, (D,); the cues, float32, in the order of `names`."""
        if self.recent.add(feature):
            self._memory.add(feature)
        plan = window_plan(self.recent.count)
        gram = self.recent.gram.astype(np.float64)
        norms = np.maximum(np.sqrt(gram.diagonal()), TINY)
        products = (plan.windows @ gram) @ plan.windows.T  # (windows, windows)
        squares = products.diagonal()
        lengths = np.sqrt(squares[FIRST] * squares[SECOND])
        error = np.maximum((1.0 - products[FIRST, SECOND] / np.maximum(lengths, TINY)) / 2.0, 0.0)
        log_error = np.log(error + FLOOR)

        halves = plan.halves / norms
        cosines = (halves @ gram) @ halves.T  # (newer and older halves)²
        alike = cosines.diagonal()
        novelty = (alike[:_K] + alike[_K:]) / 2.0 - cosines[_NEWER, _NEWER + _K]
        novelty = np.maximum(novelty, 0.0) * plan.enough
        horizons, windows = (error[:SPLIT], log_error[:SPLIT]), (error[SPLIT:], log_error[SPLIT:])
        logs = np.log(np.concatenate([novelty + FLOOR, self._memory.nearest]))
        return np.concatenate([*horizons, *windows, logs]).astype(np.float32)


SPLIT = len(_HORIZON_PAIRS)
_K = len(NOVELTY)
_NEWER = np.arange(_K)


class WindowPlan(NamedTuple):
    """How features are weighed while so many are known; each row is a mean's.

    Attributes:
        windows: (windows, length).
        halves: The newer halves for each of `NOVELTY`, then the older ones, (2 K, length).
        enough: 1 where there are enough features for a novelty, else 0, (K,).
    """

    windows: npt.NDArray[np.float64]
    halves: npt.NDArray[np.float64]
    enough: npt.NDArray[np.float64]


@cache
def window_plan(count: int) -> WindowPlan:
    """The weights while `count` features are known: at most `LENGTH` plans are ever made."""
    known = [min(2 * k, count) for k in NOVELTY]
    newer = [(0, n - n // 2) for n in known]
    older = [(min(n - n // 2, n - 1), n) for n in known]
    return WindowPlan(
        np.stack([_mean(*_span(window, count)) for window in _WINDOWS]),
        np.stack([_mean(*span) for span in newer + older]),
        np.array([float(n >= _ENOUGH) for n in known]),
    )


def _mean(first: int, behind: int) -> npt.NDArray[np.float64]:
    weights = np.zeros(LENGTH)
    weights[first:behind] = 1.0 / (behind - first)
    return weights


def _span(window: Window, count: int) -> tuple[int, int]:
    """The first and behind the last of a window's frames, counted back, by the rule for a stream's start."""
    start, length = window
    first = min(start, count - 1)
    return first, max(min(start + length, count), first + 1)


class RecentFeatures:
    """The last features of one stream and their Gram matrix, kept up to date by one product a frame.

    Features are rounded to bfloat16 (the upper half of a float32, to nearest even) as they come: half the
    memory, and angles between them change by less than 0.1°, far below those of sensor noise. Every entry of
    the matrix is computed once, so that no error grows with the stream; a repeated feature's are known.

    Args:
        dim: D, numbers in a feature.
        length: How many are kept.

    Attributes:
        count: How many there are, `length` at most.
        gram: float32, (length, length): of the i-th and the j-th last feature, from 0, the dot product; 0
            if there are fewer features.
    """

    def __init__(self, dim: int, length: int) -> None:
        self._ring: npt.NDArray[np.uint16] = np.empty((length, dim), np.uint16)
        self._next, self.count, self._last = 0, 0, b""
        self.gram: npt.NDArray[np.float32] = np.zeros((length, length), np.float32)
        self.state_bytes = self._ring.nbytes + self.gram.nbytes + 4 * dim

    def reset(self) -> None:
        """Forget all."""
        self._next, self.count, self._last = 0, 0, b""
        self.gram.fill(0)

    def add(self, feature: Feature) -> bool:
        """Take the next one, float32, (D,); whether it differs from the last."""
        at, before, self._last = self._next, self._last, feature.tobytes()
        self._next = (at + 1) % len(self._ring)
        self.count = n = min(self.count + 1, len(self._ring))
        self.gram[1:, 1:] = self.gram[:-1, :-1]
        if self._last == before:
            self._ring[at] = self._ring[at - 1]
            self.gram[0, 1:] = self.gram[1:, 0] = self.gram[1, 1:]
            return False
        self._ring[at] = to_bfloat16(feature)
        past = from_bfloat16(self._ring[:n])
        # Not by `@`: BLAS would wake a thread on each core for this, and bits would depend on their number.
        dots = np.einsum("ij,j->i", past, past[at])
        self.gram[0, :n] = self.gram[:n, 0] = np.concatenate([dots[at::-1], dots[:at:-1]])
        return True


class LookMemory:
    """Whether one stream looked like this before: the features that the network gave at its last 65 looks.

    Args:
        dim: D, numbers in a feature.

    Attributes:
        nearest: The smallest error of the newest look against those from 2 to 8, 16, 32 and 64 looks ago, at
            least 0.002; while there is none, against the first.
    """

    def __init__(self, dim: int) -> None:
        self._looks = RecentFeatures(dim, MEMORY[-1] + 1)
        self.state_bytes = self._looks.state_bytes
        self.reset()

    def reset(self) -> None:
        """Forget all."""
        self._looks.reset()
        self.nearest = np.full(len(MEMORY), FLOOR)

    def add(self, feature: Feature) -> None:
        """Take what the network gave at its next look, float32, (D,)."""
        self._looks.add(feature)
        gram = self._looks.gram[: self._looks.count, : self._looks.count]
        norms = np.sqrt(gram.diagonal())
        errors = (1.0 - gram[0] / np.maximum(norms * norms[0], TINY)) / 2.0
        earlier = np.maximum(errors[min(RECENT, len(errors) - 1) :], FLOOR)  # below it, rounding would decide
        self.nearest = np.minimum.accumulate(earlier)[np.minimum(_SPANS, len(earlier) - 1)]


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
