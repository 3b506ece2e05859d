"""Small luma pictures, and what is measured on them: change, motion, cuts, likeness of settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ongebd.data.files import FloatArray
from ongebd.types import ImageU8

SIDE = 32
"""Side of a small luma picture, pixels."""

LumaU8 = npt.NDArray[np.uint8]
"""Small luma pictures, shape (SIDE, SIDE) or (n, SIDE, SIDE)."""

_LAG = 0.125  # seconds over which motion is measured
_STRONGEST = SIDE * SIDE // 20
_CUT_LEAST, _CUT_RATIO = 6.0, 3.0
_SOFT_LEAST, _SOFT_RATIO = 18.0, 4.0
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Change:
    """How much two small pictures differ, of 255: on average, and in the twentieth that differs most."""

    mean: float
    strongest: float


def resampled(
    picture: ImageU8, x: float, y: float, width: float, height: float, size: tuple[int, int]
) -> ImageU8:
    """A part of a picture at another size (width, height), bilinear.

    Args:
        picture: Shape (H, W, 3).
        x: Left edge of the part, pixels. A whole-numbered part of the wanted size is cut out unchanged.
        y: Its top edge.
        width: Its width.
        height: Its height.
        size: Of the result.
    """
    if width == size[0] and height == size[1] and x % 1 == 0 and y % 1 == 0:
        return picture[int(y) : int(y) + size[1], int(x) : int(x) + size[0]]
    rows = _interpolated(picture, y, height, size[1], 0)
    both = _interpolated(rows, x, width, size[0], 1)
    return (both + np.float32(0.5)).astype(np.uint8)


def _interpolated(
    values: npt.NDArray[np.generic], edge: float, length: float, count: int, axis: int
) -> npt.NDArray[np.float32]:
    """Values at the middles of `count` equal parts of a stretch along an axis."""
    places = np.clip(edge + (np.arange(count) + 0.5) * (length / count) - 0.5, 0, values.shape[axis] - 1)
    low = places.astype(np.intp)
    high = np.minimum(low + 1, values.shape[axis] - 1)
    share = (places - low).astype(np.float32).reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
    first = np.take(values, low, axis).astype(np.float32, copy=False)
    second = np.take(values, high, axis).astype(np.float32, copy=False)
    mixed: npt.NDArray[np.float32] = first + (second - first) * share
    return mixed


def small_luma(picture: ImageU8) -> LumaU8:
    """The small luma picture of one whose shorter side has SIDE pixels or a few more."""
    luma = picture.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    rows, columns = ((np.arange(SIDE) + 0.5) * length / SIDE for length in luma.shape)
    return luma[np.ix_(rows.astype(np.intp), columns.astype(np.intp))].astype(np.uint8)


def change(first: LumaU8, second: LumaU8) -> Change:
    """How much two small pictures differ."""
    apart = np.abs(first.astype(np.int16) - second.astype(np.int16)).ravel()
    return Change(float(apart.mean()), float(np.partition(apart, -_STRONGEST)[-_STRONGEST:].mean()))


def motion_of(luma: LumaU8, times: FloatArray) -> FloatArray:
    """How much moves at each frame: the strongest change within an eighth of a second from it, shape (n,)."""
    later = np.minimum(np.searchsorted(times, times + _LAG - 1e-6), len(times) - 1)
    result = np.array([change(luma[after], luma[now]).strongest for now, after in enumerate(later)])
    if len(times) > 1:  # nothing follows the last frames: they move like the one before
        whole = max(int(np.searchsorted(times, times[-1] - _LAG, side="right")), 1)
        result[whole:] = result[whole - 1]
    return result


def steps_of(luma: LumaU8) -> FloatArray:
    """Mean change from each frame to the next, shape (n − 1,)."""
    steps = [change(first, second).mean for first, second in pairwise(luma)]
    return np.array(steps, dtype=np.float64)


def turnover_of(luma: LumaU8, times: FloatArray, cuts: Sequence[int]) -> FloatArray:
    """Mean change from the half second before each frame to the half second from it on, shape (n,).

    No half second crosses a cut; beside one it is shorter.
    """
    edges = np.array([0, *cuts, len(times)])
    shot = np.searchsorted(edges, np.arange(len(times)), side="right")
    before = np.maximum(np.searchsorted(times, times - _HALF), edges[shot - 1])
    after = np.minimum(np.searchsorted(times, times + _HALF), edges[shot])
    total = np.concatenate([np.zeros((1, SIDE, SIDE), np.int32), luma.cumsum(0, dtype=np.int32)])
    result = np.zeros(len(times))
    for place, (low, high) in enumerate(zip(before, after, strict=True)):
        if low < place < high:
            earlier = (total[place] - total[low]) / (place - low)
            later = (total[high] - total[place]) / (high - place)
            result[place] = np.abs(later - earlier).mean()
    return result


def cuts_of(steps: FloatArray, times: FloatArray) -> list[int]:
    """Frames that begin a new shot: the step to them is far larger than those within half a second."""
    found = []
    for place, step in enumerate(steps):
        if step <= _CUT_LEAST:
            continue
        low = int(np.searchsorted(times, times[place + 1] - _HALF))
        high = int(np.searchsorted(times, times[place + 1] + _HALF))
        others = np.concatenate([steps[low:place], steps[place + 1 : max(high - 1, place + 1)]])
        usual = float(np.quantile(others, 0.8)) if len(others) else 0.0
        if step > _CUT_RATIO * usual + 1:
            found.append(place + 1)
    return found


def soft_changes_of(turnover: FloatArray, times: FloatArray) -> list[int]:
    """Frames at which the picture is replaced within a second, by a dissolve for example."""
    found = []
    for place in np.flatnonzero(turnover > _SOFT_LEAST):
        low = np.searchsorted(times, times[place] - 5 * _HALF)
        high = np.searchsorted(times, times[place] + 5 * _HALF)
        if turnover[place] > _SOFT_RATIO * np.median(turnover[low:high]) + 1:
            found.append(int(place))
    return found


def unit_picture(picture: npt.NDArray[np.floating]) -> FloatArray:
    """A small picture as a vector whose product with another is their correlation; zeros if it is blank."""
    flat = picture.ravel() - picture.mean()
    norm = float(np.linalg.norm(flat))
    unit: FloatArray = flat / norm if norm > 0 else flat
    return unit


def likeness(first: FloatArray, second: FloatArray) -> float:
    """Correlation of two small pictures, −1 to 1; 0 if one of them is blank."""
    return float(unit_picture(first) @ unit_picture(second))
