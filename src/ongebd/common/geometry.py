"""The rules for the size of a picture, shared by the reader and the backbones."""

from __future__ import annotations

from dataclasses import dataclass

_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class Fit:
    """The shape is kept: the shorter side gets `short_side` pixels.

    >>> Fit(256).size(1280, 720)
    (455, 256)
    """

    short_side: int

    def size(self, width: int, height: int) -> tuple[int, int]:
        """The new size (width, height) of an upright picture; see `fit_short_side`."""
        return fit_short_side(width, height, self.short_side)


@dataclass(frozen=True, slots=True)
class Squash:
    """The whole picture is brought to one size, its shape given up.

    >>> Squash(224, 224).size(1280, 720)
    (224, 224)
    """

    width: int
    height: int

    def size(self, _width: int, _height: int) -> tuple[int, int]:
        """The new size (width, height), whatever the old one was."""
        return self.width, self.height


@dataclass(frozen=True, slots=True)
class FitWithin:
    """As `Fit`, but no picture is made larger.

    >>> FitWithin(270).size(1280, 720), FitWithin(270).size(320, 240)
    ((480, 270), (320, 240))
    """

    short_side: int

    def size(self, width: int, height: int) -> tuple[int, int]:
        """The new size (width, height) of an upright picture."""
        return fit_short_side(width, height, min(self.short_side, width, height))


View = Fit | Squash
"""How pictures are resized for what looks at them."""


def fit_short_side(width: int, height: int, short_side: int) -> tuple[int, int]:
    """The size (width, height) at which the shorter side has `short_side` pixels, the shape kept.

    The longer side ends at 4096 pixels, so that a picture of 8000 × 2 does not grow to a gigabyte.

    >>> fit_short_side(1280, 720, 256), fit_short_side(720, 1280, 256), fit_short_side(16, 16, 256)
    ((455, 256), (256, 455), (256, 256))
    """
    scale = short_side / min(width, height)
    return (min(_LONGEST, max(1, round(width * scale))), min(_LONGEST, max(1, round(height * scale))))
