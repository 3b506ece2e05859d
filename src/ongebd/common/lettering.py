"""Fonts for pictures, so that any name can be written. Imports matplotlib."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib as mpl
from matplotlib.font_manager import fontManager

FONTS = (
    *(
        "DejaVu Sans",
        "Noto Sans",
        "Noto Sans CJK SC",
        "Noto Sans CJK JP",
        "Noto Sans CJK KR",
        "WenQuanYi Zen Hei",
    ),
    *("Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari", "Noto Sans Thai", "Noto Emoji"),
    *("Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "PingFang SC", "Hiragino Sans", "Arial Unicode MS"),
)


@contextmanager
def lettering(size: float) -> Iterator[None]:
    """Draw and save a picture in this block: it ignores the user's matplotlib settings. Letters in points."""
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a glyph that no font has becomes a box
        mpl.rcdefaults()
        known = {font.name for font in fontManager.ttflist}
        mpl.rcParams["font.family"] = [name for name in FONTS if name in known] or ["sans-serif"]
        mpl.rcParams["font.size"] = size
        mpl.rcParams["text.parse_math"] = False  # a $ in a file name is a dollar sign
        yield
