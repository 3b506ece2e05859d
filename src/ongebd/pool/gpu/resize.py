"""Resizing and cropping on the GPU, as the CPU's swscale does it. Needs torch.

swscale's bicubic is a separable filter, widened when it makes a picture smaller, with a cubic of a = −0.6 and
the border's pixels repeated. If a line of even length becomes half as long or less, its colour (not its
brightness) is first averaged over pairs of pixels. Here the two directions are two matrix products, and only
the part of the picture that the crop looks at is uploaded. Rounding makes a few pixels in a hundred differ by
one of 255.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ongebd.types import ImageU8
from ongebd.video.picture import View

Doubles = npt.NDArray[np.float64]
Weights = tuple[Doubles, Doubles]
_SHARPNESS = -0.6  # the cubic's a: swscale's default (its C is 0.6)


@dataclass(frozen=True, slots=True, eq=False)
class CropPlan:
    """How pictures of one size become squares.

    Attributes:
        rows: First and last + 1 of the rows that matter.
        columns: First and last + 1 of the columns that matter.
        weights: None if the picture only needs cutting; otherwise two matrices, float64. *Down* weighs the
            rows, (S, rows). *Across* weighs the columns for the brightness, and then for the colour if it is
            filtered in another way: (S or 2 S, columns).
    """

    rows: tuple[int, int]
    columns: tuple[int, int]
    weights: Weights | None

    def cut(self, picture: ImageU8) -> ImageU8:
        """The part of a picture that matters, a view: (rows, columns, 3)."""
        return picture[slice(*self.rows), slice(*self.columns)]


@lru_cache(maxsize=64)
def plan_crop(height: int, width: int, view: View, input_size: int) -> CropPlan:
    """What a backbone's `crop` does to pictures of one size.

    Args:
        height: Of the picture, in pixels.
        width: Of the picture, in pixels.
        view: How it is resized before the centre is cut out.
        input_size: S, of the square.
    """
    new_width, new_height = view.size(width, height)
    top, left = (new_height - input_size) // 2, (new_width - input_size) // 2
    if (new_width, new_height) == (width, height):
        return CropPlan((top, top + input_size), (left, left + input_size), None)
    down = bicubic_weights(height, new_height)[top : top + input_size]
    lines = [bicubic_weights(width, new_width)]
    if width % 2 == 0 and new_width <= width // 2:
        pairs = np.repeat(np.eye(width // 2), 2, axis=1) / 2  # the means of neighbouring pixels
        lines.append(bicubic_weights(width // 2, new_width) @ pairs)
    across = np.concatenate([line[left : left + input_size] for line in lines])
    rows, columns = _used(down), _used(across)
    return CropPlan(rows, columns, (down[:, slice(*rows)], across[:, slice(*columns)]))


def bicubic_weights(source: int, target: int) -> Doubles:
    """Which pixels of a line of `source` make each of `target` pixels, (target, source); rows sum to one.

    >>> bicubic_weights(4, 2).round(3).tolist()
    [[0.5, 0.436, 0.12, -0.056], [-0.056, 0.12, 0.436, 0.5]]
    """
    scale = source / target
    stretch = max(scale, 1.0)
    centre = (np.arange(target) + 0.5) * scale - 0.5
    first = np.floor(centre - 2 * stretch).astype(np.int64)
    places = first[:, None] + np.arange(int(np.ceil(4 * stretch)) + 2)  # (target, taps)
    taps = _cubic(np.abs(places - centre[:, None]) / stretch)
    taps /= taps.sum(axis=1, keepdims=True)
    weights = np.zeros((target, source))
    rows = np.broadcast_to(np.arange(target)[:, None], places.shape)
    np.add.at(weights, (rows, np.clip(places, 0, source - 1)), taps)
    return weights


def resized(pictures: Tensor, down: Tensor, across: Tensor) -> Tensor:
    """Parts of pictures, as `CropPlan.cut` gives them, made into squares.

    Args:
        pictures: uint8, (N, rows, columns, 3).
        down: The plan's weights of the rows, (S, rows), in the type to compute in.
        across: Those of the columns, transposed: (columns, S or 2 S).

    Returns:
        uint8, (N, S, S, 3).
    """
    planes = pictures.permute(0, 3, 1, 2).to(down.dtype)  # (N, 3, rows, columns)
    squares = torch.matmul(torch.matmul(down, planes), across).float()  # (N, 3, S, S or 2 S)
    if squares.shape[3] > squares.shape[2]:
        bright, squares = squares.chunk(2, dim=3)
        red, green, blue = (bright - squares).unbind(1)
        squares = squares + (0.299 * red + 0.587 * green + 0.114 * blue)[:, None]
    return squares.round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def _cubic(distance: Doubles) -> Doubles:
    d, a = distance, _SHARPNESS
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return np.where(d < 1, near, np.where(d < 2, far, 0.0))


def _used(weights: Doubles) -> tuple[int, int]:
    (places,) = np.nonzero(weights.any(axis=0))
    return int(places[0]), int(places[-1]) + 1
