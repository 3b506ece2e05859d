"""A backbone's feature of the whole picture, followed by the picture's luma."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ongebd.backbones.base import Backbone, Features, FramesU8, NetworkBackbone, squash
from ongebd.common.geometry import Squash
from ongebd.types import ImageU8

LUMA = 56
"""Height and width of the luma, in its own pixels."""
_RED, _GREEN, _BLUE = 0.299, 0.587, 0.114


class WholePicture(NetworkBackbone):
    """Squashes the whole picture to the network's square. A centre crop would miss people at the sides.

    The feature is the network's (1280 numbers of EfficientNet-Lite0), then the luma of the same picture at
    56 × 56, 0 to 255, row by row: means of 4 × 4 pixels of 0.299 R + 0.587 G + 0.114 B. It shows motion.

    Args:
        network: Whose features; its input must be a square of a multiple of 56 pixels. Shared.
    """

    def __init__(self, network: Backbone) -> None:
        name, size = f"{network.name}_whole", network.input_size
        weights = network.identity.partition("@")[2]
        super().__init__(name, f"{name}@{weights}", network.dim + LUMA * LUMA, size, size)
        self.network = network
        self.view = Squash(size, size)

    def crop(self, rgb: ImageU8) -> ImageU8:
        """See `Backbone`."""
        return squash(rgb, self.input_size, self.input_size)

    def _embed(self, frames: FramesU8) -> Features:
        return np.concatenate([self.network.embed(frames), small_luma(frames)], axis=1)


def small_luma(frames: FramesU8) -> npt.NDArray[np.float32]:
    """The luma of square pictures at 56 × 56, 0 to 255: (N, S, S, 3) uint8 → (N, 3136) float32."""
    count, size = len(frames), frames.shape[1]
    step = size // LUMA
    rows = frames.reshape(count, LUMA, step, 3 * size)
    sums = rows[:, :, 0].astype(np.uint16)
    for row in range(1, step):
        sums += rows[:, :, row]
    red, green, blue = (sums[..., colour::3].astype(np.float32) for colour in range(3))  # (N, 56, S)
    luma = (np.float32(_RED) * red + np.float32(_GREEN) * green) + np.float32(_BLUE) * blue
    means = luma[..., 0::step].copy()
    for column in range(1, step):
        means += luma[..., column::step]
    result: npt.NDArray[np.float32] = (means * np.float32(1 / step**2)).reshape(count, LUMA * LUMA)
    return result
