"""From a decoded frame to an upright RGB picture of the wanted size."""

from __future__ import annotations

import numpy as np
from av.video.format import VideoFormat
from av.video.frame import VideoFrame
from av.video.reformatter import Interpolation, VideoReformatter

from ongebd.common.geometry import Fit, FitWithin, View
from ongebd.types import ImageU8
from ongebd.video.upright import AS_IT_IS, Turn, apply_turn, turn_of


class RgbMaker:
    """Resizes (bicubic), converts and turns the frames of one stream, all by swscale on one thread.

    A planar YUV frame is resized as it is and converted when it is small: a third of the cost of doing both
    in one step, and nearer to a bicubic resize of the RGB picture (measured against Pillow on 18 real clips:
    mean difference 0.7 of 255, against 1.0).

    Args:
        short_side: Short for `Fit(short_side)`.
        view: The size of the upright picture; None keeps it.
    """

    def __init__(self, short_side: int | None = None, *, view: View | FitWithin | None = None) -> None:
        self._view = Fit(short_side) if short_side is not None and view is None else view
        # One each: a reformatter keeps the tables of the conversion that it did last.
        self._resizer = VideoReformatter()
        self._converter = VideoReformatter()
        self._turned: tuple[int, int, int] | None = None
        self._turn: Turn = AS_IT_IS

    def __call__(self, picture: VideoFrame) -> ImageU8:
        """The picture, uint8, shape (height, width, 3)."""
        turn = self._turn_of(picture)
        width, height = self._size(picture, transposed=turn[0])
        if (width, height) != (picture.width, picture.height) and _is_planar_yuv(picture.format):
            picture = self._resizer.reformat(
                picture, width, height, interpolation=Interpolation.BICUBIC, threads=1
            )
        rgb = self._converter.reformat(
            picture, width, height, "rgb24", interpolation=Interpolation.BICUBIC, threads=1
        ).to_ndarray()
        return apply_turn(np.asarray(rgb, dtype=np.uint8), turn)

    @property
    def turn(self) -> Turn:
        """What the last picture was turned by."""
        return self._turn

    def upright_size(self, picture: VideoFrame) -> tuple[int, int]:
        """Width and height of the picture when it is upright, and not resized."""
        transposed = self._turn_of(picture)[0]
        return (picture.height, picture.width) if transposed else (picture.width, picture.height)

    def _size(self, picture: VideoFrame, *, transposed: bool) -> tuple[int, int]:
        """The size (width, height) at which the picture, still to be turned, has that of the view."""
        if self._view is None:
            return picture.width, picture.height
        width, height = self._view.size(*self.upright_size(picture))
        return (height, width) if transposed else (width, height)

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
