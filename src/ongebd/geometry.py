"""The one rule for the size of a picture, shared by the reader and the backbones."""

from __future__ import annotations

_LONGEST = 4096


def fit_short_side(width: int, height: int, short_side: int) -> tuple[int, int]:
    """The size (width, height) at which the shorter side has `short_side` pixels, the shape kept.

    The longer side ends at 4096 pixels, so that a picture of 8000 × 2 does not grow to a gigabyte.

    >>> fit_short_side(1280, 720, 256), fit_short_side(720, 1280, 256), fit_short_side(16, 16, 256)
    ((455, 256), (256, 455), (256, 256))
    """
    scale = short_side / min(width, height)
    return (min(_LONGEST, max(1, round(width * scale))), min(_LONGEST, max(1, round(height * scale))))
