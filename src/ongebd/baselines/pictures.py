"""Small whole pictures in place of features, for methods that look at pixels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from av.video.frame import VideoFrame
from av.video.reformatter import Interpolation

from ongebd.backbones.base import Backbone, Features, FramesU8, check_picture
from ongebd.types import Feature, ImageU8


class Pictures(Backbone):
    """A backbone whose feature is the picture itself, squeezed to one size.

    Every number is a pixel's plus one, so that a black picture is not a vector of norm zero, which from a
    network would mean broken weights; `picture_of` subtracts the one.

    >>> pictures = Pictures(width=4, height=2)
    >>> grey = np.full((90, 160, 3), 7, np.uint8)
    >>> feature = pictures.embed(pictures.crop(grey)[np.newaxis])[0]
    >>> feature.shape, pictures.picture_of(feature).shape, int(pictures.picture_of(feature).max())
    ((24,), (2, 4, 3), 7)

    Args:
        width: Pixels.
        height: Pixels.
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        shorter = min(width, height)
        # Twice that: a decoder's own resizing leaves enough to squeeze well.
        super().__init__("pictures", f"pictures@{width}x{height}", width * height * 3, shorter, 2 * shorter)

    def crop(self, rgb: ImageU8) -> ImageU8:
        """The whole picture, uint8, (height, width, 3), each new pixel the mean of those that it covers."""
        rgb = check_picture(rgb)
        if rgb.shape[:2] == (self.height, self.width):
            return rgb
        frame = VideoFrame.from_ndarray(np.ascontiguousarray(rgb), format="rgb24")
        small = frame.reformat(self.width, self.height, interpolation=Interpolation.AREA)
        return np.asarray(small.to_ndarray(), np.uint8)

    def embed(self, frames: FramesU8) -> Features:
        """(N, height, width, 3) → (N, D)."""
        return frames.reshape(len(frames), -1).astype(np.float32) + 1.0

    def picture_of(self, feature: Feature) -> npt.NDArray[np.uint8]:
        """The picture (height, width, 3) in a feature (D,)."""
        return (feature - 1.0).astype(np.uint8).reshape(self.height, self.width, 3)
