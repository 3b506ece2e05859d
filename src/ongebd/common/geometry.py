"""Sizes of pictures, for the reader and the backbones."""

from __future__ import annotations

from dataclasses import dataclass

_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class Fit:
    """Keeps the shape; the shorter side gets `short_side` pixels. Enlarging is optional.

    >>> Fit(256).size(1280, 720), Fit(270).size(320, 240), Fit(270, enlarge=False).size(320, 240)
    ((455, 256), (360, 270), (320, 240))
    """

    short_side: int
    enlarge: bool = True

    def size(self, width: int, height: int) -> tuple[int, int]:
        """The new size (width, height) of an upright picture."""
        short_side = self.short_side if self.enlarge else min(self.short_side, width, height)
        return fit_short_side(width, height, short_side)


@dataclass(frozen=True, slots=True)
class Squash:
    """Brings the whole picture to one size without keeping its shape.

    >>> Squash(224, 224).size(1280, 720)
    (224, 224)
    """

    width: int
    height: int

    def size(self, _width: int, _height: int) -> tuple[int, int]:
        """The new size (width, height)."""
        return self.width, self.height


View = Fit | Squash
"""How a backbone wants pictures resized."""


def fit_short_side(width: int, height: int, short_side: int) -> tuple[int, int]:
    """The size (width, height) at which the shorter side has `short_side` pixels and the shape is kept.

    The longer side ends at 4096 pixels; otherwise a picture of 8000 × 2 would grow to a gigabyte.

    >>> fit_short_side(1280, 720, 256), fit_short_side(720, 1280, 256), fit_short_side(16, 16, 256)
    ((455, 256), (256, 455), (256, 256))
    """
    scale = short_side / min(width, height)
    return (min(_LONGEST, max(1, round(width * scale))), min(_LONGEST, max(1, round(height * scale))))
