"""What every backbone offers."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from ongebd.common.geometry import View
from ongebd.errors import FeatureError

Features = npt.NDArray[np.float32]
"""Features of several frames, shape (N, D)."""

FramesU8 = npt.NDArray[np.uint8]
"""Several pictures of one size, RGB, shape (N, height, width, 3)."""


class FrameError(FeatureError, ValueError):
    """A picture from which no feature can be made: wrong type or shape."""


class Backbone(Protocol):
    """A stateless function from pictures to features, safe to call from several threads at once."""

    @property
    def name(self) -> str:
        """The name under which the registry knows it."""

    @property
    def dim(self) -> int:
        """Numbers in a feature, D."""

    @property
    def input_size(self) -> int:
        """Height and width, in pixels, of the pictures that `embed` takes."""

    @property
    def view(self) -> View:
        """How a reader should resize pictures, so that `crop` need only cut."""

    @property
    def resize_size(self) -> int:
        """Length of the shorter side, in pixels, of a picture that was resized so."""

    @property
    def identity(self) -> str:
        """Name and weights, `"efficientnet_lite0@93756ab5d121"`: features compare only where these agree."""

    def crop(self, rgb: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """An upright picture (height, width, 3) of any size, made into one (S, S, 3) for `embed`."""

    def embed(self, frames: FramesU8) -> Features:
        """Features (N, D) of pictures (N, S, S, 3), S being `input_size`."""


def check_frames(frames: FramesU8, size: int) -> FramesU8:
    """The pictures as `embed` wants them, or an error that says what was given.

    Args:
        frames: Expected to be uint8, shape (N, size, size, 3).
        size: Height and width, in pixels.

    Raises:
        FrameError: Another type or shape.
    """
    frames = np.asarray(frames)
    if frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[1:] != (size, size, 3):
        wanted = f"uint8 of shape (N, {size}, {size}, 3), RGB"
        raise FrameError(
            f"embed: frames are {frames.dtype} of shape {frames.shape}, wanted {wanted}; `crop` makes them so"
        )
    return np.ascontiguousarray(frames)
