"""From a decoded frame to an upright RGB picture of the wanted size."""

from __future__ import annotations

import numpy as np
from av.video.format import VideoFormat
from av.video.frame import VideoFrame
from av.video.reformatter import Interpolation, VideoReformatter

from ongebd.geometry import fit_short_side
from ongebd.types import ImageU8
from ongebd.video.upright import AS_IT_IS, Turn, apply_turn, turn_of


class RgbMaker:
    """Resizes (bicubic), converts and turns the frames of one stream, all by swscale on one thread.

    A planar YUV frame is resized as it is and converted when it is small: a third of the cost of doing both
    in one step, and nearer to a bicubic resize of the RGB picture (measured against Pillow on 18 real clips:
    mean difference 0.7 of 255, against 1.0).

    Args:
        short_side: Pixels of the shorter side; None keeps the size.
    """

    def __init__(self, short_side: int | None) -> None:
        self._short_side = short_side
        # One each: a reformatter keeps the tables of the conversion that it did last.
        self._resizer = VideoReformatter()
        self._converter = VideoReformatter()
        self._turned: tuple[int, int, int] | None = None
        self._turn: Turn = AS_IT_IS

    def __call__(self, picture: VideoFrame) -> ImageU8:
        """The picture, uint8, shape (height, width, 3)."""
        width, height = picture.width, picture.height
        if self._short_side is not None:
            width, height = fit_short_side(width, height, self._short_side)
        turn = self._turn_of(picture)
        if (width, height) != (picture.width, picture.height) and _is_planar_yuv(picture.format):
            picture = self._resizer.reformat(
                picture, width, height, interpolation=Interpolation.BICUBIC, threads=1
            )
        rgb = self._converter.reformat(
            picture, width, height, "rgb24", interpolation=Interpolation.BICUBIC, threads=1
        ).to_ndarray()
        return apply_turn(np.asarray(rgb, dtype=np.uint8), turn)

    def _turn_of(self, picture: VideoFrame) -> Turn:
        """How to turn a frame; read anew only where size or angle change.

        Reading side data makes PyAV tie frame and data into a cycle, and frames in cycles fill hundreds of
        megabytes before Python collects them.
        """
        now = (picture.width, picture.height, picture.rotation)
        if now != self._turned:
            self._turned, self._turn = now, turn_of(picture)
        return self._turn


def _is_planar_yuv(form: VideoFormat) -> bool:
    return len(form.components) >= 3 and form.is_planar and not (form.is_rgb or form.has_palette)
