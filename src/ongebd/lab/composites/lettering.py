"""Words in a picture, in the one font that matplotlib brings with it: the same on every machine."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt


@cache
def words(text: str, height: int) -> npt.NDArray[np.float32]:
    """How much of each pixel the letters cover, 0 to 1, shape (rows, columns), as high as `height` or less.

    Args:
        text: One line.
        height: Of the letters, pixels.
    """
    import matplotlib
    from matplotlib.ft2font import FT2Font

    path = f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans-Bold.ttf"
    font = FT2Font(path)
    font.set_size(height, 72)
    font.set_text(text)
    font.draw_glyphs_to_bitmap(antialiased=True)
    return np.asarray(font.get_image(), dtype=np.float32) / np.float32(255)
