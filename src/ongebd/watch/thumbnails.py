"""A boundary's picture as JPEG."""

from __future__ import annotations

import io

from ongebd.errors import MissingExtraError
from ongebd.types import ImageU8

SHORT_SIDE = 270
"""Pixels of a thumbnail's shorter side, where the source has as many."""


def check_can_draw() -> None:
    """Find out now whether thumbnails can be made.

    Raises:
        MissingExtraError: Pillow is not installed.
    """
    try:
        import PIL.Image  # noqa: F401
    except ModuleNotFoundError as problem:
        raise MissingExtraError.of("pillow", "live") from problem


def jpeg(picture: ImageU8) -> bytes:
    """The picture (height, width, 3), RGB, as a JPEG file."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "JPEG", quality=82)
    return buffer.getvalue()
