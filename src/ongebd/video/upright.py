"""Turns pictures upright, as the display matrix of a phone's video asks."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import cast

import numpy as np
from av.sidedata.sidedata import SideData, Type
from av.video.frame import VideoFrame

from ongebd.types import ImageU8

Turn = tuple[bool, bool, bool]
"""Transpose first; then flip the rows; then flip the columns."""

AS_IT_IS: Turn = (False, False, False)


def turn_of(frame: VideoFrame) -> Turn:
    """How to bring a frame upright: any quarter turn, mirrored or not; other angles go to the nearest one."""
    for data in cast("Iterable[SideData]", frame.side_data):
        if data.type == Type.DISPLAYMATRIX:
            a, b, _, c, d = struct.unpack_from("=5i", bytes(data))
            return _turn(a, b, c, d)
    return AS_IT_IS


def apply_turn(rgb: ImageU8, turn: Turn) -> ImageU8:
    """The picture (height, width, 3), turned, contiguous in memory."""
    if turn == AS_IT_IS:
        return rgb
    transpose, flip_rows, flip_columns = turn
    if transpose:
        rgb = rgb.transpose(1, 0, 2)
    return np.ascontiguousarray(rgb[:: -1 if flip_rows else 1, :: -1 if flip_columns else 1])


def _turn(a: int, b: int, c: int, d: int) -> Turn:
    """From the matrix that maps (x, y) to (a·x + c·y, b·x + d·y), as in ISO/IEC 14496-12."""
    if abs(a) + abs(d) >= abs(b) + abs(c):
        return False, d < 0, a < 0
    return True, b < 0, c < 0
