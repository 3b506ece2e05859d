"""Brings a picture of any size to the one that a backbone looks at."""

from __future__ import annotations

import numpy as np
from av import VideoFrame
from av.video.reformatter import Interpolation, VideoReformatter

from ongebd.backbones.base import FrameError
from ongebd.common.geometry import fit_short_side
from ongebd.types import ImageU8


def resize_and_crop(rgb: ImageU8, resize_size: int, input_size: int) -> ImageU8:
    """Resize so that the shorter side is `resize_size`, then cut out the centre.

    The resizing is swscale's bicubic, as in the video reader. A picture that already has its size, such as
    one that the reader resized, is only cut.

    Args:
        rgb: An upright picture, uint8, shape (height, width, 3).
        resize_size: The shorter side before cutting, in pixels; the longer one follows `fit_short_side`.
        input_size: Height and width of the result, in pixels; at most `resize_size`.

    Returns:
        uint8, shape (input_size, input_size, 3), contiguous, never a view of `rgb`.

    Raises:
        FrameError: `rgb` is not such a picture.

    >>> resize_and_crop(np.zeros((720, 1280, 3), np.uint8), 256, 224).shape
    (224, 224, 3)
    """
    rgb = _check(rgb)
    height, width, _ = rgb.shape
    size = fit_short_side(width, height, resize_size)
    if size != (width, height):
        rgb = _resize(rgb, *size)
    return _centre(rgb, input_size)


def squash(rgb: ImageU8, width: int, height: int) -> ImageU8:
    """Bring the whole picture to one size, its shape given up (swscale's bicubic, as in the video reader).

    Args:
        rgb: An upright picture, uint8, shape (height, width, 3), of any size.
        width: Of the result, in pixels.
        height: Likewise.

    Returns:
        uint8, shape (height, width, 3), contiguous, never a view of `rgb`.

    Raises:
        FrameError: `rgb` is not such a picture.

    >>> squash(np.zeros((720, 1280, 3), np.uint8), 224, 224).shape
    (224, 224, 3)
    """
    rgb = _check(rgb)
    return rgb.copy() if rgb.shape[:2] == (height, width) else _resize(rgb, width, height)


def _check(rgb: ImageU8) -> ImageU8:
    rgb = np.asarray(rgb)
    if rgb.dtype != np.uint8 or rgb.ndim != 3 or rgb.shape[2] != 3 or 0 in rgb.shape:
        wanted = "uint8 of shape (height, width, 3), RGB"
        raise FrameError(f"crop: the frame is {rgb.dtype} of shape {rgb.shape}, wanted {wanted}")
    return rgb


def _resize(rgb: ImageU8, width: int, height: int) -> ImageU8:
    """The picture at another size. One thread: swscale's pool costs more than it saves on one picture."""
    frame = VideoFrame.from_ndarray(np.ascontiguousarray(rgb), "rgb24")
    # A reformatter of our own for each call keeps this a pure function that any thread may call.
    resized = VideoReformatter().reformat(
        frame, width, height, interpolation=Interpolation.BICUBIC, threads=1
    )
    return np.asarray(resized.to_ndarray(), np.uint8)


def _centre(rgb: ImageU8, size: int) -> ImageU8:
    height, width, _ = rgb.shape
    top, left = (height - size) // 2, (width - size) // 2
    return rgb[top : top + size, left : left + size].copy()
