"""What every backbone offers, and how any picture becomes the square that a network takes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from av import VideoFrame
from av.video.reformatter import Interpolation, VideoReformatter

from ongebd.errors import FrameError
from ongebd.types import ImageU8
from ongebd.video.picture import Fit, View

Features = npt.NDArray[np.float32]
"""Features of several frames, shape (N, D)."""

FramesU8 = npt.NDArray[np.uint8]
"""Several pictures of one size, RGB, shape (N, height, width, 3)."""


class Backbone:
    """A stateless function from pictures to features, safe to call from several threads.

    Anything with these attributes, `crop` and `embed` will do. A subclass needs only `_embed`.

    Attributes:
        name: The name under which the registry knows it.
        identity: Name and weights, `"efficientnet_lite0@93756ab5d121"`: features compare only if these agree.
        dim: Numbers in a feature, D.
        input_size: Height and width S, in pixels, of the pictures that `embed` takes.
        resize_size: Length of the shorter side, in pixels, of a picture resized like that.
        view: How a reader should resize pictures, so that `crop` need only cut.
    """

    def __init__(self, name: str, identity: str, dim: int, input_size: int, resize_size: int) -> None:
        self.name, self.identity, self.dim = name, identity, dim
        self.input_size, self.resize_size = input_size, resize_size
        self.view: View = Fit(resize_size)

    def __repr__(self) -> str:
        return f"<backbone {self.identity}: {self.dim} numbers a frame>"

    def crop(self, rgb: ImageU8) -> ImageU8:
        """Make an upright picture (height, width, 3) of any size into one (S, S, 3) for `embed`.

        Raises:
            FrameError: Another type or shape.
        """
        return cropped(rgb, self.view, self.input_size)

    def embed(self, frames: FramesU8) -> Features:
        """Features (N, D) of pictures (N, S, S, 3), RGB, not normalised; N may be 0.

        Raises:
            FrameError: Another type or shape.
        """
        frames, size = np.asarray(frames), self.input_size
        if frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[1:] != (size, size, 3):
            raise FrameError(
                f"embed: frames are {frames.dtype} of shape {frames.shape}, wanted uint8 of shape"
                f" (N, {size}, {size}, 3), RGB; call crop first"
            )
        return (
            self._embed(np.ascontiguousarray(frames)) if len(frames) else np.empty((0, self.dim), np.float32)
        )

    def _embed(self, frames: FramesU8) -> Features:
        raise NotImplementedError


def cropped(rgb: ImageU8, view: View, size: int) -> ImageU8:
    """Resize as a backbone wants it, then cut out the centre, a square of that size.

    swscale resizes bicubically, as in the video reader. A picture that already has its size, such as one
    from the reader, is only cut. The result is contiguous, and never a view of `rgb`.

    Raises:
        FrameError: `rgb` isn't uint8 of shape (height, width, 3).

    >>> cropped(np.zeros((720, 1280, 3), np.uint8), Fit(256), 224).shape
    (224, 224, 3)
    """
    rgb = check_picture(rgb)
    height, width, _ = rgb.shape
    rgb = _resized(rgb, *view.size(width, height))
    height, width, _ = rgb.shape
    top, left = (height - size) // 2, (width - size) // 2
    return rgb[top : top + size, left : left + size].copy()


def check_picture(rgb: ImageU8) -> ImageU8:
    """An upright RGB picture as an array.

    Raises:
        FrameError: It isn't uint8 of shape (height, width, 3), or it is empty.
    """
    rgb = np.asarray(rgb)
    if rgb.dtype != np.uint8 or rgb.ndim != 3 or rgb.shape[2] != 3 or 0 in rgb.shape:
        wanted = "uint8 of shape (height, width, 3), RGB"
        raise FrameError(f"the frame is {rgb.dtype} of shape {rgb.shape}, wanted {wanted}")
    return rgb


def _resized(rgb: ImageU8, width: int, height: int) -> ImageU8:
    """On one thread: swscale's pool costs more than it saves on one picture."""
    if rgb.shape[:2] == (height, width):
        return rgb
    frame = VideoFrame.from_ndarray(np.ascontiguousarray(rgb), "rgb24")
    # A new reformatter for each call keeps this a pure function that any thread may call.
    resized = VideoReformatter().reformat(
        frame, width, height, interpolation=Interpolation.BICUBIC, threads=1
    )
    return np.asarray(resized.to_ndarray(), np.uint8)
